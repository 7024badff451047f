package workerid

import "testing"

// Tokens made at one time differ all the same.
func TestNewToken_isRandom(t *testing.T) {
	const random = 32 // digits, of 128 bits
	seen := map[string]bool{}
	for range 1000 {
		token := newToken()
		if len(token) < random || seen[token[:random]] {
			t.Fatalf("have: %s\nwant: %d random digits that have not come before", token, random)
		}
		seen[token[:random]] = true
	}
}
