package convert

import (
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/magiconair/properties"
	"go.yaml.in/yaml/v3"
)

// line is a logical line of a Java properties file: without comments, and with the lines that continue
// it.
type line struct {
	number int // of its first line, from 1
	text   string
}

// properties reads a Java properties file. Like Spring Boot, it begins a document at "#---" or "!---".
func (c *conversion) properties(data []byte) error {
	for _, document := range propertyDocuments(data) {
		var settings []setting
		for _, l := range document {
			s, err := c.property(l)
			if err != nil {
				return err
			}
			settings = append(settings, s...)
		}
		c.springs = append(c.springs, settings)
	}
	return nil
}

var lineEnds = strings.NewReplacer("\r\n", "\n", "\r", "\n")

// propertyDocuments returns the logical lines of each document. The comments may have any encoding.
func propertyDocuments(data []byte) [][]line {
	documents := [][]line{nil}
	lines := strings.Split(lineEnds.Replace(string(data)), "\n")
	for i := 0; i < len(lines); i++ {
		l := line{i + 1, strings.TrimLeft(lines[i], " \t\f")}
		switch {
		case strings.HasPrefix(lines[i], "#---") && strings.TrimSpace(lines[i]) == "#---",
			strings.HasPrefix(lines[i], "!---") && strings.TrimSpace(lines[i]) == "!---":
			documents = append(documents, nil)
			continue
		case l.text == "", l.text[0] == '#', l.text[0] == '!':
			continue
		}
		for continues(l.text) && i+1 < len(lines) {
			i++
			l.text = l.text[:len(l.text)-1] + strings.TrimLeft(lines[i], " \t\f")
		}
		last := len(documents) - 1
		documents[last] = append(documents[last], l)
	}
	return documents
}

// continues reports whether a line ends with an odd number of backslashes.
func continues(text string) bool {
	return (len(text)-len(strings.TrimRight(text, `\`)))%2 == 1
}

var numberOrBool = regexp.MustCompile(`^(0|[1-9]\d{0,17}|true|false)$`)

// property returns the setting of a line. It returns none for a line that isn't in UTF-8, if it is no
// setting of a sharding rule.
func (c *conversion) property(l line) ([]setting, error) {
	at := &yaml.Node{Line: l.number, Column: 1}
	isUTF8 := utf8.ValidString(l.text)
	loader := properties.Loader{Encoding: properties.UTF8, DisableExpansion: true}
	if !isUTF8 {
		loader.Encoding = properties.ISO_8859_1 // which every byte belongs to
	}
	parsed, err := loader.LoadBytes([]byte(l.text))
	if err != nil || parsed.Len() != 1 {
		return nil, c.errorAt(at, "expected a property, for example key=value; check the backslashes")
	}
	name := parsed.Keys()[0]
	value := strings.TrimRight(parsed.GetString(name, ""), " \t\f")
	s := setting{splitWords(name, at), text(value, at)}
	if before, ok := strings.CutSuffix(strings.TrimRight(l.text, " \t\f"), value); ok && value != "" {
		s.value.Column += utf8.RuneCountInString(before)
	}
	if numberOrBool.MatchString(value) {
		s.value.Tag = "" // as users write it in YAML
	}
	switch {
	case isUTF8:
		return []setting{s}, nil
	case strings.Contains(l.text, "shardingsphere"):
		return nil, c.errorAt(at, "the line isn't in UTF-8: convert the file to UTF-8 first; only comments may have another encoding")
	}
	return nil, nil
}
