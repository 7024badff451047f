// Package debug shows connectors on a page, as net/http/pprof shows a program:
//
//	db, connector, err := driver.Open(dsn)
//	…
//	http.Handle("/debug/shardkey/", debug.Handler(connector))
//
// The page shows whether keys can be generated, and for how long they still can while a
// store is unavailable. It has tables of the generators, the rule's tables, the caches and
// the errors. One form decodes a key, another shows how a statement is handled. With
// ?format=json the same is JSON.
//
// The page changes nothing: it answers GET and HEAD only, sends no statement and generates
// no key. It has no script, loads nothing, and follows the browser's light or dark theme.
//
// Warning: the page has names of tables, addresses of servers, worker IDs and error texts,
// but no password and no data source name. Serve it where you serve /debug/pprof, not to
// the world. What you type into a form is part of the address, and so of a proxy's log.
package debug

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strconv"
	"time"

	"github.com/shardkey/shardkey/driver"
)

// Handler returns a handler that shows the connectors. Nil connectors are left out. The
// connector of a sql.DB is returned by [driver.ConnectorOf]. You can mount the handler under
// any path, with or without http.StripPrefix: the page's links are relative.
func Handler(connectors ...*driver.Connector) http.Handler {
	return handler(slices.DeleteFunc(slices.Clone(connectors), func(c *driver.Connector) bool { return c == nil }))
}

type handler []*driver.Connector

func (h handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Cache-Control", "no-store")
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		header.Set("Allow", "GET, HEAD")
		http.Error(w, "expected GET or HEAD", http.StatusMethodNotAllowed)
		return
	}
	query := r.URL.Query()
	chosen, _ := strconv.Atoi(query.Get("connector"))
	p := h.page(chosen, query.Get("key"), query.Get("statement"))
	var body bytes.Buffer
	var err error
	switch query.Get("format") {
	case "":
		header.Set("Content-Type", "text/html; charset=utf-8")
		header.Set("Content-Security-Policy", contentPolicy)
		header.Set("Referrer-Policy", "no-referrer")
		err = pageTemplate.Execute(&body, p)
	case "json":
		header.Set("Content-Type", "application/json")
		e := json.NewEncoder(&body)
		e.SetIndent("", "  ")
		err = e.Encode(p)
	default:
		http.Error(w, "format: expected json, or none for the page", http.StatusBadRequest)
		return
	}
	if err != nil {
		http.Error(w, "the page cannot be written: "+err.Error(), http.StatusInternalServerError)
		return
	}
	_, _ = w.Write(body.Bytes()) // the server leaves it out of the response to HEAD
}

// page makes the page of this moment. The connector of the forms is chosen by its number.
func (h handler) page(chosen int, key, statement string) *page {
	p := &page{Time: time.Now().UTC(), Chosen: chosen, Key: key, Statement: statement}
	host, _ := os.Hostname()
	p.Process = fmt.Sprintf("%s, process %d, %s", host, os.Getpid(), runtime.Version())
	for i, c := range h {
		v := view(c)
		v.Number = i + 1
		p.Connectors, p.State = append(p.Connectors, v), max(p.State, v.State)
	}
	if chosen < 1 || chosen > len(h) {
		p.Chosen = 1
	}
	if key != "" && len(h) > 0 {
		p.Decoded = decode(h[p.Chosen-1], key)
	}
	if statement != "" && len(h) > 0 {
		p.Plan = plan(h[p.Chosen-1], statement)
	}
	return p
}

var (
	//go:embed page.html
	pageHTML string
	//go:embed page.css
	pageCSS string

	styleHash = sha256.Sum256([]byte(pageCSS))
	// contentPolicy allows the page's own style and nothing else.
	contentPolicy = fmt.Sprintf("default-src 'none'; style-src 'sha256-%s'; img-src data:; form-action 'self'; "+
		"base-uri 'none'; frame-ancestors 'none'", base64.StdEncoding.EncodeToString(styleHash[:]))

	pageTemplate = template.Must(template.New("page").Funcs(template.FuncMap{
		"css":     func() template.CSS { return template.CSS(pageCSS) },
		"columns": func(names ...string) []string { return names },
		"rows":    rows,
		"time":    func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05.000 UTC") },
	}).Parse(pageHTML))
)
