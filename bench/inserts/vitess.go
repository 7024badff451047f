package main

import (
	"fmt"
	"os"
	"runtime"

	"github.com/go-sql-driver/mysql"
	"github.com/shardkey/shardkey/bench"
	"github.com/shardkey/shardkey/internal/testserver"
)

// vitessArms are measured through Vitess' vtgate, each on a table of its own in one
// keyspace of four shards.
var vitessArms = []arm{
	{name: "go-sql-driver, keys of bwmarrin/snowflake", driver: "mysql", table: "t_given"},
	{name: "the same, a sequence of Vitess", driver: "mysql", table: "t_seq", auto: true},
	{name: "the same, interpolateParams, keys of bwmarrin/snowflake", driver: "mysql", table: "t_given_i", params: "interpolateParams=true"},
	{name: "the same, interpolateParams, a sequence of Vitess", driver: "mysql", table: "t_seq_i", params: "interpolateParams=true", auto: true},
	{name: "shardkey", driver: "shardkey", table: "t_order"},
	{name: "shardkey, interpolateParams", driver: "shardkey", table: "t_order_i", params: "interpolateParams=true"},
}

const (
	vitessColumns = " (id BIGINT NOT NULL PRIMARY KEY, user_id BIGINT NOT NULL, amount BIGINT, note VARCHAR(40))"
	byUser        = `{"column_vindexes": [{"column": "user_id", "name": "xxhash"}]}`
	withSequence  = `{"column_vindexes": [{"column": "user_id", "name": "xxhash"}], "auto_increment": {"column": "id", "sequence": "lookup.%s"}}`
)

// vitess measures over a private MySQL behind Vitess. Its programs are not pinned:
// they are two, and their work is not the client's turn.
func vitess(o options) error {
	fmt.Fprintf(os.Stderr, "starting Vitess\n")
	v, err := testserver.NewVitess(os.Stderr, testserver.KindMySQL,
		testserver.Keyspace{Name: "app", Shards: []string{"-40", "40-80", "80-c0", "c0-"}, VSchema: `{"sharded": true, "vindexes": {"xxhash": {"type": "xxhash"}}, "tables": {` +
			`"t_given": ` + byUser + `, "t_given_i": ` + byUser + `, "t_order": ` + byUser + `, "t_order_i": ` + byUser +
			`, "t_seq": ` + fmt.Sprintf(withSequence, "seq") + `, "t_seq_i": ` + fmt.Sprintf(withSequence, "seq_i") + `}}`},
		testserver.Keyspace{Name: "lookup", Shards: []string{"0"}, VSchema: `{"tables": {"seq": {"type": "sequence"}, "seq_i": {"type": "sequence"}}}`})
	if err != nil {
		return err
	}
	defer v.Close()
	for _, seq := range []string{"seq", "seq_i"} {
		if err := testserver.Run(v.DSN("lookup"), "CREATE TABLE "+seq+" (id BIGINT PRIMARY KEY, next_id BIGINT, cache BIGINT) COMMENT 'vitess_sequence'",
			"INSERT INTO "+seq+" (id, next_id, cache) VALUES (0, 1, 1000)"); err != nil {
			return err
		}
	}
	for _, a := range vitessArms {
		if err := testserver.Run(v.DSN("app"), "CREATE TABLE "+a.table+vitessColumns); err != nil {
			return err
		}
	}
	cfg, err := mysql.ParseDSN(v.DSN("app"))
	if err != nil {
		return err
	}
	fmt.Fprintf(o.out, "%s, medians of %d rounds\n\n## Vitess over MySQL 9.7: four shards, sequences with a cache of 1,000; not pinned to a processor, %d of them\n",
		bench.Machine(), o.rounds, runtime.NumCPU())
	_, err = o.measure(vitessArms, nil, cfg)
	return err
}
