package doctor_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/shardkey/shardkey/doctor"
	"github.com/shardkey/shardkey/driver"
)

// A program checks its database when it starts.
func ExampleExamine() {
	db, connector, err := driver.Open("app:password@tcp(127.0.0.1:3306)/shop?shardkeyRule=rule.yaml")
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	report, err := doctor.Examine(ctx, db, connector.Rule())
	if err != nil {
		log.Fatal(err)
	}
	for _, f := range report.Problems() {
		fmt.Printf("%s: %s\nwhy: %s\nfix: %s\n", f.Severity, f, f.Why, f.Fix)
	}
}
