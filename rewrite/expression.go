package rewrite

// wrapper is the text around an expression for a key, and around the
// key that takes its place where it comes to none: before expression between key
// after. The server evaluates the expression once (it evaluates that of NULLIF
// twice), and where it stands.
type wrapper struct{ before, between, after string }

var (
	// wrapZero is for integer keys, which 0 asks for as NULL does. The number as
	// the column would round it, without leading zeros, stands in a list before
	// the key; 0 leaves nothing there, or a comma. The first of the list is the
	// key then:
	//
	//	7.5 → 8 → 8,KEY → 8      0.4 → 0 → ,KEY → KEY      NULL → KEY
	//
	// All are texts of digits, so that no number loses digits as a float would.
	wrapZero = wrapper{"SUBSTRING_INDEX(TRIM(LEADING ',' FROM CONCAT_WS(',', TRIM(LEADING '0' FROM CAST(", " AS DECIMAL(20))), ", ")), ',', 1)"}
	// wrapNull is for integer keys of which 0 is one.
	wrapNull = wrapper{"COALESCE(CAST(", " AS DECIMAL(20)), ", ")"}
	// wrapEmpty is for text keys, which NULL and '' ask for. LENGTH
	// distinguishes '' from blanks, whatever the collation.
	wrapEmpty = wrapper{
		"(SELECT IF(LENGTH(`shardkey_given`) > 0, `shardkey_given`, `shardkey_key`) FROM (SELECT ",
		" AS `shardkey_given`, ", " AS `shardkey_key` LIMIT 1) AS `shardkey_row`)",
	}
)

// wrap decides how an expression for the key is written. It returns false
// where the key is left to the server.
func (p *parser) wrap(in *Insert, v *value) (bool, error) {
	if in.Table.KeepExplicit {
		return false, nil
	}
	kind, err := p.keyKind(in)
	switch {
	case err != nil, kind == KindUnknown:
		return false, err
	case kind == KindText:
		in.wrapper = &wrapEmpty
		return true, nil
	}
	p.plan.Consulted |= NoAutoValueOnZero
	if in.wrapper = &wrapZero; p.mode&NoAutoValueOnZero != 0 {
		in.wrapper = &wrapNull
	}
	return true, p.modeKnown(in, v)
}

// takesKey reports whether a key is generated for a row, even if it may go unused.
func (k SlotKind) takesKey() bool { return k == SlotFill || k == SlotExpression }
