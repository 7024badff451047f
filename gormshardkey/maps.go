package gormshardkey

import (
	"bytes"
	"reflect"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"
)

// mapMemory is the state of the created maps before the statement.
type mapMemory struct {
	maps []map[string]any
	name string // the entry that GORM sets
	had  []any  // the entry's value in each map
	has  []bool
}

func rememberMaps(maps []map[string]any, primary *schema.Field) *mapMemory {
	m := &mapMemory{maps: maps, name: "@id"}
	if primary != nil {
		m.name = primary.DBName
	}
	for _, entries := range maps {
		value, ok := entries[m.name]
		m.had, m.has = append(m.had, value), append(m.has, ok)
	}
	return m
}

func (m *mapMemory) fill(stmt *gorm.Statement, field *schema.Field, f filled) {
	if many, ok := stmt.Dest.(*[]map[string]any); ok {
		*many = (*many)[:len(m.maps)] // GORM has appended the rows of RETURNING
	}
	name := m.name
	switch counted := m.counted(f); {
	case counted:
		m.restore()
	case field == nil && m.stored():
		name = f.column // the entry is for another column
	}
	for i, entries := range m.maps {
		if entries != nil && i < len(f.keys) && f.keys[i] != nil {
			setEntry(entries, nameIn(entries, stmt.Schema, field, name), f.keys[i])
		}
	}
}

// counted reports whether GORM has counted from one of the keys. If another column has
// AUTO_INCREMENT, GORM has counted from that column's value.
func (m *mapMemory) counted(f filled) bool {
	for _, entries := range m.maps {
		if entries != nil {
			return !f.returned && isKey(entries[m.name], f.keys)
		}
	}
	return false
}

// stored reports whether GORM has set an entry.
func (m *mapMemory) stored() bool {
	for i, entries := range m.maps {
		if _, ok := entries[m.name]; ok && !m.has[i] {
			return true
		}
	}
	return false
}

// restore restores the entries that GORM has overwritten.
func (m *mapMemory) restore() {
	for i, entries := range m.maps {
		switch {
		case entries == nil:
		case m.has[i]:
			entries[m.name] = m.had[i]
		default:
			delete(entries, m.name)
		}
	}
}

// nameIn returns a map's name for the key: the column's or the field's. If field is nil, it returns
// name.
func nameIn(entries map[string]any, s *schema.Schema, field *schema.Field, name string) string {
	if field == nil {
		return name
	}
	for known := range entries {
		if s.LookUpField(known) == field {
			return known
		}
	}
	return field.DBName
}

func setEntry(entries map[string]any, name string, key any) {
	if value, ok := entries[name]; !ok || isMissing(value) {
		entries[name] = own(key)
	}
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

func isKey(value any, keys []any) bool {
	n, ok := integer(reflect.ValueOf(value))
	return ok && slices.ContainsFunc(keys, func(key any) bool {
		k, ok := integer(reflect.ValueOf(key))
		return ok && k == n
	})
}
