package debug_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/shardkey/shardkey/debug"
	"github.com/shardkey/shardkey/driver"
	"github.com/shardkey/shardkey/internal/testbrowser"
)

// go test ./debug -run TestPage/picture -picture ../docs/debug-page.png
var picture = flag.String("picture", "", "write the picture of the documentation to this `file`")

var (
	light = testbrowser.View{Width: 1200, Height: 900}
	dark  = testbrowser.View{Width: 1200, Height: 900, Dark: true}
)

// past returns a handler that has seen four minutes of work.
func past(t testing.TB, worlds ...*world) http.Handler {
	t.Helper()
	var connectors []*driver.Connector
	for _, w := range worlds {
		connectors = append(connectors, w.connector)
	}
	h := debug.Handler(connectors...)
	random := rand.New(rand.NewPCG(1, 2))
	now := time.Now()
	for back := 4 * time.Minute; back >= 0; back -= 2 * time.Second {
		debug.SetNow(h, func() time.Time { return now.Add(-back) })
		for _, w := range worlds {
			w.work(t, random)
		}
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
	}
	debug.SetNow(h, time.Now)
	return h
}

// serve serves a handler below a path, with its prefix taken away or not.
func serve(t testing.TB, h http.Handler, path string, strip bool) (address string) {
	t.Helper()
	if strip {
		h = http.StripPrefix(strings.TrimSuffix(path, "/"), h)
	}
	mux := http.NewServeMux()
	mux.Handle(path, h)
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s.URL + path
}

// checkQuiet fails when the browser had something to say against the page, or when it
// asked anybody else for something.
func checkQuiet(t testing.TB, p *testbrowser.Page, address string) {
	t.Helper()
	if len(p.Errors) > 0 {
		t.Errorf("the browser says: %q", p.Errors)
	}
	for _, request := range p.Requests {
		if !strings.HasPrefix(request, address) && request != "data:," {
			t.Errorf("the page asked for %s", request)
		}
	}
}

// One browser shows all, as it takes a while to start.
func TestPage(t *testing.T) {
	b := testbrowser.Start(t)
	for name, test := range map[string]func(*testing.T, *testbrowser.Browser){
		"underAnyPath": pageUnderAnyPath, "follows": pageFollows, "lightAndDark": pageLightAndDark,
		"withoutScript": pageWithoutScript, "attack": pageAttack, "picture": pagePicture,
	} {
		t.Run(name, func(t *testing.T) { test(t, b) })
	}
}

func pageUnderAnyPath(t *testing.T, b *testbrowser.Browser) {
	for _, at := range []struct {
		path  string
		strip bool
	}{{"/debug/shardkey/", false}, {"/debug/shardkey/", true}, {"/", false}, {"/a/b/c", false}, {"/deep/er/", true}} {
		t.Run(fmt.Sprintf("%s %v", at.path, at.strip), func(t *testing.T) {
			w := newWorld(t)
			address := serve(t, past(t, w), at.path, at.strip)
			p := b.Open(t, light)
			p.Go(address)
			if have := p.Text("document.querySelector('.verdict span').textContent"); have != "keys can be made" {
				t.Errorf("the page says %q", have)
			}
			if have := p.Text("document.title"); have != "✓ shardkey" {
				t.Errorf("its title is %q", have)
			}
			// A form leads to the same address.
			p.Eval("document.getElementById('statement').value = 'INSERT INTO t_user (name) VALUES (?)'; document.querySelector('#plan button').click()", nil)
			p.AwaitLoad()
			if have := p.Text("document.querySelector('#plan pre').textContent"); have != "INSERT INTO t_user (name, `user_id`) VALUES (?, ?)" {
				t.Errorf("sent: %q", have)
			}
			if have := p.Text("location.origin + location.pathname + location.hash"); have != address+"#plan" {
				t.Errorf("the form leads to %s", have)
			}
			p.Eval("document.getElementById('key').value = '1084326182498902016'; document.querySelector('#decode button').click()", nil)
			p.AwaitLoad()
			if have := p.Text("document.querySelector('#decode dd').textContent"); !strings.HasPrefix(have, "2025-01-10 04:05:07.714 UTC") {
				t.Errorf("the key is of %q", have)
			}
			checkQuiet(t, p, address)
		})
	}
}

// What happens shows without a reload, and a program that has gone does too.
func pageFollows(t *testing.T, b *testbrowser.Browser) {
	w := newWorld(t)
	h := past(t, w)
	gone := false
	address := serve(t, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if gone {
			http.Error(rw, "gone", http.StatusBadGateway)
			return
		}
		h.ServeHTTP(rw, r)
	}), "/debug/shardkey/", false)
	p := b.Open(t, light)
	p.Go(address)
	// what the page then shows, once it does
	await := func(expression string) {
		t.Helper()
		p.Eval("new Promise((done) => { const look = () => "+expression+" ? done(1) : setTimeout(look, 20); look() })", nil)
	}
	p.Eval("document.getElementById('key').value = '12'; document.querySelector('summary').click()", nil)
	w.storeAway(time.Now(), time.Hour)
	await("document.querySelector('.verdict.warning span').textContent.includes('unless the lease is renewed') && document.title.startsWith('▲')")
	w.storeAway(time.Now(), -time.Second)
	await("document.querySelector('#verdict-1 .failing') && document.title.startsWith('✕')")
	w.well(time.Now().Add(time.Hour))
	await("document.querySelector('#verdict-1 .ok')")
	if p.Text("document.getElementById('key').value") != "12" || p.Text("String(document.querySelector('details').open)") != "false" {
		t.Error("what the reader had typed and closed is not as it was")
	}
	checkQuiet(t, p, address)
	gone = true
	await("document.getElementById('stale').textContent.includes('does not answer')")
	gone = false
	await("document.getElementById('stale').textContent === ''")
}

func pageLightAndDark(t *testing.T, b *testbrowser.Browser) {
	w := newWorld(t)
	w.storeAway(time.Now(), time.Hour)
	w.segment.set(fallenSegment)
	address := serve(t, past(t, w, newWorld(t)), "/", false)
	for _, v := range []testbrowser.View{light, dark, {Width: 360, Height: 700}, {Width: 360, Height: 700, Dark: true}} {
		p := b.Open(t, v)
		p.Go(address + "?key=1084326182498902016&statement=INSERT+INTO+t_order+(a)+VALUES+(1)")
		var page struct {
			Back           string
			Low            []string // texts of too little contrast
			Nameless, Wide int
		}
		p.Eval(measure, &page)
		if isDark := page.Back == "rgb(15, 18, 22)"; isDark != v.Dark {
			t.Errorf("%+v: the page's background is %s", v, page.Back)
		}
		if len(page.Low) > 0 {
			t.Errorf("%+v: of too little contrast: %q", v, page.Low)
		}
		if page.Nameless > 0 {
			t.Errorf("%+v: %d inputs or pictures have no name", v, page.Nameless)
		}
		if page.Wide > v.Width {
			t.Errorf("%+v: the page is %d wide", v, page.Wide)
		}
		checkQuiet(t, p, address)
	}
}

// measure looks at what is shown: the background's colour, texts whose contrast is below
// 4.5 to 1 (WCAG 2.2, 1.4.3), and what has no name for those who do not see it.
const measure = `(() => {
	const parts = (c) => c.match(/[\d.]+/g).map(Number);
	const light = (c) => {
		const [r, g, b] = parts(c).map((v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
		return 0.2126 * r + 0.7152 * g + 0.0722 * b;
	};
	const back = (el) => {
		for (; el; el = el.parentElement) {
			const c = getComputedStyle(el).backgroundColor, p = parts(c);
			if (p.length < 4 || p[3] === 1) return c;
		}
		return "rgb(255, 255, 255)";
	};
	const low = [];
	for (const el of document.querySelectorAll("body *")) {
		if (!el.checkVisibility() || ![...el.childNodes].some((n) => n.nodeType === 3 && n.data.trim())) continue;
		if (["SCRIPT", "STYLE", "NOSCRIPT", "OPTION"].includes(el.tagName)) continue;
		const a = light(getComputedStyle(el).color), b = light(back(el));
		if ((Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05) < 4.5) low.push(el.textContent.trim().slice(0, 40));
	}
	const nameless = [...document.querySelectorAll("input, textarea, select")].filter((i) => i.labels.length === 0).length +
		[...document.querySelectorAll("svg")].filter((s) => !s.ariaLabel && s.ariaHidden !== "true").length +
		[...document.querySelectorAll("[id]")].filter((e) => document.querySelectorAll("#" + e.id).length > 1).length;
	return { Back: getComputedStyle(document.body).backgroundColor, Low: low, Nameless: nameless, Wide: document.documentElement.scrollWidth };
})()`

func pageWithoutScript(t *testing.T, b *testbrowser.Browser) {
	address := serve(t, past(t, newWorld(t)), "/debug/shardkey/", false)
	p := b.Open(t, testbrowser.View{Width: 1200, Height: 900, NoScript: true})
	p.Go(address + "?statement=INSERT+INTO+t_user+(a)+VALUES+(?)")
	for expression, want := range map[string]string{
		"document.querySelector('#plan pre').textContent":             "INSERT INTO t_user (a, `user_id`) VALUES (?, ?)",
		"String(document.getElementById('follow').checkVisibility())": "false",
		"document.querySelector('noscript').textContent":              "– reload the page for newer figures",
		"String(document.querySelectorAll('.chart .line').length)":    "8",
	} {
		if have := p.Text(expression); have != want {
			t.Errorf("%s\nhave: %s\nwant: %s", expression, have, want)
		}
	}
	checkQuiet(t, p, address)
}

// Nothing that is named, said or typed runs.
func pageAttack(t *testing.T, b *testbrowser.Browser) {
	w := newWorldOf(t, "t_order", "leased"+attack)
	attacked := fmt.Errorf("said: %s", attack)
	w.storeAway(time.Now(), -time.Second)
	h := *w.leased.health.Load()
	h.Err, h.LastError = attacked, attacked
	w.leased.set(h)
	address := serve(t, past(t, w), "/", false)
	p := b.Open(t, light)
	for _, box := range []string{"key", "statement"} {
		p.Go(address + "?" + box + "=" + urlEscape(attack))
		if have := p.Text("String(window.hacked) + document.querySelectorAll('main img, main script').length"); have != "undefined0" {
			t.Errorf("in %s: %s", box, have)
		}
		if have := p.Text("document.getElementById('" + box + "').value"); have != attack {
			t.Errorf("%s shows %q", box, have)
		}
	}
	checkQuiet(t, p, address)
}

// With -picture it writes the picture of the documentation, else it only makes one.
func pagePicture(t *testing.T, b *testbrowser.Browser) {
	w := newWorld(t)
	h := past(t, w)
	w.well(time.Now())
	w.storeAway(time.Now(), 2900*time.Millisecond)
	p := b.Open(t, testbrowser.View{Width: 1180, Height: 780})
	p.Go(serve(t, h, "/debug/shardkey/", false))
	png := p.Picture(false)
	if len(png) < 10_000 {
		t.Errorf("a picture of %d bytes", len(png))
	}
	if *picture != "" {
		if err := os.WriteFile(*picture, png, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
