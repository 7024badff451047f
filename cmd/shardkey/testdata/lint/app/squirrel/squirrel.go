// Package squirrel replaces github.com/Masterminds/squirrel.
package squirrel

type InsertBuilder struct{}

func Insert(into string) InsertBuilder                          { return InsertBuilder{} }
func (b InsertBuilder) Columns(columns ...string) InsertBuilder { return b }
func (b InsertBuilder) ToSql() (string, []any, error)           { return "", nil, nil }
