package spi

import (
	"net"
	"strconv"
	"strings"
)

// IsHostPort reports whether address is host:port with a numeric port, and contains no user or
// password.
func IsHostPort(address string) bool {
	host, port, err := net.SplitHostPort(address)
	if err != nil || !isAddress(host) {
		return false
	}
	_, err = strconv.ParseUint(port, 10, 16)
	return err == nil
}

// WrongAddress is like [Props.Wrong], for a property that has one or more addresses. Addresses are
// sometimes written with a user and a password, as in URLs. The error shows the value only if it
// contains neither.
func (p Props) WrongAddress(name, want string) error {
	value := p.String(name, "")
	shown := true
	for item := range strings.SplitSeq(value, ",") {
		item = strings.TrimSpace(item)
		for _, scheme := range []string{"http://", "https://"} {
			item = strings.TrimPrefix(item, scheme)
		}
		shown = shown && isAddress(item)
	}
	if shown {
		return p.Wrong(name, want)
	}
	if strings.Contains(value, "@") {
		want += "; user and password go into the properties username and password"
	}
	return &PropError{Name: name, Want: want}
}

// isAddress reports whether text only has characters that occur in hosts and ports.
func isAddress(text string) bool {
	for _, r := range text {
		if r < 0x80 && !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune(".:-_[]%", r)) {
			return false
		}
	}
	return true
}
