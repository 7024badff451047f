package sharding

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/shardkey/shardkey/rule/internal/expr"
)

// TestPlace_more checks cases that the vectors don't cover.
func TestPlace_more(t *testing.T) {
	monthly := "datetime-pattern=yyyy-MM-dd HH:mm:ss,datetime-lower=2024-01-31 00:00:00,datetime-upper=2024-06-01 00:00:00,sharding-suffix-pattern=MMdd,datetime-interval-unit=months"
	weekly := "datetime-pattern=yyyy-MM-dd,datetime-lower=2024-01-01,datetime-upper=2024-02-01,sharding-suffix-pattern=yyyyMMdd,datetime-interval-unit=Weeks"
	for _, c := range []struct {
		typ, props, names string
		value             any
		want              string
	}{
		// Adding months one by one ends at the last day of short months, as in Java.
		{"INTERVAL", monthly, "t_0131 t_0229 t_0329 t_0429", "2024-03-28 23:59:59", "t_0229"},
		{"INTERVAL", monthly, "t_0131 t_0229 t_0329 t_0429", "2024-03-29 00:00:00", "t_0329"},
		{"INTERVAL", monthly, "t_0131 t_0229 t_0329 t_0429", "2024-03-29", "expected a time in the format"},
		{"INTERVAL", monthly, "t_0131 t_0229 t_0329 t_0429", "2024-03-29 00:00", "t_0329"},
		{"INTERVAL", monthly, "t_0131 t_0229", "2024-03-29 00:00:00", `selects a name that does not exist`},
		{"INTERVAL", monthly, "t_0131 u_0131", "2024-01-31 00:00:00", `several tables end in "0131"`},
		{"INTERVAL", weekly, "t_20240101 t_20240108", "2024-01-14 23:00:00", "t_20240108"},
		{"INTERVAL", weekly, "t_20240101 t_20240108", time.Date(2024, 1, 7, 23, 59, 0, 0, time.FixedZone("", 3600)), "t_20240101"},
		{"INTERVAL", weekly, "t_20240101 t_20240108", 5, "expected a time in the format"},
		// The algorithm's numbers can be much larger than the number of names.
		{"MOD", "sharding-count=1000000", "t_5 t_70000 t_999999", 1_070_000, "t_70000"},
		{"MOD", "sharding-count=1000000", "t_5 t_70000 t_999999", -1, "t_999999"},
		{"MOD", "sharding-count=1000000", "t_5 t_70000 t_999999", 70_001, `selects "t_70001"`},
		{"MOD", "sharding-count=4", "t_0 t_1 t_2 t_3", "99999999999999999999999999", "t_3"},
		{"MOD", "sharding-count=4", "t_0 t_1 t_2 t_3", "-99999999999999999999999999", "t_1"},
		{"MOD", "sharding-count=4", "t_0 t_1 t_2 t_3", "x1", "is not an integer"},
		{"MOD", "sharding-count=4", "t_0 t_1 t_2 t_3", time.Now(), "the Java class of a time"},
		{"HASH_MOD", "sharding-count=4", "t_0 t_1 t_2 t_3", nil, "the value is NULL"},
		{"INLINE", "algorithm-expression=T_${k % 4}", "t_0 t_1 t_2 t_3", 6, "t_2"}, // names are case-insensitive
		{"INLINE", "algorithm-expression=<GROOVY>t_${k % 4}", "t_0 t_1 t_2 t_3", 6, "t_2"},
		{"INLINE", "algorithm-expression=<LITERAL>t_1", "t_0 t_1 t_2 t_3", 6, "t_1"},
		{"INLINE", "algorithm-expression=t_${k}", "t_0 t_1", strings.Repeat("x", 1000), "selects a name that does not exist"},
	} {
		props := map[string]string{}
		for one := range strings.SplitSeq(c.props, ",") {
			name, value, _ := strings.Cut(one, "=")
			props[name] = value
		}
		a, err := Compile(c.typ, props, []string{"k"})
		if err != nil {
			t.Fatalf("%s %s: %v", c.typ, c.props, err)
		}
		names := strings.Fields(c.names)
		v, _ := expr.Of(c.value)
		i, err := a.Over(names, NamingOf("t", names), expr.Null).Place(v)
		have := ""
		if err == nil {
			have = names[i]
		} else {
			have = err.Error()
		}
		if err == nil && have != c.want || err != nil && !strings.Contains(have, c.want) || len(have) > 400 {
			t.Errorf("%s %s of %v\nhave: %s\nwant: %s", c.typ, c.props, c.value, have, c.want)
		}
	}
}

func TestCompile_whatIsNotUnderstood(t *testing.T) {
	for _, c := range []struct{ typ, props, prop, want string }{
		{"CLASS_BASED", "", "", "expected the type BOUNDARY_RANGE, "},
		{"AUTO_INTERVAL", "datetime-lower=2024-01-01 00:00:00", "", "VOLUME_RANGE, found AUTO_INTERVAL"},
		{"COMPLEX_INLINE", "algorithm-expression=t_${k}", "", "expected the type BOUNDARY_RANGE, "},
		{"COSID_MOD", "mod=4,logic-name-prefix=t_", "", "expected the type BOUNDARY_RANGE, "},
		{"mod", "", "sharding-count", "sharding-count is missing"},
		{"MOD", "sharding-count=4294967296", "sharding-count", "expected at most 2147483647"},
		{"MOD", "sharding-count=4,start-offset=-1", "start-offset", `expected an integer of at least 0, found "-1"`},
		{"HASH_MOD", "sharding-count=0", "sharding-count", `sharding-count: expected an integer of at least 1, found "0"`},
		{"BOUNDARY_RANGE", "sharding-ranges=a;b", "sharding-ranges", "expected integers separated by commas"},
		{"INTERVAL", "datetime-pattern=EEE", "datetime-pattern", "found \"EEE\""},
		{"INTERVAL", "datetime-pattern=yyyy,datetime-lower=2024", "datetime-upper", "datetime-upper is missing"},
		{"INTERVAL", "datetime-pattern=yyyy,datetime-lower=x", "datetime-lower", `found "x"`},
		{"INTERVAL", "datetime-pattern=yyyy,datetime-lower=2024,datetime-upper=2025,sharding-suffix-pattern=yyyy", "datetime-interval-unit", "a step of DAYS is shorter than"},
		{"INTERVAL", "datetime-pattern=yyyy,datetime-lower=2024,datetime-upper=2025,sharding-suffix-pattern=yyyy,datetime-interval-unit=ERAS", "datetime-interval-unit", "a step of 1 ERAS is not supported"},
		{"INTERVAL", "datetime-pattern=yyyy-MM-dd HH:mm:ss,datetime-lower=2024-01-01 00:00:00,datetime-upper=2025-01-01 00:00:00,sharding-suffix-pattern=yyyy,datetime-interval-unit=SECONDS", "datetime-upper", "more than 65536 steps"},
		{"INLINE", "", "algorithm-expression", "algorithm-expression is missing"},
		{"INLINE", "algorithm-expression=<ESPRESSO>t_${k}", "algorithm-expression", "<ESPRESSO> is not supported"},
	} {
		props := map[string]string{}
		for one := range strings.SplitSeq(c.props, ",") {
			name, value, _ := strings.Cut(one, "=")
			props[name] = value
		}
		delete(props, "")
		_, err := Compile(c.typ, props, []string{"k"})
		var e *NotUnderstoodError
		if c.want == "" && err != nil || c.want != "" && (!errors.As(err, &e) || e.Prop != c.prop || !strings.Contains(e.Reason, c.want)) {
			t.Errorf("%s %s\nhave: %+v\nwant: %s: %s", c.typ, c.props, err, c.prop, c.want)
		}
	}
	_, err := Compile("MOD", map[string]string{"sharding-count": "2"}, nil)
	if err == nil || !strings.Contains(err.Error(), "shardingColumn is missing") {
		t.Errorf("have: %v", err)
	}
}
