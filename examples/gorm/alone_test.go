package main

import (
	"testing"

	gormmysql "gorm.io/driver/mysql"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/logger"

	"github.com/shardkey/shardkey/internal/testserver"
)

type gormOrder struct {
	OrderID int64 `gorm:"primaryKey"`
	Item    string
	Amount  int
	Lines   []gormLine `gorm:"foreignKey:OrderID"`
}

func (gormOrder) TableName() string { return "t_order_1" }

type gormLine struct {
	LineID  int64 `gorm:"primaryKey"`
	OrderID int64
	Note    string
}

func (gormLine) TableName() string { return "t_line" }

type gormUser struct {
	UserID string `gorm:"primaryKey"`
	Name   string
}

func (gormUser) TableName() string { return "t_user" }

// gormModes are the two ways in which GORM gets keys: from RETURNING of MariaDB, or computed from
// LastInsertId.
var gormModes = map[string]gormmysql.Config{
	"returning":    {},
	"lastInsertId": {DisableWithReturning: true},
}

func forEachGORM(t *testing.T, test func(t *testing.T, db *gorm.DB, dsn string)) {
	for name, cfg := range gormModes {
		for _, prepare := range []bool{false, true} {
			mode := name
			if prepare {
				mode += "Prepared"
			}
			t.Run(mode, func(t *testing.T) {
				cfg := cfg
				cfg.DriverName, cfg.DSN = "shardkey", dsn(t)
				db, err := gorm.Open(gormmysql.New(cfg), &gorm.Config{
					PrepareStmt: prepare, Logger: logger.Discard, TranslateError: true,
				})
				if err != nil {
					t.Fatal(err)
				}
				pool, err := db.DB()
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { pool.Close() })
				test(t, db.WithContext(t.Context()), cfg.DSN)
			})
		}
	}
}

func TestGORM(t *testing.T) {
	if testserver.Each(t, TestGORM) {
		return
	}
	forEachGORM(t, func(t *testing.T, db *gorm.DB, dsn string) {
		single := gormOrder{Item: "tea", Amount: 2}
		mustGORM(t, db.Create(&single))
		batch := []gormOrder{{Item: "milk"}, {Item: "sugar"}, {Item: "lemon"}}
		mustGORM(t, db.Create(&batch))
		chunks := []*gormOrder{{Item: "a"}, {Item: "b"}, {Item: "c"}, {Item: "d"}, {Item: "e"}}
		mustGORM(t, db.CreateInBatches(chunks, 2))
		mustGORM(t, db.Session(&gorm.Session{SkipDefaultTransaction: true}).Create(&gormOrder{OrderID: 1 << 60, Item: "own"}))

		have := map[string]int64{"tea": single.OrderID, "own": 1 << 60}
		for _, o := range batch {
			have[o.Item] = o.OrderID
		}
		for _, o := range chunks {
			have[o.Item] = o.OrderID
		}
		checkOrders(t, dsn, have)

		var found gormOrder
		mustGORM(t, db.First(&found, single.OrderID))
		if found.Item != "tea" || found.Amount != 2 {
			t.Errorf("have: %+v\nwant: tea, 2", found)
		}
	})
}

func TestGORMAssociation(t *testing.T) {
	if testserver.Each(t, TestGORMAssociation) {
		return
	}
	forEachGORM(t, func(t *testing.T, db *gorm.DB, dsn string) {
		order := gormOrder{Item: "tea", Lines: []gormLine{{Note: "green"}, {Note: "black"}}}
		mustGORM(t, db.Create(&order))
		checkOrders(t, dsn, map[string]int64{"tea": order.OrderID})
		var lines []gormLine
		mustGORM(t, db.Order("line_id").Find(&lines, "order_id = ?", order.OrderID))
		if len(lines) != 2 || lines[0] != order.Lines[0] || lines[1] != order.Lines[1] {
			t.Errorf("have: %v\nwant: %v", lines, order.Lines)
		}
	})
}

func TestGORMUpsert(t *testing.T) {
	if testserver.Each(t, TestGORMUpsert) {
		return
	}
	forEachGORM(t, func(t *testing.T, db *gorm.DB, dsn string) {
		first := gormOrder{Item: "tea", Amount: 1}
		mustGORM(t, db.Create(&first))
		again := gormOrder{Item: "tea", Amount: 9}
		mustGORM(t, db.Clauses(clause.OnConflict{DoUpdates: clause.AssignmentColumns([]string{"amount"})}).Create(&again))
		checkOrders(t, dsn, map[string]int64{"tea": first.OrderID})
		if again.OrderID != first.OrderID {
			t.Errorf("key of the row that existed\nhave: %d\nwant: %d", again.OrderID, first.OrderID)
		}
	})
}

func TestGORMStringKey(t *testing.T) {
	if testserver.Each(t, TestGORMStringKey) {
		return
	}
	forEachGORM(t, func(t *testing.T, db *gorm.DB, _ string) {
		mustGORM(t, db.Create([]*gormUser{{Name: "ann"}, {Name: "bob"}}))
		var users []gormUser
		mustGORM(t, db.Find(&users))
		if len(users) != 2 || len(users[0].UserID) != 32 || len(users[1].UserID) != 32 {
			t.Errorf("have: %+v\nwant: two with UUIDs of 32 characters", users)
		}
	})
}

func mustGORM(t *testing.T, db *gorm.DB) {
	t.Helper()
	if db.Error != nil {
		t.Fatal(db.Error)
	}
}
