// Package address reads the addresses of stores' servers. People write users
// and passwords into them, as URLs have them: that is refused, and never shown.
package address

import (
	"net"
	"strconv"
	"strings"

	"github.com/shardkey/shardkey/spi"
)

// IsHostPort reports whether text is host:port, with a port number.
func IsHostPort(text string) bool {
	host, port, err := net.SplitHostPort(text)
	if err != nil || !isPlain(host) {
		return false
	}
	_, err = strconv.ParseUint(port, 10, 16)
	return err == nil
}

// Wrong returns the error for a property that wants addresses. It shows the value
// where nothing in it can be a password.
func Wrong(p spi.Props, name, want string) error {
	value := p.String(name, "")
	plain := true
	for item := range strings.SplitSeq(value, ",") {
		item = strings.TrimSpace(item)
		for _, scheme := range []string{"http://", "https://"} {
			item = strings.TrimPrefix(item, scheme)
		}
		plain = plain && isPlain(item)
	}
	if plain {
		return p.Wrong(name, want)
	}
	if strings.Contains(value, "@") {
		want += "; user and password go into the properties username and password"
	}
	return &spi.PropError{Name: name, Want: want}
}

// isPlain reports whether text has only what hosts and ports consist of.
func isPlain(text string) bool {
	for _, r := range text {
		if r < 0x80 && !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune(".:-_[]%", r)) {
			return false
		}
	}
	return true
}
