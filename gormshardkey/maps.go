package gormshardkey

import (
	"bytes"

	"gorm.io/gorm/schema"
)

// fillMaps sets the entry of each map's key. field is the key column's, nil if the model has none.
func (in *insert) fillMaps(field *schema.Field) {
	if many, ok := in.stmt.Dest.(*[]map[string]any); ok {
		*many = in.maps // GORM has appended the rows of RETURNING
	}
	keys := in.keys.Values()
	for i, entries := range in.maps {
		if entries == nil || i >= len(keys) || keys[i] == nil {
			continue
		}
		if name := in.nameIn(entries, field); isMissing(entries[name]) {
			entries[name] = own(keys[i])
		}
	}
}

// nameIn returns a map's name for the key: the column's or the field's. Without a field, it is the
// entry that GORM sets, unless GORM has set it for another column.
func (in *insert) nameIn(entries map[string]any, field *schema.Field) string {
	if field == nil {
		name := "@id"
		if primary := primaryOf(in.stmt); primary != nil {
			name = primary.DBName
		}
		if _, ok := entries[name]; ok {
			return in.keys.Column()
		}
		return name
	}
	for known := range entries {
		if in.stmt.Schema.LookUpField(known) == field {
			return known
		}
	}
	return field.DBName
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
