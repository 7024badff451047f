package gormshardkey

import (
	"bytes"

	"gorm.io/gorm/schema"
)

// fillMaps sets the entry of each map's key, and those of a row that was returned for each map.
// field is the key column's, nil if the model has none.
func (in *insert) fillMaps(field *schema.Field) {
	var rows []map[string]any
	if in.rows.IsValid() {
		rows = in.rows.Interface().([]map[string]any)
	}
	for i, entries := range in.maps {
		if entries == nil {
			continue
		}
		if key := in.key(i); key != nil {
			set(entries, in.keyName(entries, field), own(key))
		}
		if len(rows) == len(in.maps) {
			for column, value := range rows[i] {
				set(entries, in.nameIn(entries, column), value)
			}
		}
	}
}

func set(entries map[string]any, name string, value any) {
	if isMissing(entries[name]) {
		entries[name] = value
	}
}

// keyName returns a map's name for the key: the column's or the field's. Without a field, it is the
// entry that GORM sets, unless GORM has set it for another column.
func (in *insert) keyName(entries map[string]any, field *schema.Field) string {
	if field != nil {
		return in.nameIn(entries, field.DBName)
	}
	name := "@id"
	if s := in.stmt.Schema; s != nil && s.PrioritizedPrimaryField != nil {
		name = s.PrioritizedPrimaryField.DBName
	}
	if _, ok := entries[name]; ok {
		return in.keys.Column()
	}
	return name
}

// nameIn returns a map's name for a column: the column's or the field's.
func (in *insert) nameIn(entries map[string]any, column string) string {
	for known := range entries {
		if in.stmt.Schema == nil {
			break
		}
		if field := in.stmt.Schema.LookUpField(known); field != nil && field.DBName == column {
			return known
		}
	}
	return column
}

// mapsOf returns the maps of a destination, nil if it has other elements.
func mapsOf(dest any) []map[string]any {
	switch dest := dest.(type) {
	case map[string]any:
		return []map[string]any{dest}
	case *map[string]any:
		return []map[string]any{*dest}
	case []map[string]any:
		return dest
	case *[]map[string]any:
		return *dest
	}
	return nil
}

// own returns a copy of a mutable key.
func own(key any) any {
	if b, ok := key.([]byte); ok {
		return bytes.Clone(b)
	}
	return key
}
