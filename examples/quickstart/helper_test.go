package main

import (
	"testing"

	"github.com/go-sql-driver/mysql"
)

func mustParse(t *testing.T, dsn string) *mysql.Config {
	t.Helper()
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}
