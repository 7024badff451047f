package gormshardkey_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/shardkey/shardkey/gormshardkey"
	"gorm.io/gorm"
)

func TestDialector_showsNoPassword(t *testing.T) {
	d := gormshardkey.Open("u:geheim@tcp(127.0.0.1:1)/d?shardkeyRule=r")
	for _, v := range []any{d, &d, []gorm.Dialector{d}, struct{ D any }{d}} {
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		for _, shown := range []string{string(text), fmt.Sprint(v), fmt.Sprintf("%+v %#v %s %q %x", v, v, v, v, v)} {
			if strings.Contains(shown, "geheim") || strings.Contains(shown, fmt.Sprintf("%x", "geheim")) {
				t.Errorf("%T shows the password: %s", v, shown)
			}
		}
	}
}
