package debug_test

import (
	"net/url"
	"os"
	"testing"

	"github.com/shardkey/shardkey/spi"
)

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func urlEscape(text string) string { return url.QueryEscape(text) }

// fallenSegment is a segment of which nothing is left.
var fallenSegment = spi.Health{Err: errAway, SegmentSize: 2000, Fetches: new(int64(4)), Errors: map[string]int64{"store": 4}}
