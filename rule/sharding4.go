package rule

import (
	"fmt"

	"go.yaml.in/yaml/v3"
)

// rule4 reads the shardingRule of ShardingSphere 4, in which a table has its
// generator written into it.
func (rd *reader) rule4(n *yaml.Node) error {
	const what = "the shardingRule"
	pairs, err := rd.pairs(n, what)
	if err != nil {
		return err
	}
	sc := scope{place: placeOf(n)}
	for _, p := range pairs {
		switch p.key.text {
		case "tables":
			err = rd.tables4(p.value, &sc)
		case "defaultKeyGenerator":
			sc.def, err = rd.keyGenerator(p.value, p.key, "defaultKeyGenerator")
			if sc.def != nil {
				sc.defMaker, sc.def.inline = sc.def.inline, nil
			}
		case "workerIdAssigners":
			rd.spec.assigners, err = rd.makers(p.value, p.key.text, rd.spec.assigners)
		default:
			err = rd.almost(p.key, what, "tables", "defaultKeyGenerator", "workerIdAssigners")
		}
		if err != nil {
			return err
		}
	}
	rd.spec.scopes = append(rd.spec.scopes, sc)
	return nil
}

func (rd *reader) tables4(n *yaml.Node, sc *scope) error {
	pairs, err := rd.pairs(n, "the tables")
	if err != nil {
		return err
	}
	for _, p := range pairs {
		entries, err := rd.pairs(p.value, fmt.Sprintf("table %q", p.key.text))
		if err != nil {
			return err
		}
		t := tableSpec{name: p.key}
		for _, e := range entries {
			switch e.key.text {
			case "actualDataNodes":
				t.nodes, err = rd.nodesText(e.value)
			case "keyGenerator":
				t.strategy, err = rd.keyGenerator(e.value, e.key, p.key.text)
			default:
				err = rd.almost(e.key, fmt.Sprintf("table %q", p.key.text), "actualDataNodes", "keyGenerator")
			}
			if err != nil {
				return err
			}
		}
		sc.tables = append(sc.tables, t)
	}
	return nil
}

// keyGenerator reads column and generator together. The generator gets a name
// for health and descriptions; without a type the default's generator serves.
func (rd *reader) keyGenerator(n *yaml.Node, key word, name string) (*strategySpec, error) {
	texts := map[string]word{"column": {}, "explicitKeys": {}}
	m := makeSpec{name: word{name, key.place}}
	what := fmt.Sprintf("%s of %q", key.text, name)
	if key.text == name {
		what = name
	}
	if err := rd.maker(n, what, &m, texts); err != nil || isNull(n) {
		return nil, err
	}
	st := &strategySpec{place: key.place, column: texts["column"]}
	if err := rd.explicitKeys(texts, st); err != nil {
		return nil, err
	}
	switch {
	case m.typ.text != "":
		st.inline = &m
	case len(m.props) > 0:
		return nil, rd.errorAt(m.props[0].name, fmt.Sprintf("%s has props but no type", what))
	}
	return st, nil
}
