package rule

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// strategy reads a keyGenerateStrategy, or nil when there is nothing in it.
func (rd *reader) strategy(n *yaml.Node, key word) (*strategySpec, error) {
	texts, err := rd.texts(n, key.text, "column", "keyGeneratorName", "explicitKeys")
	if err != nil || len(texts) == 0 {
		return nil, err
	}
	st := &strategySpec{place: key.place, column: texts["column"], generator: texts["keyGeneratorName"]}
	return st, rd.explicitKeys(texts, st)
}

func (rd *reader) explicitKeys(texts map[string]word, st *strategySpec) error {
	w := texts["explicitKeys"]
	st.explicitSet = w.text != ""
	switch {
	case w.text == "" || strings.EqualFold(w.text, "fill"):
		st.explicit = FillExplicit
		return nil
	case strings.EqualFold(w.text, "keep"):
		st.explicit = KeepExplicit
		return nil
	}
	return rd.errorAt(w, fmt.Sprintf("explicitKeys is %q: want fill or keep", w.text), "fill", "keep")
}

// strategies reads the keyGenerateStrategies of ShardingSphere 5.5.4 into the
// tables that they name.
func (rd *reader) strategies(n *yaml.Node, sc *scope) error {
	pairs, err := rd.pairs(n, "keyGenerateStrategies")
	if err != nil {
		return err
	}
	tables := map[string]*tableSpec{}
	for i, t := range sc.tables {
		tables[strings.ToLower(t.name.text)] = &sc.tables[i]
	}
	for _, p := range pairs {
		what := fmt.Sprintf("keyGenerateStrategies %q", p.key.text)
		texts, err := rd.texts(p.value, what, "keyGenerateType", "keyGeneratorName", "logicTable", "keyGenerateColumn", "keyGenerateSequence", "explicitKeys")
		if err == nil {
			err = rd.columnStrategy(p.key, texts, tables)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (rd *reader) columnStrategy(name word, texts map[string]word, tables map[string]*tableSpec) error {
	st := &strategySpec{place: name.place, column: texts["keyGenerateColumn"], generator: texts["keyGeneratorName"]}
	if err := rd.explicitKeys(texts, st); err != nil {
		return err
	}
	switch kind := texts["keyGenerateType"]; {
	case strings.EqualFold(kind.text, "sequence"):
		return nil // for CREATE SEQUENCE, no column of any table
	case kind.text != "" && !strings.EqualFold(kind.text, "column"):
		return rd.errorAt(kind, fmt.Sprintf("keyGenerateType is %q: want column or sequence", kind.text), "column", "sequence")
	}
	logic, ok := texts["logicTable"]
	switch {
	case !ok || logic.text == "":
		return rd.errorAt(name, fmt.Sprintf("strategy %q has no logicTable", name.text))
	case st.column.text == "":
		return rd.errorAt(name, fmt.Sprintf("strategy %q has no keyGenerateColumn", name.text))
	}
	t, ok := tables[strings.ToLower(logic.text)]
	if !ok {
		return rd.noTable(logic, tables)
	}
	if t.strategy != nil {
		return rd.errorAt(logic, fmt.Sprintf("table %q has a key column already%s; one column of a table can be generated", t.name.text, t.strategy.place.also()))
	}
	t.strategy = st
	return nil
}

func (rd *reader) noTable(logic word, tables map[string]*tableSpec) error {
	var defined []string
	for _, t := range tables {
		defined = append(defined, t.name.text)
	}
	slices.Sort(defined)
	return rd.errorAt(logic, fmt.Sprintf("logicTable %q is not one of the rule's tables", logic.text), defined...)
}
