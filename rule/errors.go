package rule

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/shardkey/shardkey/internal/nearest"
	"github.com/shardkey/shardkey/internal/registry"
	"github.com/shardkey/shardkey/internal/secrets"
	"github.com/shardkey/shardkey/spi"
)

// Error is an error in a rule, with its place. Every error of [Load], [Parse], [New] and
// [Rule.Open] is an *Error or wraps one.
type Error struct {
	// File is the rule's name as given to [Load] or [Parse], or "rule" for a rule built in Go.
	File string
	// Line and Column are the place of the wrong word, counted from 1. Both are zero if there is no
	// such place, for example for a rule built in Go.
	Line, Column int
	// Path is the place in a rule built in Go, for example `Tables[1] "t_order"`.
	Path string
	// Word is the wrong word as written, or empty if a word is missing.
	Word string
	// Nearest are the known words most similar to Word, best first.
	Nearest []string
	// Reason describes the error and how to fix it.
	Reason string
	// Err is the cause: a *spi.PropError, a *fs.PathError or the error of a generator's factory. It
	// is nil if the rule itself is wrong.
	Err error
}

func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("shardkey: ")
	b.WriteString(e.File)
	if e.Line > 0 {
		b.WriteString(":" + strconv.Itoa(e.Line) + ":" + strconv.Itoa(e.Column))
	}
	if e.Path != "" {
		b.WriteString(": " + e.Path)
	}
	b.WriteString(": " + e.Reason)
	if len(e.Nearest) > 0 {
		b.WriteString(`; did you mean "` + strings.Join(e.Nearest, `" or "`) + `"?`)
	}
	return b.String()
}

func (e *Error) Unwrap() error { return e.Err }

// position is the place of a word of a rule, in a file or in a Go struct.
type position struct {
	line, column int
	path         string
}

// word is a string in a rule with its place.
type word struct {
	text     string
	position position
}

// named returns the place of the field called name, for a rule built in Go.
func (po position) named(name string) position {
	if po.line == 0 && po.path != "" {
		po.path += "." + name
	}
	return po
}

// errorAt returns an error about the word w. The known words in right that are most similar to w
// become its Nearest.
func errorAt(file string, w word, reason string, right ...string) *Error {
	const most = 2000 // of a reason that quotes the file
	if len(reason) > most {
		reason = strings.ToValidUTF8(reason[:most], "") + "…"
	}
	return &Error{
		File: file, Line: w.position.line, Column: w.position.column, Path: w.position.path,
		Word: w.text, Reason: reason, Nearest: nearest.Words(w.text[:min(len(w.text), maxName)], right),
	}
}

func (r *Rule) componentError(m componentSpec, err error) error {
	if inner := (*Error)(nil); errors.As(err, &inner) {
		return inner // an assigner's error, which already has a place
	}
	var prop *spi.PropError
	switch {
	case m.ready == nil && registry.Find(m.kind, m.typ.text) == nil:
		return r.typeError(m)
	case errors.As(err, &prop):
		return r.propError(m, prop)
	}
	return r.otherError(m, err)
}

// plain returns the error message without the prefix "shardkey: ".
func plain(err error) string { return strings.TrimPrefix(err.Error(), "shardkey: ") }

// otherError returns an error at the property that err mentions, or at the name if it mentions
// none. If the message may contain the value of an environment variable, which can be a secret,
// otherError leaves the message out.
func (r *Rule) otherError(m componentSpec, err error) error {
	text := strings.TrimPrefix(plain(err), fmt.Sprintf("%s %s: ", m.kind, strings.ToUpper(m.typ.text)))
	w, cause, reason := m.name, err, text
	for _, p := range m.props {
		var hidden secrets.Forms
		if p.fromEnv {
			hidden.Add(p.value.Reveal())
			for _, item := range p.list {
				hidden.Add(item.Reveal())
			}
		}
		value := p.value.Reveal()
		switch {
		case hidden.In(text):
			w, cause = word{p.written.Reveal(), p.position}, nil
			reason = "the reason is not shown, because it may contain the value of an environment variable; check the properties"
		case cause == nil:
		case !p.fromEnv && len(value) >= 3 && strings.Contains(text, value):
			w = word{value, p.position}
		case strings.Contains(text, p.name.text):
			w = word{p.name.text, p.position}
		}
	}
	e := errorAt(r.file, w, fmt.Sprintf("%s: %s", m, reason))
	e.Err = cause
	return e
}

func (r *Rule) typeError(m componentSpec) error {
	right := registry.Types(m.kind)
	reason := fmt.Sprintf("unknown %s type %q; registered: %s", m.kind, m.typ.text, strings.Join(right, ", "))
	if pkg := packages[m.kind][strings.ToUpper(m.typ.text)]; pkg != "" {
		reason = fmt.Sprintf("%s type %q is not linked into this program; import _ \"github.com/shardkey/shardkey/%s\"",
			m.kind, m.typ.text, pkg)
		right = nil
	}
	return errorAt(r.file, m.typ, reason, right...)
}

// packages maps the types that shardkey implements to the package to import, by kind. It is used in
// the error for a type that isn't registered.
var packages = map[string]map[string]string{
	generatorKind: {
		"REDIS": "keygen/redis", "LEAF_SNOWFLAKE": "keygen/zookeeper", "SNOWFLAKE": "driver", "SNOWFLAKE_RING": "driver",
		"UUID": "driver", "NANOID": "driver", "LEAF_SEGMENT": "driver", "TICKET": "driver",
	},
	assignerKind: {
		"REDIS": "keygen/redis", "ZOOKEEPER": "keygen/zookeeper", "ETCD": "keygen/etcd",
		"STATIC": "driver", "FILE": "driver", "SQL": "driver", "IP": "driver", "HOSTNAME": "driver",
	},
}

func (r *Rule) propError(m componentSpec, prop *spi.PropError) error {
	shown := *prop
	w := m.wordOf(prop.Name, prop.Name)
	right := prop.Known
	if p, ok := m.prop(prop.Name); ok && !prop.Unknown {
		w = word{prop.Value, p.position}
		if p.fromEnv && prop.Value != "" {
			// The value of an environment variable may be a secret.
			shown.Value, w.text = p.written.Reveal(), p.written.Reveal()
		}
		right = nil
	} else if i := slices.IndexFunc(m.props, func(p propSpec) bool {
		return nearest.Distance(p.name.text, prop.Name) <= 2
	}); i >= 0 && !prop.Unknown {
		w, right = m.props[i].name, []string{prop.Name} // probably a misspelling of the missing one
	}
	e := errorAt(r.file, w, fmt.Sprintf("%s: %s", m, plain(&shown)), right...)
	e.Err = &shown
	return e
}

// prop finds a property by name, as [spi.Props] matches names.
func (m componentSpec) prop(name string) (propSpec, bool) {
	for _, p := range m.props {
		if registry.PropKey(p.name.text) == registry.PropKey(name) {
			return p, true
		}
	}
	return propSpec{}, false
}

// wordOf returns text at the place of a property, or at the place of m if it doesn't have the
// property.
func (m componentSpec) wordOf(prop, text string) word {
	if p, ok := m.prop(prop); ok {
		return word{text, p.name.position}
	}
	for _, p := range m.props {
		if name := secrets.ShownName(p.name.text); name == prop || strings.HasPrefix(strings.ToLower(name), prop+".") {
			return word{text, p.name.position}
		}
	}
	return word{text, m.name.position}
}
