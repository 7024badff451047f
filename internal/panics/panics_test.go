package panics

import (
	"errors"
	"strings"
	"testing"
)

var errBoom = errors.New("boom")

func TestCall_panicIsAnError(t *testing.T) {
	for _, value := range []any{"boom", errBoom, nil} {
		err := Call("the store", func() error { panic(value) })
		if !errors.As(err, new(*Error)) || !strings.Contains(err.Error(), "the store panicked") || value == errBoom && !errors.Is(err, errBoom) {
			t.Errorf("panic(%v)\nhave: %v", value, err)
		}
	}
	if err := Call("it", func() error { return errBoom }); err != errBoom {
		t.Errorf("\nhave: %v\nwant: the function's own error", err)
	}
	if got := Value(func() string { panic("boom") }, error.Error); !strings.Contains(got, "boom") {
		t.Errorf("\nhave: %q\nwant: what the second function makes of it", got)
	}
}
