// Program tutorial inserts orders into two databases. docs/start/tutorial.md builds it step by step.
package main

import (
	"context"
	"database/sql"
	"fmt"
	"log"
	"os"

	_ "github.com/shardkey/shardkey/driver"
)

// shards are the databases, in the order of their numbers.
type shards []*sql.DB

func open(dsns []string) (s shards, err error) {
	for _, dsn := range dsns {
		db, err := sql.Open("shardkey", dsn+"?shardkeyRule=rule.yaml")
		if err != nil {
			return nil, err
		}
		s = append(s, db)
	}
	return s, nil
}

// insert inserts an order into the database of its user, and returns its key.
func (s shards) insert(ctx context.Context, userID, amount int64) (orderID int64, err error) {
	db := s[userID%int64(len(s))]
	res, err := db.ExecContext(ctx, "INSERT INTO t_order (user_id, amount) VALUES (?, ?)", userID, amount)
	if err != nil {
		return 0, err
	}
	return res.LastInsertId()
}

// close releases the worker ID.
func (s shards) close() {
	for _, db := range s {
		_ = db.Close()
	}
}

func main() {
	s, err := open(os.Args[1:])
	if err != nil {
		log.Fatal(err)
	}
	defer s.close()
	for user := range int64(4) {
		id, err := s.insert(context.Background(), user, 100)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("user %d, database %d, order %d\n", user, user%2, id)
	}
}
