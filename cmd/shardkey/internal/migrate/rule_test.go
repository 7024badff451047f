package migrate

import (
	"strings"
	"testing"

	_ "github.com/shardkey/shardkey/driver"
	"github.com/shardkey/shardkey/internal/schema"
	"github.com/shardkey/shardkey/rule"
)

// source is a database with tables of two columns: "t_order_0", or with the type of
// their key after a blank, "t_order_0 int auto".
func source(name string, tables ...string) Source {
	d := &schema.Database{Name: "shop"}
	for _, text := range tables {
		table, typ, _ := strings.Cut(text, " ")
		typ, auto := strings.CutSuffix(typ, " auto")
		if typ == "" {
			typ = "bigint"
		}
		columns := []*schema.Column{{Name: "id", Type: typ, AutoIncrement: auto}, {Name: "x", Type: "text"}}
		if typ == "state" { // of worker IDs
			columns[0], columns[1] = &schema.Column{Name: "namespace"}, &schema.Column{Name: "worker_id"}
		}
		if typ == "other" { // columns
			columns[0].Name, columns[1].Name = "y", "z"
		}
		d.Tables = append(d.Tables, &schema.Table{
			Schema: "shop", Name: table, Columns: columns,
			Indexes: []*schema.Index{{Name: "PRIMARY", Unique: true, Columns: []string{"id"}}},
		})
	}
	return Source{Name: name, schema: d, DSN: "app@tcp(127.0.0.1:3306)/" + name}
}

func TestNew_dataNodes(t *testing.T) {
	for _, c := range []struct {
		name    string
		sources []Source
		want    string // logical: nodes; … and what is left out
	}{
		{"a range", []Source{source("", "t_0", "t_1", "t_2")}, "t: t_${0..2}"},
		{"from one", []Source{source("", "t_1", "t_2")}, "t: t_${1..2}"},
		{"without a line", []Source{source("", "user1", "user2")}, "user: user${1..2}"},
		{"a gap", []Source{source("", "t_1", "t_3")}, "t: t_${[1, 3]}"},
		{"ten is after nine", []Source{source("", "t_8", "t_9", "t_10")}, "t: t_${8..10}"},
		{"zeros", []Source{source("", "t_08", "t_09", "t_10")}, "t: t_${(8..10).collect{it.toString().padLeft(2, '0')}}"},
		{"zeros with a gap", []Source{source("", "t_00", "t_02")}, "t: t_${['00', '02']}"},
		{"months", []Source{source("", "log_202601", "log_202512")}, "log: log_${yyyyMM}"},
		{"days with lines", []Source{source("", "log_2026_01_02", "log_2026_01_03")}, "log: log_${yyyy_MM_dd}"},
		{"no months", []Source{source("", "log_202613", "log_202614")}, "log: log_${202613..202614}"},
		{"two numbers", []Source{source("", "t_0_0", "t_0_1", "t_1_0", "t_1_1")}, "t: t_${0..1}_${0..1}"},
		{"two numbers, not all", []Source{source("", "t_0_0", "t_0_1", "t_1_1")}, "t: t_0_0, t_0_1, t_1_1"},
		{"two databases", []Source{source("ds_0", "t_0", "t_1"), source("ds_1", "t_0", "t_1")}, "t: ds_${0..1}.t_${0..1}"},
		{"each its own", []Source{source("ds_0", "t_0", "t_1"), source("ds_1", "t_2", "t_3")}, "t: ds_0.t_${0..1}, ds_1.t_${2..3}"},
		{"one each", []Source{source("a", "t_0"), source("b", "t_1")}, "t: a.t_0, b.t_1"},
		{"names without numbers", []Source{source("east", "t_0", "t_1"), source("west", "t_0", "t_1")}, "t: ${['east', 'west']}.t_${0..1}"},
		{"one table in each", []Source{source("ds_0", "user bigint auto"), source("ds_1", "user bigint auto")}, "user: ds_${0..1}.user"},
		{"one with a number", []Source{source("", "t_2026 bigint auto")}, "t_2026: "},
		{"two of other columns", []Source{source("", "t_0 bigint auto", "t_1 bigint auto")}, "t: t_${0..1}"},
		{"the logical table too", []Source{source("", "t bigint auto", "t_0", "t_1")}, "t: t_${0..1}; left out t"},
		{"the logical table too, without AUTO_INCREMENT", []Source{source("", "t", "t_0", "t_1")}, "t: t_${0..1}; left out t"},
		{"another table of that name", []Source{source("", "t other", "t_0", "t_1")}, "t_0: t_${0..1}; left out t"},
		{"spellings of a name", []Source{source("", "T bigint auto", "t other", "u bigint auto")}, "u: ; left out T"},
		{"other columns elsewhere", []Source{source("ds_0", "t bigint auto", "u bigint auto"), source("ds_1", "t other", "u bigint auto")},
			"u: ds_${0..1}.u; left out t"},
		{"a key of text", []Source{source("", "t_0 char(36)", "t_1 char(36)", "u bigint auto")}, "u: ; left out t…"},
		{"no AUTO_INCREMENT and alone", []Source{source("", "t bigint", "u bigint auto")}, "u: ; left out t"},
		{"a narrow key", []Source{source("", "t_0 int auto", "t_1 int auto")}, "t: t_${0..1} (int)"},
		{"our own tables", []Source{source("", "leases_1 state", "leases_2 state", "u bigint auto")}, "u: "},
		{"a name that no rule takes", []Source{source("", "we*ird bigint auto", "u bigint auto")}, "u: ; left out we*ird"},
		{"a word of YAML's", []Source{source("", "on bigint auto")}, "on: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := NewRule(c.sources)
			var have []string
			for _, table := range r.tables {
				s := table.logical + ": " + table.nodes
				if table.narrow != "" {
					s += " (" + table.narrow + ")"
				}
				have = append(have, s)
			}
			for _, l := range r.LeftOut {
				have = append(have, "left out "+l.Name)
				if l.Why == "" {
					t.Errorf("%s is left out without a reason", l.Name)
				}
			}
			if s := strings.Join(have, "; "); s != c.want {
				t.Errorf("have: %s\nwant: %s", s, c.want)
			}
			// What is written is a rule that means the tables that are there.
			parsed, err := rule.Parse("rule.yaml", []byte(r.YAML()))
			if err != nil {
				t.Fatalf("%v\n%s", err, r.YAML())
			}
			if len(parsed.Warnings()) > 0 {
				t.Errorf("%v\n%s", parsed.Warnings(), r.YAML())
			}
			for _, table := range r.tables {
				found := 0
				for p := range parsed.Places(table.logical) {
					for _, s := range c.sources {
						if (p.DataSource == "" || p.DataSource == s.Name) && (strings.Contains(p.Table, "${") || has(s, p.Table)) {
							found++
						}
					}
				}
				if found != table.count && !strings.Contains(table.nodes, "yyyy") {
					t.Errorf("%d tables of %s are found by\n%s\nwant: %d", found, table.logical, r.YAML(), table.count)
				}
			}
		})
	}
}

func has(s Source, name string) bool {
	for _, t := range s.schema.Tables {
		if t.Name == name {
			return true
		}
	}
	return false
}

func TestNewRule_only(t *testing.T) {
	s := []Source{source("", "t_0", "t_1", "u bigint auto", "v")}
	for only, want := range map[string]string{"t": "t", "T_1": "t", "u": "u", "v": "v"} {
		if r := NewRule(s, only); len(r.tables) != 1 || r.tables[0].logical != want || len(r.LeftOut) > 0 {
			t.Errorf("%s\nhave: %+v\nwant: %s", only, r, want)
		}
	}
}
