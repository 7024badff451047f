package main

import (
	"github.com/shardkey/shardkey/gormshardkey"
	"gorm.io/driver/mysql"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"
)

// order is the model of the table, and orderByHand that of a program that generates the keys.
type order struct {
	ID             int64
	UserID, Amount int64
	Note           string
}

type orderByHand order

func (order) TableName() string       { return "t_order" }
func (orderByHand) TableName() string { return "t_order" }

func (oh *orderByHand) BeforeCreate(*gorm.DB) error {
	oh.ID = node.Generate().Int64()
	return nil
}

// gormBatch is the number of rows of a batch of CreateInBatches.
const gormBatch = 100

// gormCreate opens programs that create rows with GORM, with its default transaction or without it.
func gormCreate(withoutTransaction bool) func(*program) (call, error) {
	return func(p *program) (call, error) {
		config := &gorm.Config{Logger: logger.Discard, PrepareStmt: p.prepared, SkipDefaultTransaction: withoutTransaction}
		dialector := mysql.New(mysql.Config{Conn: p.db})
		if variants[p.variant].byHand {
			db, err := gorm.Open(dialector, config)
			return createModels[orderByHand](db, p.rows), err
		}
		db, err := gorm.Open(dialector, config, gormshardkey.Plugin{})
		return createModels[order](db, p.rows), err
	}
}

func createModels[T orderByHand | order](db *gorm.DB, rows int) call {
	return func(n int64) error {
		models := make([]T, rows)
		for i := range models {
			models[i] = T{UserID: n, Amount: int64(i), Note: "a note"}
		}
		if rows == 1 {
			return db.Create(&models[0]).Error
		}
		return db.CreateInBatches(&models, gormBatch).Error
	}
}
