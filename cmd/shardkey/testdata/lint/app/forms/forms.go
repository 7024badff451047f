// Package forms builds statements in many ways. The comment at the end of a line is lint's
// finding there.
package forms

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/template"

	"example.com/app/names"
	"example.com/app/sqlx"
)

type name string

const (
	typed  name = "t_order_3"
	prefix      = "t_order_"
	into        = "INSERT INTO "
	values      = " (user_id) VALUES (?)"
)

// Sprint uses functions of fmt.
func Sprint(db *sql.DB, n int, s string, list []any) {
	db.Exec(fmt.Sprintf("INSERT INTO t_order_%d (user_id) VALUES (?)", n))                  // computed
	db.Exec(fmt.Sprintf("INSERT INTO t_order_%s (user_id) VALUES (?)", s))                  // computed
	db.Exec(fmt.Sprintf("INSERT INTO t_order_%v (user_id) VALUES (?)", n))                  // computed
	db.Exec(fmt.Sprintf("INSERT INTO t_order_%[1]d (user_id) VALUES (%[1]d)", n))           // computed
	db.Exec(fmt.Sprintf("INSERT INTO t_order_%[2]d (user_id) VALUES (%[1]d)", 1, n))        // computed
	db.Exec(fmt.Sprintf("INSERT INTO t_order_%0*d (user_id) VALUES (?)", 2, n))             // computed
	db.Exec(fmt.Sprintf("INSERT INTO `%s` (user_id) VALUES (?)", s))                        // computed
	db.Exec(fmt.Sprintf("INSERT INTO `t_order_%02d` (user_id) VALUES (?)", n))              // computed
	db.Exec(fmt.Sprintf("INSERT INTO %s.t_order_1 (user_id) VALUES (?)", s))                // computed
	db.Exec(fmt.Sprintf("INSERT INTO %q (user_id) VALUES (?)", s))                          // computed
	db.Exec(fmt.Sprintf("insert ignore into t_order_%d set user_id = 1", n))                // computed
	db.Exec(fmt.Sprintf("REPLACE t_order_%d (user_id) VALUES (?)", n))                      // computed
	db.Exec(fmt.Sprintf("%s INTO t_order_%d (user_id) VALUES (?)", s, n))                   // computed
	db.Exec(fmt.Sprintf("INSERT %s INTO t_order_%d (user_id) VALUES (?)", s, n))            // computed
	db.Exec(fmt.Sprintf("INSERT %s INTO t_order (user_id) VALUES (?)", s))                  // unknown
	db.Exec(fmt.Sprintf("INSERT INTO t_order_%d (user_id) VALUES (?)", list...))            // computed
	db.Exec(fmt.Sprint("INSERT INTO t_order_", n, " (user_id) VALUES (?)"))                 // computed
	db.Exec(fmt.Sprintln("INSERT INTO", prefix+s, "(user_id) VALUES (?)"))                  // computed
	db.Exec(string(fmt.Appendf(nil, "INSERT INTO t_order_%d (user_id) VALUES (?)", n)))     // computed
	db.Exec(fmt.Sprintf("INSERT INTO t_order (user_id) VALUES (%d)", n))                    // unknown
	db.Exec(fmt.Sprintf("INSERT INTO t_order (user_id, note) VALUES (?, '%s')", s))         // unknown
	db.Exec(fmt.Sprintf("INSERT INTO t_order (%s) VALUES (?)", s))                          // unknown
	db.Exec(fmt.Sprintf("INSERT INTO audit_%d (user_id) VALUES (?)", n))                    //
	db.Exec(fmt.Sprintf("INSERT INTO audit (t) SELECT id FROM t_order_%d", n))              //
	db.Exec(fmt.Sprintf("SELECT * FROM t_order_%d", n))                                     //
	db.Exec(fmt.Sprintf("DELETE FROM t_order_%d WHERE a = 'INSERT INTO t_order_%d'", n, n)) //
	db.Exec(fmt.Sprintf("INSERT INTO t_order_%d (user_id) VALUES (?)", 3))                  // filled
	db.Exec(fmt.Sprintf("INSERT INTO %s (user_id) VALUES (?)", typed))                      // filled
	db.Exec(fmt.Sprintf("INSERT INTO %s%s (user_id) VALUES (?)", prefix, strconv.Itoa(3)))  // filled
}

// Concatenated uses the operator +.
func Concatenated(ctx context.Context, db *sql.DB, n int, s string) {
	db.ExecContext(ctx, "INSERT INTO t_order_"+strconv.Itoa(n)+" (user_id) VALUES (?)") // computed
	db.QueryRow(into + s + values)                                                      // computed
	db.Exec(into + prefix + strconv.FormatInt(int64(n), 10) + values)                   // computed
	db.Exec(into + "`" + names.Prefix + s + "`" + values)                               // computed
	db.Exec(into + names.Table + values)                                                // filled
	db.Exec(into + string(typed) + values)                                              // filled
	db.Exec(into + "t_order" + values + ", (" + s + ")")                                // unknown

	q := "INSERT INTO " // computed
	q += prefix + s
	q += values
	db.Exec(q)
	var late string
	late += into
	late = late + prefix + s
	late += values
	db.Exec(late)    // computed
	constant := into // filled
	constant += "t_order"
	constant += values
	db.Exec(constant)
	r := fmt.Sprintf("SELECT * FROM t_order_%d", n)
	db.Query(r)
	r = fmt.Sprintf("INSERT INTO t_order_%d (user_id) VALUES (?)", n) // computed
	db.Exec(r)
	format := "INSERT INTO t_order_%d (user_id) VALUES (?)" // computed
	if s != "" {
		format = "REPLACE INTO t_order_%d (user_id) VALUES (?)" // computed
	}
	db.Exec(fmt.Sprintf(format, n))
	table := "t_order"
	if n > 0 {
		table = "t_order_1"
	}
	db.Exec(into + table + values)                                  // filled filled
	if stmt, err := db.Prepare(into + table + values); err == nil { // filled filled
		stmt.Exec(1)
	}
}

// Built uses builders.
func Built(db *sql.DB, n int, s string, ids []int) {
	var b strings.Builder
	b.WriteString("INSERT INTO ")
	b.WriteString(prefix)
	b.WriteString(s)
	b.WriteString(values)
	db.Exec(b.String()) // computed
	b.Reset()
	b.WriteString(into)
	b.WriteString("t_order")
	b.WriteString(values)
	db.Exec(b.String()) // filled
	var f strings.Builder
	fmt.Fprintf(&f, "INSERT INTO t_order_%d", n)
	fmt.Fprint(&f, values)
	db.Exec(f.String()) // computed
	buffer := &bytes.Buffer{}
	io.WriteString(buffer, "INSERT INTO t_order_")
	fmt.Fprintln(buffer, n)
	buffer.WriteString("(user_id) VALUES (?)")
	db.Exec(buffer.String()) // computed
	var loop strings.Builder
	loop.WriteString("INSERT INTO t_order (user_id) VALUES ")
	for i := range ids {
		if i > 0 {
			loop.WriteByte(',')
		}
		loop.WriteString("(?)")
	}
	db.Exec(loop.String()) // unknown
	var helped strings.Builder
	helped.WriteString(into)
	writeTable(&helped, n)
	helped.WriteString(values)
	db.Exec(helped.String()) // computed
}

func writeTable(b *strings.Builder, n int) { fmt.Fprintf(b, "t_order_%d", n) }

// Replaced uses functions of package strings.
func Replaced(db *sql.DB, n int, s string) {
	const pattern = "INSERT INTO {t} (user_id) VALUES (?)"
	db.Exec(strings.Join([]string{"INSERT INTO", prefix + s, "(user_id) VALUES (?)"}, " ")) // computed
	parts := []string{"INSERT INTO"}
	parts = append(parts, fmt.Sprintf("t_order_%d", n))
	parts = append(parts, "(user_id)", "VALUES (?)")
	db.Exec(strings.Join(parts, " "))                                                      // computed
	db.Exec(strings.Join([]string{"INSERT INTO", "t_order", "(user_id) VALUES (?)"}, " ")) // filled
	columns := []string{"user_id", s}
	db.Exec("INSERT INTO t_order (" + strings.Join(columns, ", ") + ") VALUES (?, ?)") // unknown
	db.Exec(strings.Replace(pattern, "{t}", prefix+s, 1))                              // computed
	db.Exec(strings.ReplaceAll(pattern, "{t}", s))                                     // computed
	db.Exec(strings.ReplaceAll(pattern, "{t}", "t_order_2"))                           // filled
	db.Exec(strings.NewReplacer("{t}", prefix+strconv.Itoa(n)).Replace(pattern))       // computed
	replacer := strings.NewReplacer("{t}", s)
	db.Exec(replacer.Replace(pattern))                                 // computed
	db.Exec(strings.TrimSpace("\n INSERT INTO t_order_" + s + values)) // computed
	db.Exec(strings.ToLower(into + "t_order" + values))                // filled
	db.Exec(strings.NewReplacer("{t}", "t_order_4").Replace(pattern))  // filled
	var out bytes.Buffer
	parsed := template.Must(template.New("q").Parse("INSERT INTO t_order_{{.N}} (user_id) VALUES (?)"))
	parsed.Execute(&out, n)
	db.Exec(out.String()) // computed
	var whole bytes.Buffer
	template.Must(template.New("q").Parse("INSERT INTO t_order (user_id) VALUES (?)")).Execute(&whole, n)
	db.Exec(whole.String()) // unknown
}

// Helped uses functions of the program.
func Helped(db *sql.DB, n int, s string, o order) {
	db.Exec(into + tableOf(n) + values)                       // computed
	db.Exec(into + o.table() + values)                        // computed
	db.Exec(insertInto(tableOf(n)))                           // computed
	db.Exec(insertInto("t_order_5"))                          // filled
	db.Exec(insertInto(quoted("t_order_5")))                  // filled
	db.Exec(statement(n))                                     // computed
	db.Exec(named(n))                                         // computed
	db.Exec(names.Insert(n))                                  // computed
	db.Exec(names.Insert(n) + " ON DUPLICATE KEY UPDATE a=1") // computed
	if q, err := checked(n); err == nil {                     // computed
		db.Exec(q)
	}
	closure := func(n int) string { return fmt.Sprintf("INSERT INTO t_order_%d (user_id) VALUES (?)", n) }
	db.Exec(closure(n))                                                    // computed
	run(db, fmt.Sprintf("INSERT INTO t_order_%d (user_id) VALUES (?)", n)) // computed
	run(db, "INSERT INTO t_order (user_id) VALUES (?)")                    // filled
	run(db, s)
	insert(db, "t_order_1")
	Generic(db, []int{n})
	w := writer{insert: fmt.Sprintf("INSERT INTO t_order_%d (user_id) VALUES (?)", n)} // computed
	db.Exec(w.insert)
	tables := map[int]string{0: "t_order_0", 1: "t_order_1"}
	db.Exec(into + tables[n%2] + values) // computed
	for i := 0; i < 4; i++ {
		db.Exec(fmt.Sprintf("INSERT INTO t_order_%d (user_id) VALUES (?)", i)) // computed
	}
	for _, table := range []string{"t_order_0", "t_order_1"} {
		db.Exec(into + table + values) // computed
	}
	var asked string
	db.QueryRow("SELECT name FROM tables").Scan(&asked)
	db.Exec(into + asked + values) // computed
}

// Returned uses functions with several returns or values.
func Returned(db *sql.DB, n int) {
	table, _ := tableOrError(n)
	db.Exec(into + table + values) // filled
	db.Exec(into + audit(n) + values)
}

func tableOrError(n int) (string, error) {
	if n < 0 {
		return "", errors.New("negative")
	}
	return "t_order", nil
}

func audit(n int) string {
	schema := "app"
	if n > 0 {
		schema = "old"
	}
	return schema + ".audit"
}

type order struct{ user int }

func (o order) table() string { return prefix + strconv.Itoa(o.user%4) }

type writer struct{ insert string }

func tableOf(n int) string { return fmt.Sprintf("t_order_%d", n) }

func insertInto(table string) string { return into + table + values }

func quoted(name string) string { return "`" + name + "`" }

func statement(n int) string {
	q := into + prefix
	q += strconv.Itoa(n)
	return q + values
}

func named(n int) (q string) {
	q = fmt.Sprintf("INSERT INTO t_order_%d (user_id) VALUES (?)", n)
	return
}

func checked(n int) (string, error) {
	if n < 0 {
		return "", errors.New("negative")
	}
	return fmt.Sprintf("INSERT INTO t_order_%d (user_id) VALUES (?)", n), nil
}

func run(db *sql.DB, q string) error { return runTwice(db, q) }

func runTwice(db *sql.DB, q string) error {
	_, err := db.Exec(q)
	return err
}

func insert(db *sql.DB, table string) {
	db.Exec("INSERT INTO " + table + " (user_id) VALUES (?)") // computed
}

func Generic[T any](db *sql.DB, list []T) {
	for _, v := range list {
		db.Exec(fmt.Sprintf("INSERT INTO t_order_%v (user_id) VALUES (?)", v)) // computed
	}
}

// Sqlx uses functions of sqlx.
func Sqlx(x *sqlx.DB, n int, s string) {
	x.NamedExec(fmt.Sprintf("INSERT INTO t_order_%d (user_id) VALUES (:user)", n), nil)         // computed
	x.MustExec("INSERT INTO " + s + " (user_id) VALUES (?)")                                    // computed
	sqlx.Get(x, nil, fmt.Sprintf("INSERT INTO t_order_%d (user_id) VALUES (?) RETURNING 1", n)) // computed
	x.Select(nil, fmt.Sprintf("SELECT * FROM t_order_%d", n))
	x.MustExec(x.Rebind(fmt.Sprintf("INSERT INTO t_order_%d (user_id) VALUES (?)", n))) // computed
}

// Unsent passes statements to functions that lint doesn't know.
func Unsent(b batch, n int, s string) map[string]string {
	b.Queue(fmt.Sprintf("INSERT INTO t_order_%d (user_id) VALUES (?)", n)) // computed
	b.Queue("INSERT INTO t_order_" + s + " SET user_id = 1")               // computed
	b.Queue("INSERT INTO " + tableOf(n) + " VALUES (1)")                   // computed
	b.Queue("INSERT INTO t_order (user_id) VALUES (" + s + ")")
	b.Queue(fmt.Sprintf("INSERT INTO audit_%d (user_id) VALUES (?)", n))
	fmt.Println(fmt.Errorf("INSERT INTO t_order_%d failed", n), "INSERT INTO t_order_"+s+" failed")
	fmt.Println("cannot run INSERT INTO t_order_" + s + " (user_id) VALUES (1)")
	return map[string]string{"insert": fmt.Sprintf("REPLACE INTO t_order_%d (user_id) VALUES (?)", n)} // computed
}

type batch interface {
	Queue(query string, args ...any)
}

// InsertSQL returns a statement for other programs.
func InsertSQL(n int) string {
	return fmt.Sprintf("INSERT INTO t_order_%d (user_id) VALUES (?)", n) // computed
}
