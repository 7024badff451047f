package gormshardkey_test

import (
	"fmt"
	"log"

	"github.com/shardkey/shardkey/gormshardkey"
	"gorm.io/driver/mysql"
	"gorm.io/gorm"
)

// A program changes the driver's name, adds the rule to the DSN, and passes the option.
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

// The dialector has the driver's name. It isn't a *mysql.Dialector.
func ExampleOpen() {
	db, err := gorm.Open(gormshardkey.Open("user:pass@tcp(127.0.0.1:3306)/app?shardkeyRule=rule.yaml"), &gorm.Config{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(db.Name())
}
