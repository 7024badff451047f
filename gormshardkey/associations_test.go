package gormshardkey_test

import (
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/shardkey/shardkey/internal/test/must"
)

const orderTables = "orders_37 items customers profiles tags order_tags notes"

// family compares an order and all that hangs on it with the tables.
func (w *world) family(t *testing.T, orders ...Order) {
	t.Helper()
	w.orders(t, orders...)
	for _, o := range orders {
		for _, item := range o.Items {
			w.has(t, "items", item.Name, item.ID)
			w.hasIn(t, "items", "order_id", item.Name, o.ID)
		}
		for _, tag := range o.Tags {
			w.has(t, "tags", tag.Name, tag.ID)
			w.joined(t, o.ID, tag.ID)
		}
		for _, note := range o.Notes {
			w.has(t, "notes", note.Name, note.ID)
			w.hasIn(t, "notes", "owner_id", note.Name, o.ID)
		}
		if c := o.Customer; c != nil {
			w.has(t, "customers", c.Name, c.ID)
			w.hasIn(t, "orders_37", "customer_id", o.Name, c.ID)
			if c.Profile != nil {
				w.has(t, "profiles", c.Profile.Name, c.Profile.ID)
				w.hasIn(t, "profiles", "customer_id", c.Profile.Name, c.ID)
			}
		}
	}
}

func (w *world) joined(t *testing.T, order, tag int64) {
	t.Helper()
	var n int
	must.Do(t, w.plain.QueryRow("SELECT COUNT(*) FROM order_tags WHERE order_id = ? AND tag_id = ?", order, tag).Scan(&n))
	must.Equal(t, n, 1, "order", order, "and tag", tag, "are joined")
}

func newFamily() []Order {
	shared := &Tag{Name: "shared"}
	return []Order{
		{
			Name: "a", Items: []Item{{Name: "a1"}, {Name: "a2"}, {Name: "a3"}},
			Tags: []*Tag{{Name: "x"}, shared}, Notes: []Note{{Name: "na1"}, {Name: "na2"}},
			Customer: &Customer{Name: "ann", Profile: &Profile{Name: "ann's"}},
		},
		{
			Name: "b", Items: []Item{{Name: "b1"}}, Tags: []*Tag{shared, {Name: "y"}, {Name: "z"}},
			Notes: []Note{{Name: "nb1"}}, Customer: &Customer{Name: "bob", Profile: &Profile{Name: "bob's"}},
		},
		{Name: "c", Items: []Item{{Name: "c1"}, {Name: "c2"}}},
	}
}

func TestAssociations_created(t *testing.T) {
	each(t, TestAssociations_created, orderTables, func(t *testing.T, w *world) {
		orders := newFamily()
		ok(t, w.Create(&orders))
		w.family(t, orders...)

		var found []Order
		ok(t, w.Preload(clause.Associations).Preload("Customer.Profile").Order("name").Find(&found))
		w.family(t, found...)
		if len(found[0].Tags) != 2 || len(found[1].Tags) != 3 || found[1].Customer.Profile.Name != "bob's" {
			t.Errorf("found %+v", found)
		}
	})
}

func TestAssociations_appended(t *testing.T) {
	each(t, TestAssociations_appended, orderTables, func(t *testing.T, w *world) {
		orders := newFamily()
		ok(t, w.Create(&orders))
		must.Do(t, w.Model(&orders[2]).Association("Tags").Append(&Tag{Name: "v"}, &Tag{Name: "w"}))
		must.Do(t, w.Model(&orders[2]).Association("Items").Append(&Item{Name: "c3"}, &Item{Name: "c4"}))
		must.Do(t, w.Model(&orders[0]).Association("Customer").Replace(&Customer{Name: "cid"}))
		must.Do(t, w.Model(&orders[0]).Association("Tags").Replace(&Tag{Name: "u"}))
		w.family(t, orders...)
	})
}

func TestAssociations_saved(t *testing.T) {
	each(t, TestAssociations_saved, orderTables, func(t *testing.T, w *world) {
		orders := newFamily()
		ok(t, w.Create(&orders))
		orders[0].Amount = 5
		orders[0].Items[1].Name = "a2 renamed"
		orders[0].Items = append(orders[0].Items, Item{Name: "a4"}, Item{Name: "a5"})
		orders[0].Tags = append(orders[0].Tags, &Tag{Name: "late"})
		ok(t, w.Session(&gorm.Session{FullSaveAssociations: true}).Save(&orders[0]))
		w.family(t, orders...)
		more := append(orders[:2:2], Order{Name: "d", Items: []Item{{Name: "d1"}}})
		ok(t, w.Session(&gorm.Session{FullSaveAssociations: true}).Save(&more))
		w.family(t, more...)
		ok(t, w.Omit(clause.Associations).Create(&Order{Name: "e", Items: []Item{{Name: "e1"}}}))
		must.Equal(t, w.key(t, "items", "id", "e1"), "no row", "an association that was left out has key")
	})
}

// An upsert finds one parent, and the children get its key.
func TestAssociations_ofARowThatExists(t *testing.T) {
	each(t, TestAssociations_ofARowThatExists, orderTables, func(t *testing.T, w *world) {
		first := Order{Name: "a", Customer: &Customer{Name: "ann"}}
		ok(t, w.Create(&first))
		again := Order{Name: "b", Customer: &Customer{Name: "ann"}}
		ok(t, w.Create(&again))
		if w.family(t, first, again); again.Customer.ID != first.Customer.ID {
			t.Errorf("customers %d and %d", first.Customer.ID, again.Customer.ID)
		}
		tag := Tag{Name: "x"}
		ok(t, w.Create(&tag))
		must.Do(t, w.Model(&again).Association("Tags").Append(&Tag{Name: "x"}))
		w.family(t, again)
	})
}

// Of several rows that are upserted at once, those that exist have their keys too.
func TestAssociations_ofRowsThatExist(t *testing.T) {
	each(t, TestAssociations_ofRowsThatExist, orderTables, func(t *testing.T, w *world) {
		ok(t, w.Create(&[]Tag{{Name: "x"}, {Name: "y"}}))
		order := Order{Name: "a", Tags: []*Tag{{Name: "new1"}, {Name: "x"}, {Name: "new2"}, {ID: 5, Name: "five"}, {Name: "y"}}}
		ok(t, w.Create(&order))
		w.family(t, order)
		again := Order{Name: "b", Tags: []*Tag{{Name: "y"}, {Name: "x"}}}
		ok(t, w.Session(&gorm.Session{FullSaveAssociations: true}).Create(&again))
		w.family(t, again)
	})
}

// Person is the manager of Persons, and may manage itself.
type Person struct {
	ID        int64
	Name      string
	Score     int `gorm:"default:(-)"`
	ManagerID *int64
	Manager   *Person
	Team      []Person  `gorm:"foreignKey:ManagerID"`
	Friends   []*Person `gorm:"many2many:friends"`
}

func (Person) TableName() string { return "kinds" }

func TestAssociations_ofOneself(t *testing.T) {
	each(t, TestAssociations_ofOneself, "kinds", func(t *testing.T, w *world) {
		for _, text := range []string{
			"ALTER TABLE kinds ADD manager_id BIGINT, ADD score INT NOT NULL DEFAULT 7",
			"CREATE TABLE friends (person_id BIGINT, friend_id BIGINT, PRIMARY KEY (person_id, friend_id))",
		} {
			must.Get(w.plain.Exec(text))(t)
		}
		people := []Person{
			{
				Name: "a", Manager: &Person{Name: "m", Score: 1, Team: []Person{{Name: "mt"}}},
				Friends: []*Person{{Name: "f1", Score: 5}, {Name: "f2"}, {Name: "f3", Score: 6}},
				Team:    []Person{{Name: "t1", Score: 3}, {Name: "t2", Team: []Person{{Name: "tt1"}, {Name: "tt2", Score: 4}, {Name: "tt3"}}}, {Name: "t3"}},
			},
			{Name: "b"}, {ID: 3, Name: "c"}, {Name: "d", Score: 3},
		}
		ok(t, w.Create(&people))
		var check func(people ...Person)
		check = func(people ...Person) {
			for _, p := range people {
				w.has(t, "kinds", p.Name, p.ID)
				if p.Score != 0 { // otherwise GORM may not have read it
					w.hasIn(t, "kinds", "score", p.Name, p.Score)
				}
				check(p.Team...)
				for _, member := range p.Team {
					w.hasIn(t, "kinds", "manager_id", member.Name, p.ID)
				}
				for _, friend := range p.Friends {
					check(*friend)
				}
				if p.Manager != nil {
					check(*p.Manager)
				}
			}
		}
		check(people...)
		same := &Person{Name: "same"}
		ok(t, w.Create([]*Person{same, {Name: "other"}}))
		values, array := []Person{{Name: "v1"}, {Name: "v2"}}, [2]*Person{{Name: "p1"}, {Name: "p2"}}
		ok(t, w.Create(values))
		ok(t, w.Create(array))
		check(append(values, *same, *array[0], *array[1])...)
	})
}
