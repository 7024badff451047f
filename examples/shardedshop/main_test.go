package main

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/shardkey/shardkey/driver"
	"github.com/shardkey/shardkey/internal/testserver"
)

func TestRun(t *testing.T) {
	var out strings.Builder
	if err := run(&out); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "24 queries asked 24 tables") {
		t.Errorf("have: %s\nwant: a table for each query", out.String())
	}
}

func TestShop_oneTableForEachQuery(t *testing.T) {
	if testserver.Each(t, TestShop_oneTableForEachQuery) {
		return
	}
	s := openServer(t)
	var out strings.Builder
	if err := s.sell(&out); err != nil || s.sent.queries != 24 || s.sent.tables != 24 {
		t.Errorf("have: %v, %d queries of %d tables: %s\nwant: 24 of 24", err, s.sent.queries, s.sent.tables, out.String())
	}
	// Each row is where its user, and its id, say that it is.
	rows := 0
	for i, source := range s.sources {
		pool, err := source.DB()
		if err != nil {
			t.Fatal(err)
		}
		for n := range perSource {
			table := i*perSource + n
			var all, wrong int
			query := fmt.Sprintf("SELECT COUNT(*), COALESCE(SUM(user_id %% 8 <> %[1]d OR id %% 8 <> %[1]d OR id %% 16 <> user_id %% 16), 0) FROM orders_%[1]d", table)
			if err := pool.QueryRow(query).Scan(&all, &wrong); err != nil || wrong > 0 {
				t.Errorf("orders_%d\nhave: %v, %d of %d rows are of another table", table, err, wrong, all)
			}
			rows += all
		}
	}
	if rows != 16 {
		t.Errorf("have: %d rows\nwant: 16", rows)
	}
}

// An order whose user changes would be found by its id, and by its user no more.
func TestShop_ordersKeepTheirUser(t *testing.T) {
	if testserver.Each(t, TestShop_ordersKeepTheirUser) {
		return
	}
	s := openServer(t)
	orders := []Order{{UserID: 3, Item: "tea"}}
	if err := s.Create(orders); err != nil {
		t.Fatal(err)
	}
	o := orders[0]
	o.Status = "paid"
	if err := s.Save(&o); err != nil {
		t.Error(err)
	}
	// No order is inserted where another user's orders are.
	if err := s.at(3).Exec("INSERT INTO orders_3 (user_id, item) VALUES (?, ?)", 4, "milk").Error; !errors.Is(err, driver.ErrWrongShard) {
		t.Errorf("have: %v\nwant: ErrWrongShard", err)
	}
	if found, err := s.Orders(3); err != nil || len(found) != 1 || found[0].Status != "paid" || found[0].UserID != 3 {
		t.Errorf("have: %+v, %v", found, err)
	}
}

func openServer(t *testing.T) *shop {
	t.Helper()
	s, err := open(testserver.Database(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for i, source := range s.sources {
			var name string
			if err := source.Raw("SELECT DATABASE()").Scan(&name).Error; err == nil && strings.HasSuffix(name, fmt.Sprint("_shop_", i)) {
				source.Exec("DROP DATABASE " + name)
			}
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}
