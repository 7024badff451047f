package rule

import (
	"fmt"
	"strings"

	"github.com/shardkey/shardkey/spi"
)

// Health tells how the generators are, by their names, as far as they tell
// (spi.HealthReporter). Worker-id assigners that tell are there as
// "workerIdAssigners.NAME".
func (g *Generators) Health() map[string]spi.Health {
	health := map[string]spi.Health{}
	for i, spec := range g.rule.generators {
		if h, ok := g.generators[i].(spi.HealthReporter); ok {
			health[spec.name.text] = h.Health()
		}
	}
	g.assigners.each(func(spec makeSpec, a spi.WorkerIDAssigner) {
		if h, ok := a.(spi.HealthReporter); ok {
			health["workerIdAssigners."+spec.name.text] = h.Health()
		}
	})
	return health
}

// Describe tells the whole rule as it lives, for logs: one line for the rule,
// each generator, each worker-id assigner in use and each table. It shows no
// property's value but what generators tell of themselves (spi.Describer).
func (g *Generators) Describe() string {
	var b strings.Builder
	fmt.Fprintf(&b, "rule %s", g.rule.file)
	for i, spec := range g.rule.generators {
		fmt.Fprintf(&b, "\n  key generator %s: %s", spec.name.text, describe(spec, g.generators[i]))
	}
	g.assigners.each(func(spec makeSpec, a spi.WorkerIDAssigner) {
		fmt.Fprintf(&b, "\n  worker-id assigner %s: %s", spec.name.text, describe(spec, a))
	})
	for _, t := range g.rule.Tables() {
		b.WriteString("\n  " + t.String())
	}
	return b.String()
}

func describe(spec makeSpec, v any) string {
	if d, ok := v.(spi.Describer); ok {
		return d.Describe()
	}
	if spec.ready != nil {
		return fmt.Sprintf("%T", v)
	}
	return strings.ToUpper(spec.typ.text)
}
