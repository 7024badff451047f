package doctor_test

import (
	"context"
	"fmt"
	"time"

	"github.com/shardkey/shardkey/doctor"
	"github.com/shardkey/shardkey/rule"
)

// A program checks its database when it starts.
func ExampleExamine() {
	r, err := rule.Parse("rule.yaml", []byte(`
rules:
- !SHARDING
  tables:
    t_order: {keyGenerateStrategy: {column: order_id, keyGeneratorName: uuid}}
  keyGenerators:
    uuid: {type: UUID}
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	db := exampleServer() // sql.Open("shardkey", dsn)
	defer db.Close()

	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	report, err := doctor.Examine(ctx, db, r) // or the rule of driver.Open: connector.Rule()
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, f := range report.Problems() {
		fmt.Printf("%s: %s\nwhy: %s\nfix: %s\n", f.Severity, f, f.Why, f.Fix)
	}
	// Output:
	// error: table t_order: the table does not exist, or the user `app`@`%` has no privileges on it
	// why: INSERTs into it fail
	// fix: GRANT SELECT, INSERT ON `app`.`t_order` TO `app`@`%`;
}
