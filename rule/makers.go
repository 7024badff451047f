package rule

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

// makers reads keyGenerators or workerIdAssigners behind those that other
// sharding rules of the file have.
func (rd *reader) makers(n *yaml.Node, what string, makers []makeSpec) ([]makeSpec, error) {
	pairs, err := rd.pairs(n, what)
	if err != nil {
		return nil, err
	}
	for _, p := range pairs {
		m := makeSpec{name: p.key}
		if err := rd.maker(p.value, fmt.Sprintf("%s %q", what, p.key.text), &m, nil); err != nil {
			return nil, err
		}
		makers = append(makers, m)
	}
	return makers, nil
}

// maker reads type and props into m. Of the other keys, texts takes those that
// it has; the rest is unknown.
func (rd *reader) maker(n *yaml.Node, what string, m *makeSpec, texts map[string]word) error {
	pairs, err := rd.pairs(n, what)
	if err != nil {
		return err
	}
	known := []string{"type", "props"}
	for key := range texts {
		known = append(known, key)
	}
	for _, p := range pairs {
		_, isText := texts[p.key.text]
		switch {
		case p.key.text == "type":
			m.typ, err = rd.text(p.value, "type of "+what)
		case p.key.text == "props":
			m.props, err = rd.props(p.value, what)
		case isText:
			texts[p.key.text], err = rd.text(p.value, p.key.text)
		default:
			err = rd.unknownKey(p.key, what, known)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// props reads properties: texts and lists of texts, with the environment put
// into their values.
func (rd *reader) props(n *yaml.Node, what string) ([]propSpec, error) {
	pairs, err := rd.pairs(n, "props of "+what)
	if err != nil {
		return nil, err
	}
	var props []propSpec
	for _, p := range pairs {
		prop := propSpec{name: p.key, place: placeOf(p.value)}
		if err := rd.propValue(&prop, p.value); err != nil {
			return nil, err
		}
		props = append(props, prop)
	}
	return props, nil
}

func (rd *reader) propValue(p *propSpec, n *yaml.Node) error {
	what := fmt.Sprintf("property %q", p.name.text)
	list := resolve(n)
	if list.Kind != yaml.SequenceNode {
		value, err := rd.expanded(p, n, what)
		p.value = value
		return err
	}
	values := make([]string, len(list.Content))
	for i, item := range list.Content {
		var err error
		if values[i], err = rd.expanded(p, item, "an item of "+what); err != nil {
			return err
		}
	}
	p.value = values
	return nil
}

// expanded gives a property's text with the environment put in, and notes in p
// what was written instead.
func (rd *reader) expanded(p *propSpec, n *yaml.Node, what string) (string, error) {
	w, err := rd.text(n, what)
	if err != nil {
		return "", err
	}
	value, used, err := expandEnv(w.text)
	if err != nil {
		e := rd.errorAt(word{p.name.text, w.place}, fmt.Sprintf("%s: %v", what, err))
		e.Err = err
		return "", e
	}
	p.fromEnv = p.fromEnv || used
	p.written = strings.TrimPrefix(p.written+","+w.text, ",")
	return value, nil
}
