package main

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/shardkey/shardkey/internal/test/must"
)

var update = flag.Bool("update", false, "write the figures of bench/figures.jsonl to the pages")

// All figures in the pages are of one run, the one in bench/figures.jsonl.
func TestPages_figures(t *testing.T) {
	r := must.Get(readRecord("../figures.jsonl"))(t)
	for page, content := range map[string]func(figures) string{
		"../../README.md":                      figures.readme,
		"../../README.zh.md":                   figures.readmeZh,
		"../../docs/understand/performance.md": figures.performance,
		"../README.md":                         figures.all,
	} {
		const begin, end = "<!-- figures: written by make bench-note -->\n", "<!-- end of figures -->"
		text := read(t, page)
		before, rest, ok := strings.Cut(text, begin)
		_, after, ok2 := strings.Cut(rest, end)
		if !ok || !ok2 {
			t.Fatalf("%s has no %q … %q", page, begin, end)
		}
		indent := before[strings.LastIndex(before, "\n")+1:]
		if want := before + begin + content(figures{t, r}) + indent + end + after; text == want {
			continue
		} else if !*update {
			t.Errorf("%s differs from bench/figures.jsonl: run go test ./bench/inserts -run Pages -update", page)
		} else if err := os.WriteFile(page, []byte(want), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

type figures struct {
	t *testing.T
	record
}

// of returns a figure, and false if the workload doesn't have it.
func (r figures) of(server, workload, variant string) (figure, bool) {
	want := figure{Server: server, Workload: workload, Variant: variant}.name()
	i := slices.IndexFunc(r.Figures, func(f figure) bool { return f.name() == want })
	if i < 0 {
		return figure{}, false
	}
	return r.Figures[i], true
}

var (
	servers = []string{"MySQL", "MariaDB"}
	modes   = []string{"default DSN", "prepared", "interpolateParams"}
)

// speed returns shardkey's speed.
func (r figures) speed(server, workload string) float64 {
	r.t.Helper()
	f, ok := r.of(server, workload, "shardkey")
	if !ok {
		r.t.Fatalf("bench/figures.jsonl has no figure of shardkey on %s: %s", server, workload)
	}
	return f.Speed.Median
}

// span returns the least and the greatest speed of workloads on all servers, in some modes.
func (r figures) span(kinds []string, modes ...string) (least, most float64) {
	var all []float64
	for _, server := range servers {
		for _, kind := range kinds {
			for _, mode := range modes {
				all = append(all, r.speed(server, kind+", "+mode))
			}
		}
	}
	return slices.Min(all), slices.Max(all)
}

var (
	oneRow  = []string{"INSERT", "INSERT in 8 goroutines", "INSERT in 64 goroutines"}
	batches = []string{"INSERT of 10 rows", "INSERT of 100 rows", "INSERT of 1000 rows"}
	ofGORM  = []string{"GORM Create", "GORM CreateInBatches"}
)

// spans returns the speeds that the READMEs show.
func (r figures) spans() (all []any) {
	for _, of := range []struct{ kinds, modes []string }{
		{oneRow, modes[:1]}, {batches, modes[:1]}, {ofGORM, modes[:1]}, {slices.Concat(oneRow, batches), modes[1:]},
	} {
		least, most := r.span(of.kinds, of.modes...)
		all = append(all, least, most)
	}
	return all
}

func (r figures) readme() string {
	return fmt.Sprintf("- **Fast**: INSERTs per second, divided by [those of go-sql-driver](docs/understand/performance.md).\n"+
		"  With its default DSN: one row %.2f to %.2f, 10 to 1,000 rows %.2f to %.2f, GORM %.2f to %.2f. With\n"+
		"  prepared statements or `interpolateParams`: %.2f to %.2f. If each commit waits for the disk, all\n"+
		"  are about 1.\n", r.spans()...)
}

func (r figures) readmeZh() string {
	return fmt.Sprintf("- **快**：每秒 INSERT 数与 [go-sql-driver](docs/understand/performance.md) 之比。默认 DSN：单行 %.2f 至 %.2f，"+
		"10 至 1,000 行 %.2f 至 %.2f，GORM %.2f 至 %.2f；复用预处理语句或设置了 `interpolateParams`：%.2f 至 %.2f。"+
		"如果每次提交都要刷盘（`innodb_flush_log_at_trx_commit=1`），都接近 1。\n", r.spans()...)
}

// performance returns a table with a row for each kind of workload, and a column for each mode.
func (r figures) performance() string {
	text := "| | MySQL 9.7: default DSN | prepared | `interpolateParams` | MariaDB 10.11: default DSN | prepared | `interpolateParams` |\n" +
		"| --- | --- | --- | --- | --- | --- | --- |\n"
	for _, w := range workloads() {
		kind, mode, _ := strings.Cut(w.name, ", ")
		if mode != modes[0] {
			continue // each kind once
		}
		row, measured := "| "+kind+" |", false
		for _, server := range servers {
			for _, mode := range modes {
				cell := ""
				if f, ok := r.of(server, kind+", "+mode, variants[shardkey].name); ok {
					cell, measured = fmt.Sprintf(" %.2f", f.Speed.Median), true
				}
				row += cell + " |"
			}
		}
		if measured {
			text += row + "\n"
		}
	}
	return text
}

// all returns a table for each server with all workloads and variants.
func (r figures) all() string {
	text := r.Run + ".\n"
	for _, server := range servers {
		text += "\n**" + server + "**\n\n| | go-sql-driver, µs (client + server) | do-nothing wrapper | shardkey's query | shardkey, µs (client + server) |" +
			" shardkey | its processor time | WithKeys, compared with shardkey |\n| --- | --- | --- | --- | --- | --- | --- | --- |\n"
		for _, w := range workloads() {
			if _, ok := r.of(server, w.name, variants[plain].name); !ok {
				continue
			}
			cell := func(variant int, of func(figure) string) string {
				if f, ok := r.of(server, w.name, variants[variant].name); ok {
					return of(f) + " |"
				}
				return " |"
			}
			times := func(f figure) string { return fmt.Sprintf(" %.1f (%.1f + %.1f)", f.Wall, f.Client, f.ServerTime) }
			speed := func(f figure) string { return fmt.Sprintf(" %.2f ± %.2f", f.Speed.Median, f.Speed.Error) }
			processor := func(f figure) string { return fmt.Sprintf(" %.2f ± %.2f", f.Processor.Median, f.Processor.Error) }
			text += "| " + w.name + " |" + cell(plain, times) + cell(doNothing, speed) + cell(sameQuery, speed) +
				cell(shardkey, times) + cell(shardkey, speed) + cell(shardkey, processor) + cell(withKeys, speed) + "\n"
		}
	}
	return text
}

func read(t *testing.T, path string) string {
	t.Helper()
	text := must.Get(os.ReadFile(path))(t)
	return string(text)
}
