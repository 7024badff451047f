package driver

import "database/sql"

// Open opens a database by a DSN as sql.Open("shardkey", dsn) does, and returns its
// [Connector], which reports readiness and figures also while the server is
// unavailable. A parameter of the DSN overrides an option.
//
// The error is a [*DSNError], or has [ErrNoRule] in its chain. The server is not
// asked for anything yet. Closing the sql.DB closes the connector.
func Open(dsn string, opts ...Option) (*sql.DB, *Connector, error) {
	if dsn == "" {
		return nil, nil, &DSNError{Reason: emptyDSN, Err: ErrNoRule}
	}
	c, err := Driver{}.openConnector(dsn, opts)
	if err != nil {
		return nil, nil, err
	}
	return sql.OpenDB(c), c, nil
}

const emptyDSN = "it is empty; " + ruleAdvice
