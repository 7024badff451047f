package rule

import (
	"fmt"
	"strings"
)

// generator finds the generator that a strategy names, or the default one.
func (b *builder) generator(sc scope, st *strategySpec) (int, error) {
	switch {
	case st.inline != nil:
		return b.addGenerator(*st.inline)
	case st.generator.text != "":
		if i, ok := b.byName[strings.ToLower(st.generator.text)]; ok {
			return i, nil
		}
		return 0, b.undefined(st.generator)
	case sc.defMaker != nil:
		return b.byName[strings.ToLower(sc.defMaker.name.text)], nil
	case sc.def != nil && sc.def.generator.text != "":
		return b.generator(sc, sc.def)
	}
	return b.standard(st.place)
}

// standardName is the name of the generator of strategies that name none.
const standardName = "default SNOWFLAKE"

// standard is a SNOWFLAKE without properties, as in ShardingSphere.
func (b *builder) standard(at place) (int, error) {
	if i, ok := b.byName[strings.ToLower(standardName)]; ok {
		return i, nil
	}
	return b.addGenerator(makeSpec{name: word{standardName, at}, typ: word{"SNOWFLAKE", at}})
}

func (b *builder) undefined(name word) error {
	var defined []string
	for _, g := range b.rule.generators {
		defined = append(defined, g.name.text)
	}
	reason := fmt.Sprintf("key generator %q is not defined", name.text)
	if len(defined) == 0 {
		reason += "; there are no keyGenerators"
	} else {
		reason += "; defined are " + strings.Join(defined, ", ")
	}
	return b.errorAt(name, reason, defined...)
}
