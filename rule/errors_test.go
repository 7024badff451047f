package rule_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/shardkey/shardkey/rule"
)

// head is the beginning of a rule with a key for the table t. The generators follow it.
const head = `rules:
- !SHARDING
  tables:
    t_order: {keyGenerateStrategy: {column: id, keyGeneratorName: snowflake}}
`

// gens completes head. It begins in line 5.
const gens = `  keyGenerators:
    snowflake: {type: SNOWFLAKE}
`

// TestError_showsNoSecrets checks that errors contain no values of environment variables.
func TestError_showsNoSecrets(t *testing.T) {
	t.Setenv("SHARDKEY_SECRET", "tops3cret")
	for _, props := range []string{
		`what: "${SHARDKEY_SECRET}"`,
		`worker-id: "${SHARDKEY_SECRET}"`,
		`worker-id: "1${SHARDKEY_SECRET}"`,
		`worker-id: ["${SHARDKEY_SECRET}", b]`,
		`password: "${SHARDKEY_SECRET}", unknown: "${SHARDKEY_SECRET}"`,
		`password: "${SHARDKEY_SECRET}${SHARDKEY_NOT_SET}"`,
		`worker-id-assigner: "${SHARDKEY_SECRET}"`,
	} {
		_, err := rule.Parse("r", []byte(head+"  keyGenerators: {snowflake: {type: "+typeOf(props)+", props: {"+props+"}}}"))
		if err == nil {
			t.Errorf("%s\nhave: no error", props)
		}
		for e := err; e != nil; e = errors.Unwrap(e) {
			if strings.Contains(fmt.Sprintf("%v %+v", e, e), "tops3cret") {
				t.Errorf("%s\nhave: %v\nwant: nothing of the variable's value", props, e)
			}
		}
	}
}

// Replacing a short value in the message would reveal it, so the whole message is left out.
func TestError_showsNoShortSecrets(t *testing.T) {
	for _, value := range []string{"p", "is", "wrong", ".*", "1"} {
		t.Setenv("SHARDKEY_SECRET", value)
		for _, props := range []string{`what: "${SHARDKEY_SECRET}"`, `what: moon, a: ["${SHARDKEY_SECRET}"], b: "${SHARDKEY_SECRET}"`} {
			_, err := rule.Parse("r", []byte(head+"  keyGenerators: {snowflake: {type: BROKEN, props: {"+props+"}}}"))
			const whole = "the moon is wrong"
			if have := fmt.Sprint(err); strings.Contains(have, "${SHARDKEY_SECRET} is") || !strings.Contains(have, whole) && !strings.Contains(have, "not shown") {
				t.Errorf("%q, %s\nhave: %v\nwant: the whole reason or none of it", value, props, err)
			}
		}
	}
}

func typeOf(props string) string {
	if strings.HasPrefix(props, "what") {
		return "BROKEN"
	}
	return "SNOWFLAKE"
}
