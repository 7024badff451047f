package main

import (
	"database/sql"
	dbdriver "database/sql/driver"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shardkey/shardkey/doctor"
	"github.com/shardkey/shardkey/driver"
	"github.com/shardkey/shardkey/internal/test/must"
	"github.com/shardkey/shardkey/rule"
	"github.com/shardkey/shardkey/spi"
)

// plainTypes are the exported structs that contain no secrets: statements, names of tables,
// numbers, times, and a program's clock, logger and random source.
var plainTypes = strings.Fields(`
	doctor.Finding doctor.Report
	driver.Config driver.Driver driver.GeneratedKeys driver.Histogram driver.StatementCacheStats driver.Keys driver.Plan driver.InsertDetail driver.PlanStats driver.TableStats driver.SecondParserStats driver.WrongShardError
	keygen/snowflake.Layout
	keygen/workerid.Entry keygen/workerid.ForeignRecordError keygen/workerid.Info keygen/workerid.Record
	keygen/workerid/workeridtest.Memory keygen/workerid/workeridtest.Namespace
	rule.ShardBits rule.KeyConfig rule.Place rule.PlaceError rule.Shard rule.Sharding rule.StrategyConfig rule.TableConfig rule.UnlistedTableError
	rewrite.Insert rewrite.Keys rewrite.Options rewrite.Plan rewrite.Row rewrite.Server rewrite.Source rewrite.Splice rewrite.Table rewrite.Update rewrite.Value
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
		"doctor.Options":              {doctor.Options{Hosts: map[string]spi.Host{"d": host}}},
		"driver.Connector":            {opened, overOld, struct{ c any }{wrapped}, wrapped},
		"driver.DSNError":             {dsnErr},
		"driver.GeneratorError":       {generatorErr},
		"rewrite.StatementError":      {generatorErr, keysErr},
		"driver.GeneratorStats":       {stats.Generators, asJSON(t, stats.Generators)},
		"driver.NotReadyError":        {driver.ConnectorOf(opened).Ready(t.Context())},
		"driver.RuleStats":            {stats.Rule},
		"driver.Stats":                {stats, asJSON(t, stats)},
		"rule.Config":                 {cfg, &cfg},
		"rule.GeneratorConfig":        {cfg.Generators["l"], cfg.Generators},
		"rule.WorkerIDAssignerConfig": {cfg.WorkerIDAssigners["e"], cfg.WorkerIDAssigners},
		"rule.Error":                  {ruleErr},
		"rule.Live":                   {live, live.Describe()},
		"rule.Status":                 {live.Status()},
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
			for _, s := range shown {
				if shows(s) {
					t.Errorf("%s (%T) shows the password: %s", name, v, s)
				}
			}
		}
	}
	for _, name := range exportedStructs(t) {
		known := values[name] != nil
		for _, plain := range plainTypes {
			known = known || plain == name
		}
		if !known {
			t.Errorf("%s: nobody knows whether it shows secrets", name)
		}
	}
	if s := spi.NewSecret(canary); s.Reveal() != canary || s.IsZero() || !(spi.Secret{}).IsZero() || (spi.Secret{}).Reveal() != "" {
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
				for _, s := range shown {
					if shows(s) {
						t.Errorf("%s\nshows the password: %s", dsn, s)
						break
					}
				}
			}
		}
	}
	t.Logf("%d data source names", tried)
}
