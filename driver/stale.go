package driver

import (
	"context"
	"slices"

	"github.com/shardkey/shardkey/driver/internal/base"
	"github.com/shardkey/shardkey/driver/internal/session"
)

// staleError is an error of the server that may come from outdated columns with
// which a text was planned. Methods that plan read them again; see conn.again.
type staleError struct {
	plan *plan
	error
}

// failed is called with an error of the server about a statement that was not
// executed. It marks one that says that columns are wrong, and returns errReplan
// where the assignment of the key to itself is what the server refuses. An error of a
// string of several statements is returned as it is: its first statements have run.
func (p *plan) failed(err error) error {
	if p.Statements > 1 {
		return err
	}
	const (
		columnNotNull   = 1048
		unknownDatabase = 1049
		unknownColumn   = 1054
		columnCount     = 1136
		unknownTable    = 1146
		notUpdatable    = 1348
		noDefault       = 1364
		notInsertableTo = 1471
	)
	switch {
	case base.IsServerError(err, columnNotNull, unknownDatabase, unknownColumn, columnCount, unknownTable, noDefault):
		if len(p.columns) > 0 {
			return &staleError{p, err}
		}
	case base.IsServerError(err, columnDenied, notUpdatable, notInsertableTo, notSupported):
		// notSupported is from Vitess, about a sharding column.
		if p.unguard() {
			return errReplan
		}
	}
	return err
}

// unguard forgets a plan with guarded upserts, whose tables' upserts are not
// guarded from now on. It returns false when there are none.
func (p *plan) unguard() (guarded bool) {
	for i := range p.Inserts {
		if p.Inserts[i].Guarded {
			p.targets[i].table.unguarded.Store(true)
			guarded = true
		}
	}
	if guarded {
		p.rules.plans.remove(p.key)
	}
	return guarded
}

// columnsChanged reads the columns of a plan's tables again and reports whether
// they have changed. If so, the plan is forgotten.
func (p *plan) columnsChanged(ctx context.Context, s *session.Session) bool {
	for t := range p.columns {
		s.ForgetColumns(t)
	}
	hold, err := p.columnsHold(ctx, s)
	if !hold {
		p.rules.plans.remove(p.key)
	}
	return !hold && err == nil
}

// columnsHold reports whether the columns that a plan depends on are what its
// tables have.
func (p *plan) columnsHold(ctx context.Context, s *session.Session) (bool, error) {
	for t, old := range p.columns {
		columns, _, err := s.Columns(ctx, t)
		if err != nil || !slices.Equal(columns, old) {
			return false, err
		}
	}
	return true, nil
}
