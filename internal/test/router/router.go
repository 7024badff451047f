// Package testrouter computes the actual table of a row, for comparison in tests. It follows
// ShardingSphere's documentation and the definitions of Java's methods step by step, without
// regard to speed. It shares no code with the packages under test.
package testrouter

import (
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
)

// Table is a sharded table.
type Table struct {
	Logic string
	Nodes []Node
	// Database chooses the data source, and Table the actual table in it. Nil chooses all.
	Database, Table *Strategy

	sources, tables []string // without duplicates
}

// Node is one actual table.
type Node struct{ DataSource, Table string }

// Strategy is an algorithm with its sharding columns.
type Strategy struct {
	Columns []string
	// Integer are the columns with the Java type Integer. Others are Long or String, depending on
	// the value.
	Integer map[string]bool
	Type    string
	Props   map[string]string
	// Expression is the INLINE expression after Prefix.
	Expression *Expression
	Prefix     string
}

// ErrNowhere means that the algorithms succeeded but the row belongs to no table. Other errors
// mean that an algorithm failed, where Java throws.
var ErrNowhere = errors.New("the row belongs to no actual table")

// Route returns the actual table of a row. The row maps columns to values of type int64, string
// or time.Time. Route returns an error unless there is exactly one table.
func (t *Table) Route(row map[string]any) (Node, error) {
	if t.sources == nil {
		for _, n := range t.Nodes {
			if !slices.Contains(t.sources, n.DataSource) {
				t.sources = append(t.sources, n.DataSource)
			}
			if !slices.Contains(t.tables, n.Table) {
				t.tables = append(t.tables, n.Table)
			}
		}
	}
	sources, tables := t.sources, t.tables
	if t.Database != nil {
		source, err := t.Database.choose(row, "", sources, sources)
		if err != nil {
			return Node{}, err
		}
		sources = []string{source}
	}
	var found []Node
	for _, source := range sources {
		var available []string
		for _, n := range t.Nodes {
			if n.DataSource == source {
				available = append(available, n.Table)
			}
		}
		if t.Table != nil {
			table, err := t.Table.choose(row, t.Logic, tables, available)
			if errors.Is(err, ErrNowhere) {
				continue
			}
			if err != nil {
				return Node{}, err
			}
			available = []string{table}
		}
		for _, table := range available {
			found = append(found, Node{source, table})
		}
	}
	if len(found) != 1 {
		return Node{}, ErrNowhere
	}
	return found[0], nil
}

// choose returns the available name that the algorithm chooses. all are the names that determine
// prefix and padding.
func (s *Strategy) choose(row map[string]any, logic string, all, available []string) (string, error) {
	if s.Expression != nil {
		text, err := s.Expression.Text(row, s.Integer)
		if err != nil {
			return "", err
		}
		return one(available, func(name string) bool { return name == s.Prefix+text })
	}
	value := row[s.Columns[0]]
	if s.Type == "INTERVAL" {
		suffix, err := s.step(value)
		if err != nil {
			return "", err
		}
		return one(available, func(name string) bool { return strings.HasSuffix(name, suffix) })
	}
	n, err := s.partition(value)
	if err != nil {
		return "", err
	}
	first := all[0]
	prefix := strings.TrimRight(first, "0123456789")
	if logic != "" && strings.HasPrefix(first, logic) {
		prefix = logic + strings.TrimRight(strings.TrimPrefix(first, logic), "0123456789")
	}
	shortest := len(slices.MinFunc(all, func(a, b string) int { return len(a) - len(b) })) - len(prefix)
	n = strings.Repeat("0", max(0, shortest-len(n))) + n
	return one(available, func(name string) bool { return name == prefix+n })
}

func one(names []string, is func(string) bool) (string, error) {
	i := slices.IndexFunc(names, is)
	if i < 0 {
		return "", ErrNowhere
	}
	if slices.ContainsFunc(names[i+1:], is) {
		return "", errors.New("several")
	}
	return names[i], nil
}

// number returns a property, or 0 if it has none.
func (s *Strategy) number(name string) *big.Int {
	n, _ := integer(s.Props[name])
	return n
}

func integer(value any) (*big.Int, error) {
	if n, ok := new(big.Int).SetString(fmt.Sprint(value), 10); ok {
		return n, nil
	}
	return new(big.Int), errors.New("no number")
}

// partition returns the suffix that an automatic sharding algorithm chooses.
func (s *Strategy) partition(value any) (string, error) {
	var bounds []*big.Int // of the ranges
	switch s.Type {
	case "MOD":
		text := fmt.Sprint(value)
		start, stop := int(s.number("start-offset").Int64()), int(s.number("stop-offset").Int64())
		if len(text)-stop <= start {
			return "", errors.New("offset")
		}
		n, err := integer(text[start : len(text)-stop])
		if err != nil {
			return "", err
		}
		suffix := n.Mod(n, s.number("sharding-count")).String() // Euclidean
		if s.Props["zero-padding"] == "true" {
			last := new(big.Int).Sub(s.number("sharding-count"), big.NewInt(1)).String()
			suffix = strings.Repeat("0", max(0, len(last)-len(suffix))) + suffix
		}
		return suffix, nil
	case "HASH_MOD":
		hash := hashOf(value, s.Integer[s.Columns[0]])
		return strconv.FormatInt(max(hash, -hash)%s.number("sharding-count").Int64(), 10), nil
	case "VOLUME_RANGE": // (-∞, lower), [lower, lower+volume) … [?, upper), [upper, ∞)
		upper, volume := s.number("range-upper"), s.number("sharding-volume")
		for bound := s.number("range-lower"); bound.Cmp(upper) < 0; bound = new(big.Int).Add(bound, volume) {
			bounds = append(bounds, bound)
		}
		bounds = append(bounds, upper)
	case "BOUNDARY_RANGE":
		for text := range strings.SplitSeq(s.Props["sharding-ranges"], ",") {
			bound, _ := integer(strings.TrimSpace(text))
			bounds = append(bounds, bound)
		}
	default:
		return "", fmt.Errorf("no algorithm %s", s.Type)
	}
	n, err := integer(value)
	partition := 0
	for _, bound := range bounds {
		if n.Cmp(bound) >= 0 {
			partition++
		}
	}
	return strconv.Itoa(partition), err
}

// hashOf returns hashCode() of a value, by the definition of its Java class.
func hashOf(value any, isInteger bool) int64 {
	n, isNumber := value.(int64)
	switch {
	case isNumber && isInteger:
		return n
	case isNumber:
		return int64(int32(n ^ int64(uint64(n)>>32)))
	}
	var sum int32 // s[0]·31^(n-1) + s[1]·31^(n-2) + … + s[n-1]
	for _, unit := range utf16.Encode([]rune(value.(string))) {
		sum = 31*sum + int32(unit)
	}
	return int64(sum)
}

const dateTime = "2006-01-02 15:04:05"

func timeOf(value any) (time.Time, error) {
	text, ok := value.(string)
	if t, isTime := value.(time.Time); isTime {
		text, ok = t.Format(dateTime), true
	}
	if !ok || len(text) < len(dateTime) {
		return time.Time{}, errors.New("no time")
	}
	return time.Parse(dateTime, text[:len(dateTime)])
}

// step returns the suffix of the step that contains a value. Steps are months.
func (s *Strategy) step(value any) (string, error) {
	at, err := timeOf(value)
	lower, err1 := time.Parse(dateTime, s.Props["datetime-lower"])
	upper, err2 := time.Parse(dateTime, s.Props["datetime-upper"])
	if err := errors.Join(err, err1, err2); err != nil {
		return "", err
	}
	amount := int(s.number("datetime-interval-amount").Int64())
	for from := lower; !from.After(upper); {
		to := from.AddDate(0, amount, 0)
		if !at.Before(from) && at.Before(to) {
			return from.Format("200601"), nil
		}
		from = to
	}
	return "", ErrNowhere
}
