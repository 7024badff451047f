package gormshardkey_test

import (
	"fmt"

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
		DriverName: exampleDriver(), // "shardkey"
		DSN:        "user:pass@tcp(127.0.0.1:3306)/app?parseTime=true&shardkeyRule=rule.yaml",
	}), &gorm.Config{}, gormshardkey.Plugin{})
	if err != nil {
		fmt.Println(err)
		return
	}
	orders := []Order{{Item: "tea"}, {Item: "milk"}}
	if err := db.Create(&orders).Error; err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(orders[0].ID, orders[1].ID)
	// Output:
	// 1001 1002
}

// The dialector has the driver's name. It isn't a *mysql.Dialector.
func ExampleOpen() {
	dialector := gormshardkey.Open("user:pass@tcp(127.0.0.1:3306)/app?shardkeyRule=rule.yaml")
	// db, err := gorm.Open(dialector, &gorm.Config{})

	_, is := dialector.(*mysql.Dialector)
	fmt.Println(dialector.Name(), is)
	// Output:
	// mysql false
}
