// Package debug serves a page about shardkey's connectors, similar to net/http/pprof:
//
//	db, connector, err := driver.Open(dsn)
//	…
//	http.Handle("/debug/shardkey/", debug.Handler(connector))
//
// The page shows whether keys can be generated. If a store is unavailable, it shows for how
// long they still can. Its tables list generators, the rule's tables, caches and errors. One
// form decodes a key, another shows how a statement is handled. With ?format=json the
// response is JSON.
//
// The page changes nothing: it answers GET and HEAD only, sends no statements and generates
// no keys. The free worker IDs are read from their stores at most every 5 seconds, with
// connections that leases don't use. The page waits for them for at most a second. It has no
// scripts, loads no other resources, and follows the browser's light or dark theme.
//
// Warning: the page shows names of tables, addresses of servers, worker IDs and error
// messages, but no passwords and no DSNs. Restrict access to it, as to /debug/pprof. The
// content of its forms is part of the URL, so proxies may log it.
package debug

import (
	"bytes"
	"context"
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

// Handler returns a handler that serves the page about connectors. It ignores nil connectors.
// [driver.ConnectorOf] returns the connector of a sql.DB. You can mount the handler at any
// path, with or without http.StripPrefix, because the page's links are relative.
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
	const longest = 64 << 10
	if len(r.URL.RawQuery) > longest {
		http.Error(w, fmt.Sprintf("expected a form of at most %d bytes", longest), http.StatusRequestURITooLong)
		return
	}
	query := r.URL.Query()
	chosen, _ := strconv.Atoi(query.Get("connector"))
	p := h.page(r.Context(), chosen, query.Get("key"), query.Get("statement"))
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
		http.Error(w, "cannot render the page: "+err.Error(), http.StatusInternalServerError)
		return
	}
	_, _ = w.Write(body.Bytes()) // the server leaves it out of the response to HEAD
}

// page returns the current content of the page. chosen is the number of the connector that
// the forms use.
func (h handler) page(ctx context.Context, chosen int, key, statement string) *page {
	p := &page{Time: time.Now().UTC(), Version: driver.Version(), Chosen: chosen, Key: key, Statement: statement}
	host, _ := os.Hostname()
	p.Process = fmt.Sprintf("%s, process %d, %s", host, os.Getpid(), runtime.Version())
	const storeTime = time.Second // for the free worker IDs
	ctx, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	for i, c := range h {
		v := view(ctx, c)
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
	// contentPolicy allows only the page's own style sheet and inline images.
	contentPolicy = fmt.Sprintf("default-src 'none'; style-src 'sha256-%s'; img-src data:; form-action 'self'; "+
		"base-uri 'none'; frame-ancestors 'none'", base64.StdEncoding.EncodeToString(styleHash[:]))

	pageTemplate = template.Must(template.New("page").Funcs(template.FuncMap{
		"css":     func() template.CSS { return template.CSS(pageCSS) },
		"columns": func(names ...string) []string { return names },
		"grouped": grouped,
		"clock":   func(t time.Time) string { return t.UTC().Format("15:04:05") },
		"time":    func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05.000 UTC") },
	}).Parse(pageHTML))
)
