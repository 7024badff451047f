package sharding

import (
	"encoding/json"
	"errors"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/shardkey/shardkey/internal/groovy"
)

// typedValue is a value of a vector: its text and its class in Java.
type typedValue struct {
	Value     *string
	ValueType string
}

func (tv typedValue) value(t *testing.T) groovy.Value {
	t.Helper()
	if tv.Value == nil {
		return groovy.Value{}
	}
	class, ok := groovy.ParseClass(tv.ValueType)
	if !ok {
		t.Fatalf("no class %q", tv.ValueType)
	}
	v, err := groovy.Parse(class, *tv.Value)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// vectors are what ShardingSphere's formulas, a JVM and Groovy came to.
type vectors struct {
	Vectors []struct {
		ID        int
		Algorithm string
		Props     map[string]string
		Column    string
		typedValue
		Values     map[string]typedValue
		Targets    string
		Partitions int64
		Expected   *string
		Error      string
	}
	DataNodeInfo []struct {
		LogicTable      string
		Tables          []string
		Prefix          string
		SuffixMinLength int
	}
	KeyPick []struct {
		Algorithm                       string
		Count                           int64
		MS                              int64
		Worker, FromSeq, Want, FirstSeq int64
		Key                             string
		SeqsPerMs                       int64 `json:"seqsPerMsWithThisRemainder"`
	}
}

func loadVectors(t testing.TB) (v vectors) {
	t.Helper()
	data, err := os.ReadFile("testdata/vectors.json")
	if err == nil {
		err = json.Unmarshal(data, &v)
	}
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// expand reads the two forms that targets have in the vectors.
func expand(t *testing.T, text string) (names []string) {
	t.Helper()
	before, after, ranged := strings.Cut(text, "$->{")
	if !ranged {
		return strings.Split(text, ",")
	}
	width := 0
	if _, digits, padded := strings.Cut(after, "padLeft("); padded {
		width = int(digits[0] - '0')
	}
	lower, upper, _ := strings.Cut(strings.TrimLeft(after, "("), "..")
	end := strings.TrimRight(strings.SplitN(upper, ")", 2)[0], "}")
	from, err1 := strconv.Atoi(lower)
	to, err2 := strconv.Atoi(end)
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(text, err)
	}
	for i := from; i <= to; i++ {
		n := strconv.Itoa(i)
		names = append(names, before+strings.Repeat("0", max(0, width-len(n)))+n)
	}
	return names
}

func TestPlace_vectors(t *testing.T) {
	// Newer versions of ShardingSphere refuse an expression without the column's
	// name; here that is an error of the rule.
	refused := map[int]string{1315: "t_null", 1316: "t_null", 1317: "t_null"}
	all := loadVectors(t).Vectors
	if len(all) != 1357 {
		t.Errorf("have: %d vectors\nwant: 1357", len(all))
	}
	passed := 0
	for _, v := range all {
		if v.Algorithm == "HINT_INLINE" {
			passed++ // in package groovy; a hint is no column's value
			continue
		}
		columns, values := []string{v.Column}, []groovy.Value{v.value(t)}
		if v.Values != nil {
			columns, values = nil, nil
			for column, value := range v.Values {
				columns, values = append(columns, column), append(values, value.value(t))
			}
		}
		have, err := "", error(nil)
		a, err := Compile(v.Algorithm, v.Props, columns)
		if err == nil {
			if v.Partitions != 0 && a.Tables() != v.Partitions {
				t.Errorf("%d: %s %v\nhave: %d tables\nwant: %d", v.ID, v.Algorithm, v.Props, a.Tables(), v.Partitions)
			}
			names := expand(t, v.Targets)
			if v.Targets == "" && v.Expected != nil {
				names = []string{"another", *v.Expected}
			}
			s := a.Over(names, NamingOf("t_order", names), nil)
			var i int
			place := s.Place
			if _, isTime := values[0].Time(); isTime {
				place = s.place // the class is known here
			}
			if i, err = place(values); err == nil {
				have = names[i]
			}
		}
		want := "an error"
		if v.Expected != nil {
			want = *v.Expected
		}
		if refused[v.ID] != "" {
			want = "an error"
		}
		var none *NoTargetError
		isNone := errors.As(err, &none) || v.Algorithm == "INTERVAL" && err != nil
		if want != "an error" && have != want || want == "an error" && err == nil || v.Expected == nil && v.Error == "" && !isNone {
			t.Errorf("%d: %s %v of %v\nhave: %s, %v\nwant: %s %s", v.ID, v.Algorithm, v.Props, values, have, err, want, v.Error)
			continue
		}
		passed++
	}
	if passed != len(all) {
		t.Errorf("have: %d of %d", passed, len(all))
	}
}

func TestNamingOf_vectors(t *testing.T) {
	for _, v := range loadVectors(t).DataNodeInfo {
		if have := NamingOf(v.LogicTable, v.Tables); have != (Naming{v.Prefix, v.SuffixMinLength}) {
			t.Errorf("%s %v\nhave: %+v\nwant: %s, %d", v.LogicTable, v.Tables, have, v.Prefix, v.SuffixMinLength)
		}
	}
}
