// Package testbrowser opens pages in a real browser: Chromium without a window, driven
// by the DevTools protocol through a pipe. It is for tests.
//
// Where there is no Chromium a test is skipped, with the words that help, or fails
// where servers are required, as with package testserver.
package testbrowser

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/shardkey/shardkey/internal/testserver"
)

// programs are the names that Chromium has on different systems.
var programs = []string{"chromium", "chromium-browser", "google-chrome"}

// A Browser is a Chromium of one test, which ends with it. Its methods, and those of its
// pages, are for one goroutine.
type Browser struct {
	t     testing.TB // of the page that is used
	log   string     // the file of what it prints
	to    *os.File
	from  *bufio.Reader
	last  int
	pages map[string]*Page // by session
}

// Start starts a browser.
func Start(t testing.TB) *Browser {
	t.Helper()
	if testing.Short() {
		t.Skip("-short: no browser is started")
	}
	path, err := find()
	if err != nil {
		testserver.Missing(t, err)
	}
	readCommands, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	from, writeAnswers, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, "--headless", "--no-sandbox", "--remote-debugging-pipe", "--user-data-dir="+t.TempDir(),
		"--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-extensions", "--disable-sync",
		"--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", "--force-color-profile=srgb", "--font-render-hinting=none", "about:blank")
	cmd.ExtraFiles = []*os.File{readCommands, writeAnswers} // 3 and 4, which it knows
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = log
	err = cmd.Start()
	_, _, _ = readCommands.Close(), writeAnswers.Close(), log.Close() // the browser has its own
	if err != nil {
		t.Fatal(err)
	}
	b := &Browser{t: t, log: log.Name(), to: to, from: bufio.NewReader(from), pages: map[string]*Page{}}
	t.Cleanup(func() {
		_ = b.send("", "Browser.close", nil)
		_ = to.Close()
		_ = cmd.Wait()
		_ = from.Close()
	})
	return b
}

func find() (string, error) {
	for _, name := range programs {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errors.New("chromium is not there: apt-get install chromium")
}

// View is how a page is shown.
type View struct {
	Width, Height int
	Dark          bool // what the system is said to prefer
	NoScript      bool
}

// A Page is a page of a browser.
type Page struct {
	t       testing.TB
	b       *Browser
	session string
	loaded  bool
	// Requests are the addresses that were asked for, and Errors what the browser has
	// to say against the page: errors, warnings, what its policy kept from loading.
	Requests, Errors []string
}

// Open opens an empty page, for as long as the test lasts: the browser's own or one below
// it.
func (b *Browser) Open(t testing.TB, v View) *Page {
	t.Helper()
	b.t = t
	var target struct{ TargetID string }
	b.call("", "Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	var attached struct{ SessionID string }
	b.call("", "Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &attached)
	p := &Page{t: t, b: b, session: attached.SessionID}
	b.pages[p.session] = p
	t.Cleanup(func() {
		b.t = t
		delete(b.pages, p.session)
		b.call("", "Target.closeTarget", map[string]any{"targetId": target.TargetID}, nil)
	})
	for _, domain := range []string{"Page", "Runtime", "Log", "Network"} {
		p.call(domain+".enable", nil, nil)
	}
	scheme := "light"
	if v.Dark {
		scheme = "dark"
	}
	p.call("Emulation.setEmulatedMedia", map[string]any{"features": []any{map[string]any{"name": "prefers-color-scheme", "value": scheme}}}, nil)
	p.call("Emulation.setScriptExecutionDisabled", map[string]any{"value": v.NoScript}, nil)
	p.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": v.Width, "height": v.Height, "deviceScaleFactor": 1, "mobile": false}, nil)
	return p
}

// Go opens an address and returns when the page has loaded.
func (p *Page) Go(url string) {
	p.t.Helper()
	p.loaded = false
	p.call("Page.navigate", map[string]any{"url": url}, nil)
	p.AwaitLoad()
}

// AwaitLoad returns when a page that something led to has loaded.
func (p *Page) AwaitLoad() {
	p.t.Helper()
	for !p.loaded {
		p.b.read()
	}
	p.loaded = false
}

// Eval evaluates an expression of JavaScript into out; nil leaves the value out. A
// promise is waited for.
func (p *Page) Eval(expression string, out any) {
	p.t.Helper()
	var answer struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails *struct{ Exception struct{ Description string } }
	}
	p.call("Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true, "awaitPromise": true}, &answer)
	if e := answer.ExceptionDetails; e != nil {
		p.t.Fatalf("%s: %s", expression, e.Exception.Description)
	}
	if out != nil {
		if err := json.Unmarshal(answer.Result.Value, out); err != nil {
			p.t.Fatalf("%s: %v: %s", expression, err, answer.Result.Value)
		}
	}
}

// Text is what an expression that gives a text gives.
func (p *Page) Text(expression string) (text string) {
	p.t.Helper()
	p.Eval(expression, &text)
	return text
}

// Picture is the page as a PNG: the whole of it, or what the view shows.
func (p *Page) Picture(whole bool) []byte {
	p.t.Helper()
	var picture struct{ Data string }
	p.call("Page.captureScreenshot", map[string]any{"format": "png", "captureBeyondViewport": whole, "optimizeForSpeed": false}, &picture)
	data, err := base64.StdEncoding.DecodeString(picture.Data)
	if err != nil {
		p.t.Fatal(err)
	}
	return data
}

func (p *Page) call(method string, params, result any) {
	p.t.Helper()
	p.b.t = p.t
	p.b.call(p.session, method, params, result)
}

// call sends a command and reads up to its answer.
func (b *Browser) call(session, method string, params, result any) {
	b.t.Helper()
	if err := b.send(session, method, params); err != nil {
		b.t.Fatalf("%s: %v", method, err)
	}
	for id := b.last; ; {
		m := b.read()
		if m.ID != id {
			continue
		}
		if m.Error != nil {
			b.t.Fatalf("%s: %s", method, m.Error.Message)
		}
		if result != nil {
			if err := json.Unmarshal(m.Result, result); err != nil {
				b.t.Fatalf("%s: %v", method, err)
			}
		}
		return
	}
}

func (b *Browser) send(session, method string, params any) error {
	b.last++
	message := map[string]any{"id": b.last, "method": method}
	if params != nil {
		message["params"] = params
	}
	if session != "" {
		message["sessionId"] = session
	}
	text, err := json.Marshal(message)
	if err != nil {
		return err
	}
	_, err = b.to.Write(append(text, 0))
	return err
}

type message struct {
	ID        int
	Method    string
	SessionID string
	Params    json.RawMessage
	Result    json.RawMessage
	Error     *struct{ Message string }
}

// read reads a message, and notes what it says of a page.
func (b *Browser) read() message {
	b.t.Helper()
	text, err := b.from.ReadBytes(0)
	if err != nil {
		said, _ := os.ReadFile(b.log)
		b.t.Fatalf("the browser has ended: %v\n%s", err, said)
	}
	var m message
	if err := json.Unmarshal(text[:len(text)-1], &m); err != nil {
		b.t.Fatal(err)
	}
	if p := b.pages[m.SessionID]; p != nil {
		p.note(m)
	}
	return m
}

func (p *Page) note(m message) {
	var said struct {
		Request          struct{ URL string }
		Entry            struct{ Level, Text, URL string }
		Type             string
		Args             []struct{ Value any }
		ExceptionDetails struct{ Text string }
	}
	_ = json.Unmarshal(m.Params, &said)
	switch m.Method {
	case "Page.loadEventFired":
		p.loaded = true
	case "Network.requestWillBeSent":
		p.Requests = append(p.Requests, said.Request.URL)
	case "Log.entryAdded":
		if said.Entry.Level == "error" || said.Entry.Level == "warning" {
			p.Errors = append(p.Errors, fmt.Sprintf("%s (%s)", said.Entry.Text, said.Entry.URL))
		}
	case "Runtime.consoleAPICalled":
		if said.Type == "error" || said.Type == "warning" || said.Type == "assert" {
			p.Errors = append(p.Errors, fmt.Sprint(said.Type, said.Args))
		}
	case "Runtime.exceptionThrown":
		p.Errors = append(p.Errors, said.ExceptionDetails.Text)
	}
}
