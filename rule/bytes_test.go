package rule_test

import (
	"runtime"
	"strings"
	"testing"

	"github.com/shardkey/shardkey/rule"
)

// A rule's bounds are of bytes as well as of names: a short text must not stand
// for gigabytes, and no error is as long as what it is about.
func TestParse_boundsAreInBytes(t *testing.T) {
	long := strings.Repeat("x", 100_000)
	for name, nodes := range map[string]string{
		"zeros":        "d.t_${" + strings.Repeat("0", 100_000) + "0..99999}",
		"zeros, up":    "d.t_${0.." + strings.Repeat("0", 100_000) + "99999}",
		"prefix":       "d." + long + "${0..1000000}",
		"suffix":       "d.t_${0..1000000}" + long,
		"source":       long + "${0..1000000}.t",
		"list":         "d.t_${['" + long + "','" + long + "']}${0..500000}",
		"parts":        "d.t_" + strings.Repeat("${0..9}", 90),
		"pad":          "d.t_${(0..99999).collect{it.toString().padLeft(100000, '0')}}",
		"concatenated": "d.t_${(0..99999).collect{'" + long + "' + it}}",
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := rule.Parse("bytes.yaml", []byte("rules:\n- !SHARDING\n  tables: {t: {actualDataNodes: \""+nodes+"\", keyGenerateStrategy: {column: id}}}\n"))
		runtime.ReadMemStats(&after)
		if used := (after.TotalAlloc - before.TotalAlloc) >> 20; used > 500 {
			t.Errorf("%s: %d MB", name, used)
		}
		if err != nil && len(err.Error()) > 2000 {
			t.Errorf("%s: an error of %d bytes", name, len(err.Error()))
		}
	}
}

func TestParse_errorsAreShort(t *testing.T) {
	long := strings.Repeat("y", 256<<10)
	for _, text := range []string{
		"keyGenerators: {g: {type: SNOWFLAKE, props: {worker-id: " + long + "}}}", "keyGenerators: {g: {type: SNOWFLAKE, props: {" + long + ": 1}}}", "keyGenerators: {g: {type: " + long + "}}",
		"keyGenerators: {g: {type: SNOWFLAKE, props: {worker-id-assigner: " + long + "}}}", "keyGenerators: {g: {type: SNOWFLAKE, props: {layout: " + long + "}}}",
		"keyGenerators: {g: {type: SNOWFLAKE, props: {worker-id: '${HOME}" + long + "'}}}", "keyGenerators: {g: {type: SNOWFLAKE, props: {worker-id: '${" + long + "}'}}}", "keyGenerators: {g: {" + long + ": x}}", long + ": 1",
	} {
		_, err := rule.Parse("long.yaml", []byte("rules:\n- !SHARDING\n  tables: {t: {keyGenerateStrategy: {column: id, keyGeneratorName: g}}}\n  "+text+"\n"))
		if err != nil && len(err.Error()) > 4000 {
			t.Errorf("%.60s\nan error of %d bytes", text, len(err.Error()))
		}
	}
}
