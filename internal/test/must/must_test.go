package must

import (
	"errors"
	"io"
	"testing"
)

// recorder records how a test fails.
type recorder struct {
	testing.TB
	outcome string
}

func (*recorder) Helper()                 {}
func (r *recorder) Fatal(...any)          { r.outcome = "fatal" }
func (r *recorder) Errorf(string, ...any) { r.outcome = "error" }

func TestMust_failsTheTest(t *testing.T) {
	for name, c := range map[string]struct {
		pass, fail func(r *recorder)
		want       string
	}{
		"Get":         {func(r *recorder) { Get(1, nil)(r) }, func(r *recorder) { Get(1, io.EOF)(r) }, "fatal"},
		"Do":          {func(r *recorder) { Do(r, nil) }, func(r *recorder) { Do(r, io.EOF) }, "fatal"},
		"Equal":       {func(r *recorder) { Equal(r, 1, 1) }, func(r *recorder) { Equal(r, 1, 2) }, "error"},
		"EqualSlices": {func(r *recorder) { EqualSlices(r, []int{1}, []int{1}) }, func(r *recorder) { EqualSlices(r, []int{1}, nil) }, "error"},
		"Contain":     {func(r *recorder) { Contain(r, "ab", "b") }, func(r *recorder) { Contain(r, "a", "b") }, "error"},
		"Is":          {func(r *recorder) { Is(r, io.EOF, io.EOF) }, func(r *recorder) { Is(r, nil, io.EOF) }, "error"},
		"Fail":        {func(r *recorder) { Fail(r, Err(1, io.EOF)) }, func(r *recorder) { Fail(r, Err(1, nil)) }, "error"},
		"FailWith":    {func(r *recorder) { FailWith(r, errors.New("ab"), "b") }, func(r *recorder) { FailWith(r, nil, "") }, "error"},
	} {
		passed, failed := new(recorder), new(recorder)
		c.pass(passed)
		c.fail(failed)
		if passed.outcome != "" || failed.outcome != c.want {
			t.Errorf("%s\nhave: %q, %q\nwant: nothing, %q", name, passed.outcome, failed.outcome, c.want)
		}
	}
}
