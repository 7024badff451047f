package debug

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/shardkey/shardkey/driver"
)

// Handler returns a handler that shows the connectors: those of sql.DBs come from
// [driver.ConnectorOf]. Nil ones are left out. It may be mounted under any path, with
// or without http.StripPrefix, as all its links are relative to the address that it is
// called by.
//
// The charts show what the handler has seen: it looks at the connectors when it is
// called, and runs nothing in between.
func Handler(connectors ...*driver.Connector) http.Handler {
	h := &handler{now: time.Now}
	for _, c := range connectors {
		if c != nil {
			h.connectors = append(h.connectors, &shown{connector: c})
		}
	}
	return h
}

type handler struct {
	connectors []*shown
	now        func() time.Time
}

// The boxes' fields, as the address has them.
const (
	paramFormat    = "format"
	paramConnector = "connector" // its number on the page, from 1
	paramKey       = "key"
	paramStatement = "statement"
)

// maxInput is how long what is typed into a box may be, in bytes.
const maxInput = 64 << 10

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Cache-Control", "no-store")
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		header.Set("Allow", "GET, HEAD")
		http.Error(w, "this page only shows: GET and HEAD", http.StatusMethodNotAllowed)
		return
	}
	query := r.URL.Query()
	if len(query.Get(paramKey)) > maxInput || len(query.Get(paramStatement)) > maxInput {
		http.Error(w, "the key or the statement is longer than "+strconv.Itoa(maxInput)+" bytes", http.StatusRequestURITooLong)
		return
	}
	page := h.look(query.Get(paramConnector), query.Get(paramKey), query.Get(paramStatement))
	var body bytes.Buffer
	var err error
	switch format := query.Get(paramFormat); format {
	case "", "html":
		header.Set("Content-Type", "text/html; charset=utf-8")
		header.Set("Content-Security-Policy", contentPolicy)
		header.Set("Referrer-Policy", "no-referrer")
		err = pageTemplate.Execute(&body, page)
	case "json":
		header.Set("Content-Type", "application/json")
		e := json.NewEncoder(&body)
		e.SetIndent("", "  ")
		err = e.Encode(page)
	default:
		http.Error(w, "there is no such format; known: html, json", http.StatusBadRequest)
		return
	}
	if err != nil {
		header.Del("Content-Security-Policy")
		http.Error(w, "the page cannot be written: "+err.Error(), http.StatusInternalServerError)
		return
	}
	header.Set("Content-Length", strconv.Itoa(body.Len()))
	if r.Method == http.MethodGet {
		_, _ = w.Write(body.Bytes())
	}
}

// look makes the page of this moment. Arguments are what was typed into the boxes; key
// and statement are empty when the box was not used.
func (h *handler) look(connector, key, statement string) *page {
	now := h.now()
	p := &page{Time: now, Process: process(), Key: key, Statement: statement}
	for i, c := range h.connectors {
		p.Connectors = append(p.Connectors, c.look(i+1, now))
	}
	chosen, err := strconv.Atoi(connector)
	if err != nil || chosen < 1 || chosen > len(h.connectors) {
		chosen = 1
	}
	p.Chosen = chosen
	if len(h.connectors) == 0 {
		return p
	}
	c := h.connectors[chosen-1].connector
	if key != "" {
		p.Decoded = decode(c, key, now)
	}
	if statement != "" {
		p.Plan = plan(c, statement)
	}
	p.State = slices.MaxFunc(p.Connectors, func(a, b connectorView) int { return int(a.State - b.State) }).State
	return p
}
