package groovy

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// typedValue is a value of a vector: its text and its class in Java.
type typedValue struct {
	Value     *string
	ValueType string
}

func (tv typedValue) value(t *testing.T) Value {
	if tv.Value == nil {
		return Value{}
	}
	class, ok := ParseClass(tv.ValueType)
	if !ok {
		t.Fatalf("no class %q", tv.ValueType)
	}
	v, err := Parse(class, *tv.Value)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// vectors are what a JVM and Groovy came to.
type vectors struct {
	Vectors []struct {
		ID        int
		Algorithm string
		Props     map[string]string
		Column    string
		typedValue
		Values       map[string]typedValue
		JavaHashCode *int32
		Expected     *string
		Error        string
	}
	Expressions []string
}

func loadVectors(t testing.TB) (v vectors) {
	t.Helper()
	data, err := os.ReadFile("../sharding/testdata/vectors.json")
	if err == nil {
		err = json.Unmarshal(data, &v)
	}
	if err != nil || len(v.Vectors) < 1300 {
		t.Fatal(len(v.Vectors), err)
	}
	return v
}

func TestTemplate_asGroovyComputesIt(t *testing.T) {
	seen := 0
	for _, v := range loadVectors(t).Vectors {
		if !strings.HasSuffix(v.Algorithm, "INLINE") {
			continue
		}
		seen++
		var names []string
		var values []Value
		for name, value := range v.Values {
			names, values = append(names, name), append(values, value.value(t))
		}
		if v.Values == nil {
			names, values = []string{v.Column}, []Value{v.value(t)}
		}
		text := v.Props["algorithm-expression"]
		template, err := Compile(text, names)
		have := ""
		if err == nil {
			var b []byte
			b, err = template.Append(nil, values)
			have = string(b)
		}
		switch {
		case v.Expected == nil && err == nil || v.Expected != nil && (err != nil || have != *v.Expected):
			want := v.Error
			if v.Expected != nil {
				want = *v.Expected
			}
			t.Errorf("%d: %s of %v\nhave: %s, %v\nwant: %s", v.ID, text, values, have, err, want)
		}
	}
	if seen < 400 {
		t.Errorf("have: %d vectors\nwant: at least 400", seen)
	}
}

func TestValue_HashCode(t *testing.T) {
	for _, v := range loadVectors(t).Vectors {
		if v.JavaHashCode == nil {
			continue
		}
		if h, err := v.value(t).HashCode(); err != nil || h != *v.JavaHashCode {
			t.Errorf("%d: %s %s\nhave: %d, %v\nwant: %d", v.ID, v.ValueType, *v.Value, h, err, *v.JavaHashCode)
		}
	}
}

// TestCompile_expressionsOfRealFiles reads what people published: all but a few,
// which Groovy would not run either, or of which the class is not known.
func TestCompile_expressionsOfRealFiles(t *testing.T) {
	not := map[string]string{
		"t_order_$->{Long.parseLong(date_format(created_at, 'yyyyMM')) % 12}": "a function of SQL",
		"t_order_${(user_id.hashCode() + create_time.getMonthValue()) % 4}":   "a method of dates",
	}
	understood := 0
	for _, text := range loadVectors(t).Expressions {
		_, err := Compile(text, nil)
		if _, known := not[text]; known != (err != nil) {
			t.Errorf("%s\nhave: %v", text, err)
		}
		if err == nil {
			understood++
		}
	}
	if understood < 221 {
		t.Errorf("have: %d expressions\nwant: 221", understood)
	}
}
