package main

import (
	"bytes"
	"context"
	"database/sql"
	dbdriver "database/sql/driver"
	"encoding/base64"
	"encoding/gob"
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/shardkey/shardkey/cmd/shardkey/internal/convert"
	"github.com/shardkey/shardkey/driver"
	"github.com/shardkey/shardkey/internal/test/must"
	"github.com/shardkey/shardkey/rule"
	"github.com/shardkey/shardkey/spi"
)

// canary is a password that must not appear in any output. It is also an octal number.
const canary = "01732654417"

// secretMakers are the types that have passwords. The properties in secret are or contain a
// password. The properties in address are addresses of servers.
var secretMakers = []struct {
	assigner        bool
	typ             string
	props           map[string]string
	secret, address []string
}{
	{false, "LEAF_SEGMENT", map[string]string{"leaf.key": "k", "dsn": "u@tcp(127.0.0.1:1)/d"}, []string{"leaf.jdbc.password", "dsn", "leaf.jdbc.url"}, nil},
	{false, "LEAF_SEGMENT", map[string]string{"leaf.key": "k", "leaf.jdbc.url": "jdbc:mysql://127.0.0.1:1/d"}, []string{"leaf.jdbc.password"}, nil},
	{false, "TICKET", map[string]string{"dsns": "u@tcp(127.0.0.1:1)/d"}, []string{"dsns"}, nil},
	{false, "REDIS", map[string]string{"addr": "127.0.0.1:1", "username": "u", "worker-id": "1", "namespace": "n"}, []string{"password"}, []string{"addr"}},
	{false, "LEAF_SNOWFLAKE", map[string]string{"leaf.key": "k", "leaf.zk.list": "127.0.0.1:1", "username": "u"}, []string{"password"}, nil},
	{false, "LEAF_SNOWFLAKE", map[string]string{"leaf.key": "k", "leaf.zk.list": "127.0.0.1:1"}, nil, []string{"leaf.zk.list"}},
	{true, "SQL", map[string]string{"dsn": "u@tcp(127.0.0.1:1)/d"}, []string{"dsn"}, nil},
	{true, "REDIS", map[string]string{"addr": "127.0.0.1:1", "username": "u"}, []string{"password"}, []string{"addr"}},
	{true, "ETCD", map[string]string{"endpoints": "127.0.0.1:1", "username": "u"}, []string{"password"}, []string{"endpoints"}},
	{true, "ZOOKEEPER", map[string]string{"servers": "127.0.0.1:1", "username": "u"}, []string{"password"}, nil},
	{true, "ZOOKEEPER", map[string]string{"servers": "127.0.0.1:1"}, nil, []string{"servers"}},
	{false, "TOLD", nil, []string{"password", "token", "apiSecret"}, nil},
}

// TOLD is a custom generator whose factory returns an error with the property's name or
// content.
func init() {
	spi.RegisterKeyGenerator("TOLD", func(p spi.Props) (spi.KeyGenerator, error) {
		for _, name := range []string{"password", "token", "apiSecret"} {
			p.Has(name)
		}
		switch {
		case p.Has("token"):
			return nil, fmt.Errorf("the service refused password and token")
		case p.Has("apiSecret"):
			return nil, fmt.Errorf("dial u:%s@h: refused", p.Secret("apiSecret").Reveal())
		}
		return nil, p.Wrong("password", "another one")
	})
}

// asSecret are valid and invalid ways to write a property that is a password. $P stands for
// its name, $C for the canary.
var asSecret = []string{
	"$P: '$C'", "$P: \"$C\"", "$P: $C", "$P: 'a$Cb'", "$P:$C", "$P:'$C'", "$P=$C", "$P = $C", "$P $C", "$P: *$C", "$P: &$C x", "$P: &$C", "$P: !$C x", "$P: !!$C x",
	"$P: {$C: 1}", "$P: {a: $C}", "$P: [$C]", "$P: [[$C]]", "$P: [{a: $C}]", "$P: |$C", "$P: >$C", "$P: %$C", "$P: @$C", "$P: `$C", "$P: \"$C", "$P: '$C", "$P: \"\\$C\"",
	"$P: $C: x", "$P: 'x'$C", "$P: $C}", "$P: $C]", "$P: \t$C", "$P: \x01$C", "$P: '\x7f$C'", "$P: '$C\xff'", "$P: ${NOT_SET:$C}", "$P: '${NOT_SET:$C}'", "$P: '${NOT_SET:-$C}'",
	"$P: '${NOT_SET::$C}'", "$P: '${NOT_SET::$C'", "$P: '${$C x}'", "$P: '$C${'", "$P: '$C', $P: '$C'", "$P: '$C', '$P ': '$C'", "x$P: '$C'", "$Px: '$C'", "'$P:$C': 1", "'$P=$C'",
	"? {$P: $C}", "<<: {$P: $C}", "<<: $C", "$P: <<$C", "$P: #$C", "$P: ? $C", "$P: - $C", "- $P: $C", "$P:: $C", ": $C", "$P: \"$C\\x\"", "$P: 1$C", "$P: 0x$C", "$P: $C.5e7", "$P: !!binary $C",
}

// asAddress are ways to write a password into an address. $A stands for a valid address.
var asAddress = []string{
	"$P: 'redis://u:$C@$A'", "$P: 'u:$C@$A'", "$P: '$C@$A'", "$P: ':$C@$A'", "$P: 'http://u:$C@$A'", "$P: 'https://u:$C@$A'", "$P: '$A,u:$C@$A'", "$P: 'u:$C@$A,$A'", "$P: ['$A', 'u:$C@$A']",
	"$P: '$A?password=$C'", "$P: '$A/?password=$C'", "$P: 'http://$A?password=$C'", "$P: 'http://$A/#$C@'", "$P: 'u:$C@h'", "$P: 'u:$C/@$A'", "$P: 'u:12/$C@$A'", "$P: '$A,u:12/$C@$A'", "$P: 'u:12/a@$C@$A/x'", "$P: 'zk://u:$C@$A/x'", "$P: 'password=$C@$A'", "$P: '$A;password=$C'", "$P:u:$C@$A",
}

// asDSN are ways to write a data source with a password.
var asDSN = []string{
	"u:$C@tcp(127.0.0.1:1)/d", "u:$C@tcp(127.0.0.1:1)", "u:$C@tcp(127.0.0.1:1", "u:$C", "$C", "u:a/$C@tcp(127.0.0.1:1)", "u:a@/$C@tcp(127.0.0.1:1)/d", "u:$C@udp(127.0.0.1:1)/d", "u:$C@tcp(127.0.0.1:1)/d?timeout=$C",
	"u:$C@tcp(127.0.0.1:1)/d?tls=$C", "u:a@/?$C@tcp(127.0.0.1:1)/d", "mysql://u:$C@127.0.0.1:1/d", "u:$C@127.0.0.1:1/d", "u:a?b/$C@tcp(127.0.0.1:1)/d", "jdbc:mysql://u:$C@127.0.0.1:1/d", "jdbc:mysql://u:12/$C@h/d",
	"jdbc:mysql://u:12?$C@h/d", "jdbc:mysql://u:12#$C@h/d", "jdbc:mysql://127.0.0.1:1/d?user=u&password=$C", "jdbc:mysql://u:%zz$C@h/d", "jdbc:mysql://127.0.0.1:1/d?password=$C&sslMode=$C", "jdbc:mysql://127.0.0.1:1/d?password=%zz$C", "jdbc:postgresql://u:$C@h/d",
	"jdbc:mysql://127.0.0.1:1,127.0.0.1:2/d?password=$C", "jdbc:mysql://(user=u,password=$C)/d", "jdbc:mysql:$C",
}

// ruleForms are the forms of rule files. $G stands for the generator's type and properties.
var ruleForms = []struct{ name, assigner, generator string }{
	{"5.yaml", `
dataSources: {ds: {url: 'jdbc:mysql://h/d', password: CANARY}}
rules:
- !SHARDING
  tables: {t: {keyGenerateStrategy: {column: id, keyGeneratorName: g}}}
  workerIdAssigners: {a: $G}
  keyGenerators: {g: {type: SNOWFLAKE, props: {worker-id-assigner: a}}}
`, `
dataSources: {ds: {url: 'jdbc:mysql://h/d', password: CANARY}}
rules:
- !SHARDING
  tables: {t: {keyGenerateStrategy: {column: id, keyGeneratorName: g}}}
  keyGenerators: {g: $G}
`},
	{"4.yaml", "", `
dataSources: {ds: {url: 'jdbc:mysql://h/d', password: CANARY}}
shardingRule:
  tables: {t: {keyGenerator: {column: id, $I}}}
`},
	{"spring.yaml", `
spring: {datasource: {password: CANARY}, shardingsphere: {datasource: {ds: {password: CANARY}}, rules: {sharding: {
  tables: {t: {key-generate-strategy: {column: id, key-generator-name: g}}},
  worker-id-assigners: {a: $G},
  key-generators: {g: {type: SNOWFLAKE, props: {worker-id-assigner: a}}}}}}}
`, `
spring: {datasource: {password: CANARY}, shardingsphere: {rules: {sharding: {
  tables: {t: {key-generate-strategy: {column: id, key-generator-name: g}}},
  key-generators: {g: $G}}}}}
`},
}

// TestSecrets_rules writes a password into rules in all valid and many invalid ways, and
// searches all output and errors for it.
func TestSecrets_rules(t *testing.T) {
	for i, m := range secretMakers {
		t.Run(fmt.Sprintf("%s-%d", m.typ, i), func(t *testing.T) {
			dir := t.TempDir()
			for _, entry := range entriesOf(m.secret, m.address, m.props) {
				given := maps.Clone(m.props)
				delete(given, entry.replaces)
				for _, form := range ruleForms {
					text := form.generator
					if m.assigner {
						text = form.assigner
					}
					if text == "" {
						continue
					}
					text = fill(text, m.typ, given, entry.text)
					search(t, form.name+text, tryRule(t, filepath.Join(dir, form.name), text))
				}
			}
		})
	}
}

type entry struct{ text, replaces string }

func entriesOf(secret, address []string, props map[string]string) (entries []entry) {
	for _, name := range secret {
		replaces := ""
		if _, given := props[name]; given {
			replaces = name
		}
		if name == "leaf.jdbc.url" {
			replaces = "dsn"
		}
		for _, form := range asSecret {
			entries = append(entries, entry{strings.NewReplacer("$P", name, "$C", canary).Replace(form), replaces})
		}
		if strings.Contains(name, "dsn") || strings.Contains(name, "url") {
			for _, form := range asDSN {
				value := strings.ReplaceAll(form, "$C", canary)
				entries = append(entries, entry{name + ": '" + value + "'", replaces}, entry{name + ": " + value, replaces}, entry{name + ":" + value, replaces}, entry{name + ": ['" + value + "', x]", replaces})
			}
		}
	}
	for _, name := range address {
		for _, form := range asAddress {
			entries = append(entries, entry{strings.NewReplacer("$P", name, "$C", canary, "$A", "127.0.0.1:1").Replace(form), name})
		}
	}
	return entries
}

// fill inserts a type with its properties into a form.
func fill(form, typ string, given map[string]string, more string) string {
	var flow strings.Builder
	for name, value := range given {
		fmt.Fprintf(&flow, "%s: '%s', ", name, value)
	}
	props := "type: " + typ + ", props: {" + flow.String() + more + "}"
	return strings.NewReplacer("$G", "{"+props+"}", "$I", props, "CANARY", canary).Replace(form)
}

// tryRule opens a rule and returns all output, errors and printed values.
func tryRule(t *testing.T, name, text string) (shown []string) {
	var log must.Log
	if strings.HasPrefix(filepath.Base(name), "spring") { // which is converted first
		must.Do(t, os.WriteFile(name, []byte(text), 0o600))
		out, left, err := convert.File(name)
		shown = append(left, printedChain(err)...)
		name, text = "rule.yaml", string(out)
	}
	r, err := rule.Parse(name, []byte(text))
	if err != nil {
		return append(shown, printedChain(err)...)
	}
	shown = append(shown, printed(r, *r)...)
	for _, w := range r.Warnings() {
		shown = append(shown, printedChain(w)...)
	}
	live, err := r.Open(spi.Host{
		DSN:    spi.NewSecret("u:" + canary + "@tcp(127.0.0.1:1)/d"),
		Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	if err != nil {
		return append(shown, printedChain(err)...)
	}
	table := live.Lookup("", "t")
	shown = append(shown, printed(live, table, *table, table.Generator)...)
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // there is no server
	_, err = table.Generator.GenerateKeys(ctx, spi.Column{}, 1)
	shown = append(append(shown, printedChain(err)...), live.Describe(), r.String())
	for _, h := range live.Status() {
		shown = append(shown, printed(h)...)
	}
	return append(append(shown, printedChain(live.Close())...), log.String())
}

// printedChain returns an error and all errors that it wraps, printed.
func printedChain(err error) (shown []string) {
	if err == nil {
		return nil
	}
	shown = printed(err)
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		return append(shown, printedChain(e.Unwrap())...)
	case interface{ Unwrap() []error }:
		for _, inner := range e.Unwrap() {
			shown = append(shown, printedChain(inner)...)
		}
	}
	return shown
}

// printed returns values printed with each format that programs use.
func printed(values ...any) (shown []string) {
	for _, v := range values {
		for _, verb := range strings.Fields("%v %+v %#v %s %q %x %X %d %t %p %w %c %! %e") {
			shown = append(shown, fmt.Sprintf(verb, v))
		}
		shown = append(shown, fmt.Sprintf("%+v %x", []any{v}, struct{ V any }{v}))
		var encoded bytes.Buffer // an error of an encoder contains no value
		_ = json.NewEncoder(&encoded).Encode(v)
		_ = xml.NewEncoder(&encoded).Encode(v)
		_ = gob.NewEncoder(&encoded).Encode(v)
		slog.New(slog.NewTextHandler(&encoded, nil)).Info("x", "v", v)
		slog.New(slog.NewJSONHandler(&encoded, nil)).Info("x", "v", v)
		shown = append(shown, encoded.String())
	}
	return shown
}

// encoded are encodings of the canary.
var encoded = []string{
	canary, hex.EncodeToString([]byte(canary)), base64.StdEncoding.EncodeToString([]byte(canary))[:12],
}

// search reports the first text that contains the canary, plain or encoded.
func search(t *testing.T, what string, shown []string) {
	t.Helper()
	for _, text := range shown {
		if slices.ContainsFunc(encoded, func(form string) bool { return strings.Contains(text, form) }) {
			t.Errorf("%s\nshows the password: %s", what, text)
			return
		}
	}
}

// plainTypes are the exported structs that contain no secrets: statements, names of tables,
// numbers, times, and a program's clock, logger and random source.
var plainTypes = strings.Fields(`
	doctor.Finding doctor.Report
	driver.Config driver.Driver driver.GeneratedKeys driver.Histogram driver.Keys driver.Plan driver.TableStats
	keygen/snowflake.Layout
	keygen/workerid.Entry keygen/workerid.ForeignRecordError keygen/workerid.Info keygen/workerid.Record
	keygen/workerid/workeridtest.Namespace
	rule.ShardBits rule.KeyConfig rule.Place rule.PlaceError rule.Shard rule.WrongShardError rule.Sharding rule.StrategyConfig rule.TableConfig rule.UnlistedTableError
	rewrite.Insert rewrite.Keys rewrite.Needs rewrite.Options rewrite.Plan rewrite.Row rewrite.Source rewrite.Splice rewrite.Table rewrite.Value
	spi.ClockHealth spi.Column spi.KeyParts spi.LeaseHealth spi.SegmentHealth spi.WorkerID spi.WorkerIDs
`)

// oldDriver is an underlying driver without DriverContext, whose connector keeps the DSN.
type oldDriver struct{}

func (oldDriver) Open(string) (dbdriver.Conn, error) { return nil, errors.New("refused") }

// openConnector opens a connector as sql.Open does.
func openConnector(t *testing.T, d dbdriver.Driver, dsn string) dbdriver.Connector {
	t.Helper()
	c := must.Get(d.(dbdriver.DriverContext).OpenConnector(dsn))(t)
	t.Cleanup(func() { _ = c.(*driver.Connector).Close() })
	return c
}

// secretValues returns values that contain a secret, of each exported type that may.
func secretValues(t *testing.T) map[string][]any {
	const dsn = "u:" + canary + "@tcp(127.0.0.1:1)/d"
	cfg := rule.Config{
		Tables: []rule.TableConfig{{Name: "t", KeyConfig: rule.KeyConfig{Column: "id", Generator: "g"}}},
		Generators: map[string]rule.GeneratorConfig{
			"g": {Type: "SNOWFLAKE", Props: rule.Props{"worker-id-assigner": "a"}},
			"l": {Type: "LEAF_SEGMENT", Props: rule.Props{"leaf.key": "k", "dsn": spi.NewSecret(dsn), "leaf.jdbc.password": spi.NewSecret(canary)}},
			"k": {Type: "TICKET", Props: rule.Props{"dsns": []spi.Secret{spi.NewSecret(dsn), spi.NewSecret(dsn)}}},
			"r": {Type: "REDIS", Props: rule.Props{"addr": "127.0.0.1:1", "password": spi.NewSecret(canary), "worker-id": 1}},
		},
		WorkerIDAssigners: map[string]rule.WorkerIDAssignerConfig{
			"a": {Type: "SQL", Props: rule.Props{"dsn": spi.NewSecret(dsn)}},
			"e": {Type: "ETCD", Props: rule.Props{"endpoints": "127.0.0.1:1", "username": "u", "password": spi.NewSecret(canary)}},
			"z": {Type: "ZOOKEEPER", Props: rule.Props{"servers": "127.0.0.1:1", "username": "u", "password": spi.NewSecret(canary)}},
		},
	}
	delete(cfg.Generators["r"].Props, "worker-id")
	r := must.Get(rule.New(cfg))(t)
	host := spi.Host{DSN: spi.NewSecret(dsn)}
	// The generators of r are printed by reflection, so no goroutine of theirs may run: keys are
	// asked of those of used.
	used := must.Get(rule.New(cfg))(t)
	live := openRule(t, r, host)
	props := must.Get(spi.NewProps(map[string]any{"password": canary, "dsns": []string{canary}, "token": spi.NewSecret(canary)}, host))(t)
	must.Do(t, driver.RegisterRule(t.Name(), used))
	_, ruleErr := rule.New(rule.Config{
		Tables:     cfg.Tables,
		Generators: map[string]rule.GeneratorConfig{"g": {Type: "TICKET", Props: rule.Props{"dsns": spi.NewSecret(canary)}}},
	})
	_, dsnErr := driver.Driver{}.OpenConnector("u:x@/?shardkey" + canary + "@tcp(h)/d")
	_, propErr := spi.NewKeyGenerator("REDIS", props)
	opened := openConnector(t, driver.Driver{}, dsn+"?shardkeyRule="+t.Name())
	wrapped := driver.Wrap(oldDriver{}, used)
	overOld := openConnector(t, wrapped, dsn)
	generatorErr := insertError(opened)
	_, keysErr := driver.ConnectorOf(opened).NextKeys(t.Context(), "t", 1)
	var values []any
	for _, name := range []string{"g", "l", "k", "r"} {
		values = append(values, live.Generator(name))
	}
	_, unavailable := openRule(t, used, host).Generator("l").GenerateKeys(t.Context(), spi.Column{}, 1)
	var storeErr *spi.StoreError
	if !errors.As(unavailable, &storeErr) {
		t.Fatalf("have: %v\nwant: a StoreError", unavailable)
	}
	table := live.Lookup("", "t")
	stats := driver.ConnectorOf(opened).Stats()
	return map[string][]any{
		"driver.Connector":            {opened, overOld, struct{ c any }{wrapped}, wrapped},
		"driver.DSNError":             {dsnErr},
		"rule.GeneratorError":         {generatorErr, driver.ConnectorOf(opened).Ready(t.Context())},
		"rewrite.StatementError":      {generatorErr, keysErr},
		"driver.Stats":                {stats, asJSON(t, stats)},
		"rule.Config":                 {cfg, &cfg},
		"rule.GeneratorConfig":        {cfg.Generators["l"], cfg.Generators},
		"rule.WorkerIDAssignerConfig": {cfg.WorkerIDAssigners["e"], cfg.WorkerIDAssigners},
		"rule.Error":                  {ruleErr},
		"rule.Live":                   {live, live.Describe()},
		"rule.Status":                 {live.Status(), asJSON(t, live.Status())},
		"rule.Rule":                   {r, *r, r.Tables(), r.Warnings()},
		"rule.Table":                  append(values, table, *table),
		"spi.Health":                  {live.Status()[0].Health},
		"spi.Host":                    {host, &host, struct{ h spi.Host }{host}},
		"spi.PropError":               {propErr, props.Wrong("password", "another one"), props.Wrong("token", "another one")},
		"spi.Props":                   {props, &props, struct{ p spi.Props }{props}},
		"spi.StoreError":              {storeErr},
		"spi.Secret":                  {spi.NewSecret(canary), new(spi.NewSecret(canary)), []spi.Secret{spi.NewSecret(canary)}, map[string]any{"x": spi.NewSecret(canary)}, struct{ s spi.Secret }{spi.NewSecret(canary)}},
	}
}

func openRule(t *testing.T, r *rule.Rule, host spi.Host) *rule.Live {
	t.Helper()
	live := must.Get(r.Open(host))(t)
	t.Cleanup(func() { _ = live.Close() })
	return live
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	text := must.Get(json.Marshal(v))(t)
	return string(text)
}

// insertError returns the error of an INSERT without a server.
func insertError(c dbdriver.Connector) error {
	db := sql.OpenDB(c)
	defer db.Close()
	_, err := db.Exec("INSERT INTO t (a) VALUES (1)")
	return err
}

// TestSecrets_exportedTypes prints a value of every exported struct that may contain a
// secret, of all modules. Each exported struct must be in secretValues or plainTypes.
func TestSecrets_exportedTypes(t *testing.T) {
	values := secretValues(t)
	for name, some := range values {
		for _, v := range some {
			shown := printed(v)
			if err, ok := v.(error); ok {
				shown = printedChain(err)
			}
			search(t, fmt.Sprintf("%s (%T)", name, v), shown)
		}
	}
	for _, name := range exportedStructs(t) {
		if values[name] == nil && !slices.Contains(plainTypes, name) {
			t.Errorf("%s: nobody knows whether it shows secrets", name)
		}
	}
	if s := spi.NewSecret(canary); s.Reveal() != canary || (spi.Secret{}).Reveal() != "" {
		t.Error("a Secret does not keep its text")
	}
}

// exportedStructs returns the structs of the recorded API, such as "spi.Host".
func exportedStructs(t *testing.T) (names []string) {
	t.Helper()
	api := must.Get(os.ReadFile(filepath.Join("..", "..", "testdata", "api.txt")))(t)
	pkg := ""
	for line := range strings.Lines(string(api)) {
		words := strings.Fields(line)
		switch {
		case len(words) > 1 && words[0] == "package":
			pkg = words[1]
		case len(words) > 2 && words[0] == "type" && strings.HasPrefix(words[2], "struct"):
			if pkg != "gormshardkey" { // which has a similar test
				names = append(names, pkg+"."+words[1])
			}
		}
	}
	if len(names) < 30 {
		t.Fatalf("only %d types", len(names))
	}
	return names
}

// TestSecrets_dsn opens valid and invalid DSNs with a password, and searches the results and
// errors for it.
func TestSecrets_dsn(t *testing.T) {
	rules := []string{"", "?shardkeyRule=no-such", "?shardkeyRule=testdata/mixed.yaml&shardkeyOptions=x", "?shardkeyRule=a&shardkeyRule=b", "?shardkeyRules=x", "?parseTime=maybe", "?shardkeyServer=x&shardkeyRule=y", "?loc=a/b", "?shardkeyRule=a@b&x=1", "&x", "?shardkeyRule=testdata/mixed.yaml&shardkeyVerify=x"}
	passwords := []string{"$C", "$C/", "/$C", "a/$C", "a?$C", "?$C", "a#$C", "a@$C", "$C@a", "@/?$C", "@/?shardkey$C", "@/?shardkeyRule=$C", "a:$C", "a)$C", "($C)", "a&$C=1", "$C%", "%zz$C", "$C'", "tcp($C", "@tcp(h)/$C?a", "=$C&", " $C"}
	shapes := []string{"u:$P@tcp(127.0.0.1:1)/d$R", "u:$P@tcp(127.0.0.1:1)$R", "u:$P@tcp(127.0.0.1:1/d$R", "u:$P@/d$R", "u:$P@udp/d$R", "u:$P/d$R", "u:$P$R", "$P@tcp(127.0.0.1:1)/d$R", "u:$P@127.0.0.1:1/d$R", "mysql://u:$P@h:1/d$R", ":$P@/$R", "u:$P@unix(/x)/d$R"}
	tried := 0
	for _, params := range rules {
		for _, password := range passwords {
			for _, shape := range shapes {
				if strings.Contains(password, "@/?") && !strings.Contains(shape, "$P@") {
					continue // a complete DSN without password
				}
				dsn := strings.NewReplacer("$P", password, "$R", params).Replace(shape)
				dsn = strings.ReplaceAll(dsn, "$C", canary)
				tried++
				c, err := driver.Driver{}.OpenConnector(dsn)
				shown := printedChain(err)
				if err == nil {
					shown = append(printed(c), printedChain(insertError(c))...)
				}
				search(t, dsn, shown)
			}
		}
	}
	t.Logf("%d data source names", tried)
}
