package rewrite

import (
	"slices"
	"testing"
)

// TestEngine_runs holds what MySQL 9.7.4 and MariaDB 10.11 do.
func TestEngine_runs(t *testing.T) {
	mysql, mariadb := engine{version: 90704}, engine{mariadb: true, version: 101119}
	for text, want := range map[string][2]bool{
		"/*!": {true, true}, "/*!50000": {true, true}, "/*!50701": {true, false}, "/*!80000": {true, false}, "/*!99999": {false, false},
		"/*!090704": {true, false}, "/*!090705": {false, false}, "/*!100000": {false, true}, "/*!101120": {false, false},
		"/*M!": {false, true}, "/*M!50701": {false, true}, "/*M!100100": {false, true}, "/*M!110000": {false, false},
	} {
		o, length := executableOpening(text + " x")
		if have := [2]bool{mysql.runs(o), mariadb.runs(o)}; have != want || length != len(text) {
			t.Errorf("%s\nhave: %v, %d bytes\nwant: %v", text, have, length, want)
		}
	}
}

// TestEngines_eachSetOnce: each set of comments that a server may run is read,
// once.
func TestEngines_eachSetOnce(t *testing.T) {
	for _, c := range []struct {
		openings []opening
		want     int
	}{
		{[]opening{{}}, 2},
		{[]opening{{version: 50000}}, 2},
		{[]opening{{}, {version: 50000}}, 3},
		{[]opening{{version: 40000}, {version: 50000}, {version: 100100}}, 4},
		{[]opening{{version: 50000}, {version: 80000}}, 3},
		{[]opening{{version: 80000}, {version: 100100}}, 4}, // MariaDB runs the second alone
		{[]opening{{version: 50000}, {mariadb: true}}, 4},
	} {
		list := engines(c.openings)
		if len(list) != c.want || list[0] != (engine{all: true}) {
			t.Errorf("%v\nhave: %v\nwant: %d", c.openings, list, c.want)
		}
	}
	many := lexer{}
	for i := range maxOpenings + 1 {
		many.open(opening{version: int32(10000 + i)})
	}
	if many.notes.unsure == "" || len(many.notes.openings) != maxOpenings || slices.Contains(many.notes.openings, opening{version: 10000 + maxOpenings}) {
		t.Errorf("have: %q, %d\nwant: a reason to refuse", many.notes.unsure, len(many.notes.openings))
	}
}
