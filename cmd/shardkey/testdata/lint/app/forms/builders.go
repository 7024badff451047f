package forms

import (
	"context"
	"fmt"

	"example.com/app/bun"
	"example.com/app/gorm"
	"example.com/app/squirrel"
	"example.com/app/xorm"
)

// Gorm uses GORM's Table.
func Gorm(db *gorm.DB, n int, s string, o *order) {
	db.Table(fmt.Sprintf("t_order_%d", n)).Create(o)                              // computed
	db.Table(s).Create(o)                                                         // computed
	db.Table(tableOf(n)).Where("a = 1").CreateInBatches(o, 10)                    // computed
	db.Where("a").Table("t_order_" + s).Save(o)                                   // computed
	db.Table("t_order_1").Create(o)                                               //
	db.Table(fmt.Sprintf("audit_%d", n)).Create(o)                                //
	db.Table(fmt.Sprintf("t_order_%d", n)).Where("a = 1").Find(o)                 //
	db.Create(o)                                                                  //
	db.Exec(fmt.Sprintf("INSERT INTO t_order_%d (user_id) VALUES (@user)", n), 1) // computed
	db.Exec("INSERT INTO ? (user_id) VALUES (?)", s, 1)                           // computed
	db.Raw(fmt.Sprintf("SELECT * FROM t_order_%d", n))                            //
	table := fmt.Sprintf("t_order_%d", n)
	tx := db.Table(table) // computed
	tx.Create(o)
	db.Scopes(orders(n)).Create(o)
	db.Transaction(func(tx *gorm.DB) error {
		tx.Table(table).Create(o) // computed
		return nil
	})
}

func orders(n int) func(*gorm.DB) *gorm.DB {
	return func(db *gorm.DB) *gorm.DB {
		return db.Table(fmt.Sprintf("t_order_%d", n)) // computed
	}
}

type row struct{ user int }

func (r row) TableName() string {
	return fmt.Sprintf("t_order_%d", r.user%4) // computed
}

func (o order) TableName() string { return "t_order" }

func (w writer) TableName() string { return "audit_" + w.insert }

// Others uses other libraries.
func Others(ctx context.Context, db *bun.DB, e *xorm.Engine, n int, s string, o *order) {
	db.NewInsert().Model(o).ModelTableExpr(fmt.Sprintf("t_order_%d", n)).Exec(ctx)        // computed
	db.NewInsert().Model(o).ModelTableExpr(fmt.Sprintf("t_order_%d AS o", n)).Exec(ctx)   // computed
	db.NewInsert().Model(o).ModelTableExpr("?", bun.Ident(s)).Exec(ctx)                   // computed
	db.NewInsert().Table("t_order_" + s).Exec(ctx)                                        // computed
	db.NewInsert().Table("t_order_1").Exec(ctx)                                           //
	db.NewSelect().ModelTableExpr(fmt.Sprintf("t_order_%d", n)).Scan(ctx)                 //
	db.NewRaw(fmt.Sprintf("INSERT INTO t_order_%d (user_id) VALUES (?)", n), 1).Exec(ctx) // computed
	db.NewRaw("INSERT INTO ? (user_id) VALUES (?)", bun.Ident(s), 1).Exec(ctx)            // computed
	q := db.NewInsert().Model(o)
	q = q.ModelTableExpr("t_order_" + s) // computed
	q.Exec(ctx)
	e.Table(fmt.Sprintf("t_order_%d", n)).Insert(o)                    // computed
	e.Table(o).Insert(o)                                               //
	e.Table(fmt.Sprintf("t_order_%d", n)).Find(o)                      //
	squirrel.Insert(fmt.Sprintf("t_order_%d", n)).Columns("a").ToSql() // computed
	squirrel.Insert("t_order").Columns("a").ToSql()                    //
	squirrel.Insert(fmt.Sprintf("audit_%d", n)).Columns("a").ToSql()   //
}
