// Package debug shows connectors on a page, as net/http/pprof shows a program:
//
//	db, err := sql.Open("shardkey", dsn)
//	…
//	http.Handle("/debug/shardkey/", debug.Handler(driver.ConnectorOf(db)))
//
// The page says whether keys can be made, and for how long they still can when a
// store is away; each generator with its worker id, its lease and its segment; the
// rule; counters, with charts of the last five minutes. It has a box that takes a key
// apart and one that shows what becomes of a statement.
//
// It changes nothing: it answers GET and HEAD only, sends no statement and makes no
// key. It loads nothing from elsewhere, works without its script, and follows the
// browser's light or dark. ?format=json returns the same as JSON.
//
// It shows tables, servers' addresses, worker ids and the texts of errors, but no
// password and no data source name. Who may see it is for the program to decide: serve
// it where /debug/pprof is served, not to the world. What is typed into the boxes is
// part of the address, and so of a proxy's log.
package debug
