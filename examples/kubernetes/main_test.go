package main

import (
	"bytes"
	"database/sql"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	testserver "github.com/shardkey/shardkey/internal/test/server"
	"github.com/shardkey/shardkey/rule"
)

type object = map[string]any

// manifest returns the objects of manifest.yaml by their kind.
func manifest(t *testing.T) map[string]object {
	t.Helper()
	text, err := os.ReadFile("manifest.yaml")
	if err != nil {
		t.Fatal(err)
	}
	objects := map[string]object{}
	for d := yaml.NewDecoder(bytes.NewReader(text)); ; {
		var o object
		err := d.Decode(&o)
		if errors.Is(err, io.EOF) {
			return objects
		}
		if err != nil {
			t.Fatal(err)
		}
		objects[o["kind"].(string)] = o
	}
}

// in returns a value inside an object.
func in(t *testing.T, v any, path ...any) any {
	t.Helper()
	for _, step := range path {
		switch of := v.(type) {
		case object:
			v = of[step.(string)]
		case []any:
			v = of[step.(int)]
		}
	}
	if v == nil {
		t.Fatalf("the manifest has nothing at %v", path)
	}
	return v
}

// ruleFile writes the rule of the ConfigMap to a file, as in a pod.
func ruleFile(t *testing.T) string {
	t.Helper()
	text := in(t, manifest(t)["ConfigMap"], "data", "rule.yaml").(string)
	path := filepath.Join(t.TempDir(), "rule.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestManifest_fitsTheProgram(t *testing.T) {
	objects := manifest(t)
	pod := in(t, objects["Deployment"], "spec", "template", "spec")
	container := in(t, pod, "containers", 0)
	program, err := os.ReadFile("main.go")
	if err != nil {
		t.Fatal(err)
	}
	env := map[string]string{}
	for _, e := range in(t, container, "env").([]any) {
		name := in(t, e, "name").(string)
		value, _ := e.(object)["value"].(string)
		if from, ok := e.(object)["valueFrom"]; ok {
			value = in(t, objects["Secret"], "stringData", in(t, from, "secretKeyRef", "key")).(string)
		}
		env[name] = value
		if name != "SHARDKEY_STORE_DSN" && !strings.Contains(string(program), `os.Getenv("`+name+`")`) {
			t.Errorf("the program does not read %s", name)
		}
	}
	for _, probe := range []string{"readinessProbe", "livenessProbe"} {
		if path := in(t, container, probe, "httpGet", "path").(string); !strings.Contains(string(program), `"GET `+path+`"`) {
			t.Errorf("%s: the program does not serve %s", probe, path)
		}
	}
	if mount := in(t, container, "volumeMounts", 0, "mountPath").(string) + "/rule.yaml"; mount != env["RULE_FILE"] {
		t.Errorf("the rule is mounted at %s, and read from %s", mount, env["RULE_FILE"])
	}
	if name := in(t, pod, "volumes", 0, "configMap", "name"); name != in(t, objects["ConfigMap"], "metadata", "name") {
		t.Errorf("there is no ConfigMap %v", name)
	}
	for _, labels := range []any{in(t, objects["Deployment"], "spec", "selector", "matchLabels", "app"), in(t, objects["Deployment"], "spec", "template", "metadata", "labels", "app")} {
		if labels != "orders" {
			t.Errorf("label\nhave: %v\nwant: orders", labels)
		}
	}
	t.Setenv("SHARDKEY_STORE_DSN", env["SHARDKEY_STORE_DSN"])
	r, err := rule.Load(ruleFile(t))
	if err != nil {
		t.Fatal(err)
	}
	if w := r.Warnings(); len(w) > 0 {
		t.Errorf("have: %v\nwant: no warnings", w)
	}
	for _, dsn := range []string{env["DATABASE_DSN"], "app@tcp(h)/d", "u:a?b@tcp(h)/d"} {
		o, err := open(dsn, ruleFile(t))
		if err != nil {
			t.Fatalf("%s: %v", dsn, err)
		}
		if err := o.db.Close(); err != nil {
			t.Error(err)
		}
	}
}

// answer returns the status and content of the service's response to a request.
func answer(t *testing.T, o *orders, method, target string) (int, string) {
	t.Helper()
	w := httptest.NewRecorder()
	o.handler().ServeHTTP(w, httptest.NewRequest(method, target, nil).WithContext(t.Context()))
	return w.Code, strings.TrimSpace(w.Body.String())
}

func TestServe_storeAway(t *testing.T) {
	t.Setenv("SHARDKEY_STORE_DSN", "ids@tcp(127.0.0.1:1)/ids")
	o, err := open("app@tcp(127.0.0.1:1)/shop", ruleFile(t))
	if err != nil {
		t.Fatal(err)
	}
	defer o.db.Close()
	if code, text := answer(t, o, "GET", "/healthz"); code != http.StatusOK {
		t.Errorf("healthz\nhave: %d %s\nwant: 200", code, text)
	}
	if code, text := answer(t, o, "GET", "/readyz"); code != http.StatusServiceUnavailable || !strings.Contains(text, "not ready: generator snowflake makes no keys for t_order: ") {
		t.Errorf("readyz\nhave: %d %s\nwant: 503, and why", code, text)
	}
}

func TestServe_ordersOnServer(t *testing.T) {
	if testserver.Each(t, TestServe_ordersOnServer) {
		return
	}
	dsn := testserver.Database(t)
	plain, err := sql.Open("mysql", dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	if _, err := plain.Exec("CREATE TABLE t_order (order_id BIGINT PRIMARY KEY, item VARCHAR(20) NOT NULL)"); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SHARDKEY_STORE_DSN", dsn)
	o, err := open(dsn, ruleFile(t))
	if err != nil {
		t.Fatal(err)
	}
	if code, text := answer(t, o, "GET", "/readyz"); code != http.StatusOK {
		t.Fatalf("readyz\nhave: %d %s\nwant: 200", code, text)
	}
	leased := func() (n int) {
		if err := plain.QueryRow("SELECT COUNT(*) FROM shardkey_worker WHERE free_from = 0 AND namespace NOT LIKE '#%'").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	if n := leased(); n != 1 {
		t.Errorf("worker IDs that are leased\nhave: %d\nwant: 1", n)
	}
	code, id := answer(t, o, "POST", "/orders?item="+url.QueryEscape("tea"))
	var stored string
	if err := plain.QueryRow("SELECT order_id FROM t_order WHERE item = 'tea'").Scan(&stored); err != nil || code != http.StatusOK || stored != id {
		t.Errorf("have: %d %s, and order %s, %v\nwant: the order's key", code, id, stored, err)
	}
	o.stopping.Store(true)
	if code, _ := answer(t, o, "GET", "/readyz"); code != http.StatusServiceUnavailable {
		t.Errorf("stopping\nhave: %d\nwant: 503", code)
	}
	if err := o.db.Close(); err != nil {
		t.Error(err)
	}
	if n := leased(); n != 0 {
		t.Errorf("worker IDs that are leased after Close\nhave: %d\nwant: 0", n)
	}
}
