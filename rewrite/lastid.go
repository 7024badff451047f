package rewrite

// decideInText chooses, for each insert, how the server comes to know the
// key that LAST_INSERT_ID() shall return.
func (p *parser) decideInText() {
	if !p.opts.InText {
		return
	}
	for i := range p.plan.Inserts {
		in := &p.plan.Inserts[i]
		if in.Table.Kind != Integer || in.MentionsLastID || in.Refused {
			continue
		}
		if in.Source != nil {
			in.Guarded = in.OnDuplicate && !in.Returning
			continue
		}
		alone := p.plan.Statements <= 1 && !in.Returning
		if in.OnDuplicate && alone {
			in.Guarded = true
			continue
		}
		// An ignored row would leave its key behind as LAST_INSERT_ID(). Where
		// the value cannot be set afterwards, that is the lesser evil.
		if (in.Ignore || in.OnDuplicate) && alone {
			continue
		}
		in.inTextSlot = in.firstFill()
		in.InText = in.inTextSlot >= 0
	}
}

// firstFill is the first row whose key is generated for certain, −1 when an
// argument may ask for one, or none is.
func (in *Insert) firstFill() int {
	first := -1
	for i := range in.Rows() {
		switch in.slots.kind(i) {
		case Param:
			return -1
		case Fill:
			if first < 0 {
				first = i
			}
			if in.slots.kinds == nil {
				return first
			}
		}
	}
	return first
}

// noteWord remembers that the statement reads LAST_INSERT_ID(), also as
// @@last_insert_id or @@identity.
func (p *parser) noteWord(t token) {
	switch word := p.word(t); {
	case fold(word, "LAST_INSERT_ID"), fold(word, "IDENTITY"):
		p.last = true
	}
}

// noteCall sees LAST_INSERT_ID before a bracket.
func (r *rowReader) noteCall(bracket int) {
	end := bracket
	for end > 0 && isBlank(r.text[end-1]) {
		end--
	}
	const name = "LAST_INSERT_ID"
	if end > 0 && r.text[end-1] == '/' || end >= len(name) && fold(r.text[end-len(name):end], name) {
		r.last = true
	}
}

// noteVariable sees @@last_insert_id and @@identity, with or without scope.
func (r *rowReader) noteVariable(at int) {
	const longest = len("@@session . `last_insert_id`")
	if at+1 < len(r.text) && r.text[at+1] == '@' && MentionsLastInsertID(r.text[at:min(at+longest, len(r.text))]) {
		r.last = true
	}
}
