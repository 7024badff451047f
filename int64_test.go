package shardkey_test

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/shardkey/shardkey"
)

func ExampleInt64() {
	type order struct {
		ID    shardkey.Int64   `json:"id"`
		Items []shardkey.Int64 `json:"items"`
	}
	text, err := json.Marshal(order{ID: 1331187543210987521, Items: []shardkey.Int64{7, 8}})
	fmt.Println(string(text), err)
	// Output: {"id":"1331187543210987521","items":["7","8"]} <nil>
}

func TestInt64_roundTrip(t *testing.T) {
	type all struct {
		Key     shardkey.Int64
		Pointer *shardkey.Int64
		Slice   []shardkey.Int64
		Map     map[shardkey.Int64]shardkey.Int64
	}
	for _, k := range []shardkey.Int64{0, 1, -1, 1<<53 + 1, math.MaxInt64, math.MinInt64} {
		in := all{k, &k, []shardkey.Int64{k}, map[shardkey.Int64]shardkey.Int64{k: k}}
		text, err := json.Marshal(in)
		if err != nil {
			t.Fatal(err)
		}
		if have, want := strings.Count(string(text), `"`+k.String()+`"`), 5; have != want {
			t.Errorf("%s\nhave: %d strings\nwant: %d", text, have, want)
		}
		var out all
		if err := json.Unmarshal(text, &out); err != nil {
			t.Fatal(err)
		}
		if out.Key != k || *out.Pointer != k || out.Slice[0] != k || out.Map[k] != k {
			t.Errorf("%s\nhave: %+v\nwant: %d", text, out, k)
		}
	}
}

func TestInt64_UnmarshalJSON(t *testing.T) {
	for _, c := range []struct {
		text string
		want shardkey.Int64
		ok   bool
	}{
		{`"12"`, 12, true},
		{`12`, 12, true},
		{` -12 `, -12, true},
		{`9223372036854775807`, math.MaxInt64, true},
		{`"\u0031"`, 1, true},
		{`null`, 5, true},
		{`9223372036854775808`, 5, false},
		{`1.5`, 5, false},
		{`1e3`, 5, false},
		{`"1.0"`, 5, false},
		{`""`, 5, false},
		{`"x"`, 5, false},
		{`true`, 5, false},
		{`[1]`, 5, false},
	} {
		k := shardkey.Int64(5)
		err := json.Unmarshal([]byte(c.text), &k)
		if k != c.want || (err == nil) != c.ok {
			t.Errorf("%s\nhave: %d, %v\nwant: %d, an error: %t", c.text, k, err, c.want, !c.ok)
		}
	}
}

// A decoder of another kind may call it with what json.Unmarshal never passes.
func TestInt64_UnmarshalJSON_ofNothing(t *testing.T) {
	for _, data := range [][]byte{nil, {}, []byte(" "), []byte(`"`)} {
		k := shardkey.Int64(5)
		if err := k.UnmarshalJSON(data); err == nil || k != 5 {
			t.Errorf("%q\nhave: %d, %v\nwant: 5 and an error", data, k, err)
		}
	}
}
