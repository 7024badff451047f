package driver

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"testing"

	"github.com/shardkey/shardkey/rule"
	"github.com/shardkey/shardkey/spi"
)

// brokenStore is a generator whose store's connection is broken.
type brokenStore struct {
	err   error
	calls int
}

func (g *brokenStore) GenerateKeys(context.Context, spi.Column, int) ([]any, error) {
	g.calls++
	if g.err == nil {
		panic(driver.ErrBadConn)
	}
	return nil, g.err
}

// brokenInts is one that makes integers.
type brokenInts struct{ *brokenStore }

func (g brokenInts) GenerateInt64Keys(ctx context.Context, column spi.Column, _ []int64) error {
	_, err := g.GenerateKeys(ctx, column, 1)
	return err
}

// isBadConn says by itself that it is driver.ErrBadConn.
type isBadConn struct{ *spi.PropError }

func (isBadConn) Is(target error) bool { return target == driver.ErrBadConn || target == errFake }

// database/sql takes driver.ErrBadConn for a broken connection to the database: it
// closes it, and executes the statement again on another one.
func TestGeneratorError_isNoBadConnection(t *testing.T) {
	for name, err := range map[string]error{
		"itself":     driver.ErrBadConn,
		"wrapped":    fmt.Errorf("%w: %w: %w", spi.ErrStore, errFake, driver.ErrBadConn),
		"joined":     errors.Join(spi.ErrStore, driver.ErrBadConn, errFake),
		"by Is":      isBadConn{&spi.PropError{Name: "x"}},
		"by a panic": nil,
		"another":    errFake,
	} {
		for _, ints := range []bool{true, false} {
			for _, query := range []string{"INSERT INTO ruled (a) VALUES (1)", "INSERT INTO ruled (a) VALUES (1), (2)", "INSERT INTO ruled (a) VALUES (1) RETURNING id"} {
				broken := &brokenStore{err: err}
				g := spi.KeyGenerator(broken)
				if ints {
					g = brokenInts{broken}
				}
				r, ruleErr := rule.New(rule.Config{
					Tables:     []rule.TableConfig{{Name: "ruled", KeyConfig: rule.KeyConfig{Column: "id", Generator: "g"}}},
					Generators: map[string]rule.GeneratorConfig{"g": {Generator: g}},
				})
				if ruleErr != nil {
					t.Fatal(ruleErr)
				}
				base := &fakeBase{kind: "direct"}
				db := sql.OpenDB(mustConnector(t, base, r))
				if err := db.Ping(); err != nil && !errors.Is(err, errFake) {
					t.Fatal(err)
				}
				_, have := db.ExecContext(t.Context(), query)
				var generator *GeneratorError
				if !errors.As(have, &generator) || errors.Is(have, driver.ErrBadConn) || broken.calls != 1 || base.count("connect") != 1 {
					t.Errorf("%s, integers %t: %s\nhave: %v, after %d calls of the generator and %d connections\nwant: a GeneratorError that is not driver.ErrBadConn, after 1 and 1", name, ints, query, have, broken.calls, base.count("connect"))
				}
				var prop *spi.PropError
				if err != nil && (have == nil || errors.Is(have, spi.ErrStore) != errors.Is(err, spi.ErrStore) || errors.Is(have, errFake) != errors.Is(err, errFake) || errors.As(have, &prop) != errors.As(err, &prop)) {
					t.Errorf("%s\nhave: %v\nwant: everything else that is in the chain of %v", name, have, err)
				}
				noError(t, db.Close())
			}
		}
	}
}

// What a program's function panics with is not the connection's either.
func TestWithFilled_panicIsNoBadConnection(t *testing.T) {
	calls := 0
	r := scriptRule(t, listed(int64(1), int64(2), int64(3)), "ruled.id")
	c := must(NewConnector(&fakeBase{kind: "direct"}, r, WithFilled(func(context.Context, Filled) { calls++; panic(driver.ErrBadConn) })))(t)
	db := sql.OpenDB(c)
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), "INSERT INTO ruled (a) VALUES (1)"); err == nil || errors.Is(err, driver.ErrBadConn) || calls != 1 {
		t.Errorf("have: %v after %d calls\nwant: an error that is not driver.ErrBadConn after 1", err, calls)
	}
}
