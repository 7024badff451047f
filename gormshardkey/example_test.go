package gormshardkey_test

import (
	"fmt"
	"log"

	"github.com/shardkey/shardkey/gormshardkey"
	"gorm.io/driver/mysql"
	"gorm.io/gorm"
)

// The driver's name, the rule in the DSN and the option are what differs from a
// program with AUTO_INCREMENT.
func ExamplePlugin() {
	type Order struct {
		ID   int64
		Item string
	}
	db, err := gorm.Open(mysql.New(mysql.Config{
		DriverName: "shardkey",
		DSN:        "user:pass@tcp(127.0.0.1:3306)/app?parseTime=true&shardkeyRule=rule.yaml",
	}), &gorm.Config{}, gormshardkey.Plugin{})
	if err != nil {
		log.Fatal(err)
	}
	orders := []Order{{Item: "tea"}, {Item: "milk"}}
	if err := db.Create(&orders).Error; err != nil {
		log.Fatal(err)
	}
	fmt.Println(orders[0].ID, orders[1].ID)
}

// A dialector has the driver's name in it. It is not a *mysql.Dialector, which
// some programs ask for.
func ExampleOpen() {
	db, err := gorm.Open(gormshardkey.Open("user:pass@tcp(127.0.0.1:3306)/app?shardkeyRule=rule.yaml"), &gorm.Config{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(db.Name())
}
