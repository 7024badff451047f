package rewrite

import (
	"fmt"
	"strings"
	"testing"

	"github.com/shardkey/shardkey/internal/test/must"
)

func TestGivenNumbers_statements(t *testing.T) {
	for text, want := range map[string]string{
		"INSERT INTO t (a, b) VALUES (?, 7)":                                "[7] true",
		"INSERT t VALUES (1, 'x'), (-2, \"30 apples\"), (0x1F, 1e3)":        "[1 30 31 1000] true",
		"REPLACE INTO t (value) VALUE (NULL, DEFAULT, FALSE, TRUE)":         "[1] true",
		"INSERT INTO t () VALUES ()":                                        "[] true",
		"INSERT INTO t VALUES ROW(1), ROW(2)":                               "[1 2] true",
		"INSERT INTO t VALUES (NOW(), CURRENT_TIMESTAMP, UUID(), ?) ; ":     "[] false",
		"INSERT INTO t VALUES (NOW(), CURRENT_TIMESTAMP, UUID(), ?)":        "[] true",
		"INSERT INTO t VALUES (LAST_INSERT_ID(), 5)":                        "[5] true",
		"INSERT INTO t VALUES (1 + 1)":                                      "[] false",
		"INSERT INTO t VALUES (ABS(1))":                                     "[] false",
		"INSERT INTO t VALUES (@a)":                                         "[] false",
		"INSERT INTO t VALUES ((SELECT 1))":                                 "[] false",
		"INSERT INTO t VALUES (DEFAULT(a))":                                 "[] false",
		"INSERT INTO t VALUES ('a' '5')":                                    "[] false",
		"INSERT INTO t VALUES (1) ON DUPLICATE KEY UPDATE a = 2":            "[] false",
		"INSERT INTO t VALUES (1) RETURNING id":                             "[] false",
		"INSERT INTO t SELECT 5":                                            "[] false",
		"INSERT INTO t SET a = 5":                                           "[] false",
		"INSERT INTO t VALUES (/*!50000 5 */)":                              "[5] false",
		"INSERT INTO t VALUES (1":                                           "[1] true",
		"INSERT INTO t VALUES ('":                                           "[] false",
		"INSERT INTO free":                                                  "[] false",
		"INSERT INTO t SET a = b":                                           "[] false",
		"INSERT INTO t (`":                                                  "[] false",
		"INSERT INTO t VALUES (010, -5, 3)":                                 "[10 3] true",
		"INSERT INTO t VALUES (0xFFFFFFFFFFFFFFFFFF, 7)":                    "[7] true",
		"INSERT INTO t VALUES (0b101)":                                      "[5] true",
		"INSERT INTO t VALUES ('" + strings.Repeat("x", maxExplicit) + "')": "[] false",
	} {
		numbers, plain := mustParse(t, strings.Replace(text, " t ", " free ", 1), Options{}).ExplicitNumbers()
		if numbers == nil || !plain && len(numbers) > 0 && !strings.Contains(text, "/*!") {
			numbers = []float64{}
		}
		if have := fmt.Sprintf("%v %v", numbers, plain); have != want {
			t.Errorf("%.80s\nhave: %s\nwant: %s", text, have, want)
		}
	}
}

func TestReport_plain(t *testing.T) {
	p := mustParse(t, "INSERT INTO t (a) VALUES (?)", Options{ReportKeys: true})
	must.Equal(t, p.Query(), "INSERT INTO t (a, `id`) VALUES (?, LAST_INSERT_ID(?))")
	must.Equal(t, p.WithoutReport().Query(), "INSERT INTO t (a, `id`) VALUES (?, ?)")
	unguarded := Options{Table: func(string, string) *Table { return &Table{Key: "id", NoReport: true} }, ReportKeys: true}
	p = mustParse(t, "INSERT INTO t (a) VALUES (?) ON DUPLICATE KEY UPDATE a = 2", unguarded)
	must.Equal(t, p.Query(), "INSERT INTO t (a, `id`) VALUES (?, ?) ON DUPLICATE KEY UPDATE a = 2")
}
