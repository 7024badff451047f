package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"image"
	"image/color/palette"
	"image/draw"
	"image/png"
	"io"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/shardkey/shardkey/debug"
	"github.com/shardkey/shardkey/internal/test/must"
	testserver "github.com/shardkey/shardkey/internal/test/server"
)

// browser starts Chromium until the end of the test.
func browser(t *testing.T) context.Context {
	t.Helper()
	testserver.MayStart(t)
	ctx, end := chromedp.NewContext(t.Context(), chromedp.WithAllocatorOptions(chromedp.NoSandbox, chromedp.WSURLReadTimeout(10*time.Minute)))
	t.Cleanup(end)
	err := chromedp.Do(ctx)
	if errors.Is(err, exec.ErrNotFound) {
		testserver.Missing(t, "browser", fmt.Errorf("no browser is installed, make servers installs Debian's: %w", err))
	}
	must.Do(t, err)
	return ctx
}

// tab is a tab of the browser, with the browser's reports about its pages.
type tab struct {
	context.Context
	t  *testing.T
	mu sync.Mutex
	// complaints are errors in the console, and requests to other addresses.
	complaints []string
}

func openTab(t *testing.T, browser context.Context, address string) *tab {
	t.Helper()
	tab := &tab{t: t}
	ctx, end := chromedp.NewContext(browser, chromedp.WithListener(func(event any) {
		tab.mu.Lock()
		defer tab.mu.Unlock()
		switch e := event.(type) {
		case *log.EventEntryAdded:
			tab.complaints = append(tab.complaints, e.Entry.Text)
		case *runtime.EventExceptionThrown:
			tab.complaints = append(tab.complaints, e.ExceptionDetails.Text)
		case *network.EventRequestWillBeSent:
			if url := e.Request.URL; !strings.HasPrefix(url, address) && url != "data:," {
				tab.complaints = append(tab.complaints, "request to "+url)
			}
		}
	}))
	t.Cleanup(end)
	tab.Context = ctx
	return tab
}

func (tab *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	tab.t.Helper()
	must.Do(tab.t, chromedp.Do(tab, steps...))
}

// prefer selects the light or the dark theme.
func (tab *tab) prefer(theme string) {
	tab.t.Helper()
	prefers := []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}}
	media := emulation.SetEmulatedMediaParams{Features: prefers}
	must.Get(chromedp.Call(tab, emulation.SetEmulatedMedia, media))(tab.t)
}

// submit clicks a button that loads a page.
func (tab *tab) submit(button string) {
	tab.t.Helper()
	must.Get(chromedp.RunResponse(tab, chromedp.Click(button)))(tab.t)
}

func read[T any](tab *tab, action chromedp.Action[T]) T {
	tab.t.Helper()
	return must.Get(chromedp.Run(tab, action))(tab.t)
}

func (tab *tab) check() {
	tab.t.Helper()
	tab.mu.Lock()
	defer tab.mu.Unlock()
	if len(tab.complaints) > 0 {
		tab.t.Errorf("the browser reports: %q", tab.complaints)
	}
}

// pages serves the debug page of two programs: one that works, and one that gets no worker IDs.
// It returns the address.
func pages(t *testing.T) (address string) {
	t.Helper()
	dsn := testserver.Database(t)
	failing, good := mustOpen(t, dsn, withoutStore(ruleText)), mustOpen(t, dsn, inDirectory(ruleText, t.TempDir()))
	must.Fail(t, failing.order(t.Context(), 1), "a key without a worker ID")
	must.Do(t, good.order(t.Context(), 1))
	s := httptest.NewServer(debug.Handler(good.connector, failing.connector))
	t.Cleanup(s.Close)
	return s.URL
}

// measured contains the browser's measurements of a page.
type measured struct {
	Background  string
	LowContrast []string // text with a contrast below 4.5 to 1, the limit of WCAG
	Unnamed     int      // form fields without a label, tables without headers
	Headings    string   // levels of the headings, in order
	Width       int
	Hidden      int // tables that are wider than the window
}

const measure = `(() => {
	const parts = (c) => c.match(/[\d.]+/g).map(Number);
	const light = (c) => {
		const [r, g, b] = parts(c).map((v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
		return 0.2126 * r + 0.7152 * g + 0.0722 * b;
	};
	const background = (el) => {
		for (; el; el = el.parentElement) {
			const c = getComputedStyle(el).backgroundColor, p = parts(c);
			if (p.length < 4 || p[3] === 1) return c;
		}
		return "rgb(255, 255, 255)";
	};
	const low = [];
	for (const el of document.querySelectorAll("body *")) {
		if (!el.checkVisibility() || ![...el.childNodes].some((n) => n.nodeType === 3 && n.data.trim())) continue;
		if (el.tagName === "OPTION") continue;
		const a = light(getComputedStyle(el).color), b = light(background(el));
		if ((Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05) < 4.5) low.push(el.textContent.trim().slice(0, 40));
	}
	return {
		Background: getComputedStyle(document.body).backgroundColor, LowContrast: low,
		Unnamed: [...document.querySelectorAll("input, textarea, select")].filter((i) => i.labels.length === 0).length +
			[...document.querySelectorAll("table")].filter((t) => !t.querySelector("th[scope=col]")).length,
		Headings: [...document.querySelectorAll("h1, h2, h3")].map((h) => h.tagName[1]).join(""),
		Width: document.documentElement.scrollWidth,
		Hidden: [...document.querySelectorAll("[role=region]")].filter((r) => r.scrollWidth > r.clientWidth).length,
	};
})()`

func TestPage_inBrowser(t *testing.T) {
	browser, address := browser(t), pages(t)
	for _, theme := range []string{"light", "dark"} {
		for _, width := range []int64{1200, 360} {
			t.Run(fmt.Sprintf("%s %d", theme, width), func(t *testing.T) {
				tab := openTab(t, browser, address)
				tab.prefer(theme)
				tab.do(chromedp.EmulateViewport(width, 800), chromedp.Navigate(address))
				checkForms(tab)
				page := read(tab, chromedp.Evaluate[measured](measure))
				if dark := page.Background == "rgb(15, 18, 22)"; dark != (theme == "dark") {
					t.Errorf("the background is %s", page.Background)
				}
				if len(page.LowContrast) > 0 || page.Unnamed > 0 || page.Width > int(width) || page.Hidden > 0 || page.Headings != "123333233332233" {
					t.Errorf("%+v", page)
				}
				tab.check()
			})
		}
	}
}

// checkForms checks the content of the page, and submits its forms.
func checkForms(tab *tab) {
	tab.t.Helper()
	must.Equal(tab.t, read(tab, chromedp.Title()), "shardkey: failing", "title")
	for _, text := range []string{"can lose committed writes", "shardkey_worker", "LEAF_SEGMENT"} {
		must.Contain(tab.t, read(tab, chromedp.Text("main")), text)
	}
	tab.do(chromedp.SendKeys("#decode input", "1084326182498902016"))
	tab.submit("#decode button")
	must.Equal(tab.t, read(tab, chromedp.Text("#decode dd")), "2025-01-10 04:05:07.714 UTC", "time of the key")
	tab.do(chromedp.SendKeys("#plan textarea", "INSERT INTO t_token (user_id) VALUES (?)"))
	tab.submit("#plan button")
	must.Equal(tab.t, read(tab, chromedp.Text("#plan pre")), "INSERT INTO t_token (user_id, `token`) VALUES (?, ?)", "sent")
}

// TestPage_runsNothing submits a script in the page's forms, which must not run.
func TestPage_runsNothing(t *testing.T) {
	browser, address := browser(t), pages(t)
	tab := openTab(t, browser, address)
	const attack = `<script>window.hacked=1</script><img src=x onerror="window.hacked=1">"'</textarea>`
	for field, param := range map[string]string{"input": "key", "textarea": "statement"} {
		tab.do(chromedp.Navigate(address + "/?" + url.Values{param: {attack}}.Encode()))
		const ran = "window.hacked + ' ' + document.querySelectorAll('img, script').length"
		must.Equal(t, read(tab, chromedp.Evaluate[string](ran)), "undefined 0", param)
		must.Equal(t, read(tab, chromedp.Value(field)), attack, param, "shows")
	}
	tab.check()
}

var update = flag.Bool("update", false, "write docs/debug-page.png and docs/debug-page-dark.png")

// rename replaces the names of this machine and the addresses of the test's server in the page. It returns the position of the table of caches.
const rename = `(() => {
	const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
	while (walk.nextNode()) {
		walk.currentNode.data = walk.currentNode.data.replace(/ · [^·]*, process \d+,/, " · shop-1, process 1,")
			.replace(/127\.0\.0\.1:\d+/g, "db1:3306");
	}
	return document.querySelectorAll("h3")[2].getBoundingClientRect().top;
})()`

// TestPage_picture checks the pictures of the page in the READMEs, during an outage of the server.
// Run it with -update to write them.
func TestPage_picture(t *testing.T) {
	browser, server := browser(t), testserver.StartSQL(t)
	must.Get(must.Open(t, "mysql", server.DSN()).Exec("CREATE DATABASE shop"))(t)
	rule := strings.Replace(ruleText, "{type: SQL}", "{type: SQL, props: {lease: 30s}}", 1)
	shop, err := openShop(t.Context(), io.Discard, server.DSN()+"shop", rule)
	must.Do(t, err)
	t.Cleanup(func() { _ = shop.db.Close() }) // the worker ID can't be released
	for user := range int64(40) {
		must.Do(t, shop.order(t.Context(), user))
	}
	server.Stop()
	tick := time.Tick(50 * time.Millisecond)
	for page := ""; !strings.Contains(page, "connection refused"); <-tick { // until a renewal fails
		_, page = shop.read(t, "/debug/shardkey/?format=json")
	}
	s := httptest.NewServer(debug.Handler(shop.connector))
	defer s.Close()
	for theme, file := range map[string]string{"light": "../../docs/debug-page.png", "dark": "../../docs/debug-page-dark.png"} {
		picture := takePicture(openTab(t, browser, s.URL), s.URL, theme)
		if *update {
			must.Do(t, os.WriteFile(file, picture, 0o644))
		}
	}
}

// takePicture returns a picture of the page down to its tables of generators and tables.
func takePicture(tab *tab, address, theme string) []byte {
	tab.t.Helper()
	tab.prefer(theme)
	tab.do(chromedp.EmulateViewport(1000, 800), chromedp.Navigate(address))
	title := read(tab, chromedp.Title())
	if title != "shardkey: warning" && (*update || title != "shardkey: failing") { // failing after the lease
		tab.t.Errorf("title\nhave: %s\nwant: shardkey: warning", title)
	}
	height := read(tab, chromedp.Evaluate[float64](rename))
	tab.do(chromedp.EmulateViewport(1000, int64(height)))
	screen := must.Get(png.Decode(bytes.NewReader(read(tab, chromedp.CaptureScreenshot()))))(tab.t)
	small := image.NewPaletted(screen.Bounds(), palette.Plan9)
	draw.Draw(small, small.Rect, screen, screen.Bounds().Min, draw.Src)
	var picture bytes.Buffer
	compress := png.Encoder{CompressionLevel: png.BestCompression}
	if err := compress.Encode(&picture, small); err != nil || small.Rect.Dx() != 1000 || picture.Len() > 150_000 {
		tab.t.Errorf("have: %d bytes, %s, %v\nwant: at most 150,000 bytes, 1,000 wide", picture.Len(), small.Rect, err)
	}
	tab.check()
	return picture.Bytes()
}
