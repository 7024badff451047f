package testserver

import (
	"database/sql"
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync"

	"github.com/go-sql-driver/mysql"
)

// named returns the servers that SHARDKEY_TEST_DSN names, in its order, or nil if it is not
// set. Each is asked once for its kind and version.
var named = sync.OnceValues(func() ([]*product, error) { return parseNamed(os.Getenv(envDSN)) })

func parseNamed(list string) (all []*product, err error) {
	if list == "" {
		return nil, nil
	}
	for i, dsn := range strings.Split(list, ",") {
		cfg, err := mysql.ParseDSN(strings.TrimSpace(dsn))
		if err != nil {
			return nil, fmt.Errorf("%s: DSN %d: %w", envDSN, i+1, err)
		}
		cfg.DBName = "" // tests make their own
		p := &product{dsn: cfg.FormatDSN()}
		if p.kind, p.series, err = askVersion(p.dsn); err != nil {
			return nil, fmt.Errorf("%s: DSN %d, %s: %w", envDSN, i+1, cfg.Addr, err)
		}
		p.name = strings.ToLower(string(p.kind)) + "-" + p.series
		for _, ours := range products {
			if ours.kind == p.kind && ours.series == p.series {
				p.name = ours.name
			}
		}
		all = append(all, p)
	}
	return all, nil
}

// NamedServer is a server that SHARDKEY_TEST_DSN names.
type NamedServer struct {
	Kind Kind
	DSN  string
}

// Named returns the servers that SHARDKEY_TEST_DSN names, for programs that aren't tests.
func Named() (all []NamedServer, err error) {
	products, err := named()
	for _, p := range products {
		all = append(all, NamedServer{p.kind, p.dsn})
	}
	return all, err
}

var seriesIn = regexp.MustCompile(`^\d+\.\d+`)

// askVersion asks a SQL server for its kind and series.
func askVersion(dsn string) (kind Kind, series string, err error) {
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		return "", "", err
	}
	var version string
	err = with(cfg, func(db *sql.DB) error { return db.QueryRow("SELECT VERSION()").Scan(&version) })
	if err != nil {
		return "", "", err
	}
	kind = KindMySQL
	if strings.Contains(version, "MariaDB") {
		kind = KindMariaDB
	}
	return kind, seriesIn.FindString(strings.TrimPrefix(version, "5.5.5-")), nil // a prefix of older MariaDB
}
