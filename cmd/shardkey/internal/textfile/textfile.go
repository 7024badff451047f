// Package textfile reads text that editors and shells of other systems have written.
package textfile

import (
	"bytes"
	"errors"
	"fmt"
	"os"
)

var errUTF16 = errors.New("it is in UTF-16; save it in UTF-8")

// Read returns the content of a file as [Text] does.
func Read(name string) ([]byte, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	if data, err = Text(data); err != nil {
		err = fmt.Errorf("%s: %w", name, err)
	}
	return data, err
}

// Text returns data without a byte order mark. It returns an error for UTF-16, in which no word of a
// statement or a rule would be found.
func Text(data []byte) ([]byte, error) {
	switch {
	case bytes.HasPrefix(data, []byte("\xff\xfe")), bytes.HasPrefix(data, []byte("\xfe\xff")),
		bytes.IndexByte(data[:min(2, len(data))], 0) >= 0: // without a byte order mark
		return nil, errUTF16
	}
	return bytes.TrimPrefix(data, []byte("\ufeff")), nil
}
