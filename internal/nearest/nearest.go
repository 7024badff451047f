// Package nearest suggests known words for a misspelt one.
package nearest

import (
	"slices"
	"strings"
)

// Words returns up to three of the known words, right, that are similar to wrong, most similar
// first.
func Words(wrong string, right []string) (words []string) {
	folded := fold(wrong)
	if folded == "" {
		return nil
	}
	distances := map[string]int{}
	for _, word := range right {
		d := distance(folded, fold(word))
		if d == 0 {
			return []string{word}
		}
		if d <= 1+len(folded)/4 || beginAlike(folded, fold(word)) {
			words, distances[word] = append(words, word), d
		}
	}
	slices.SortStableFunc(words, func(a, b string) int { return distances[a] - distances[b] })
	return words[:min(3, len(words))]
}

// Word returns the first of [Words], empty if there is none.
func Word(wrong string, right []string) string {
	if words := Words(wrong, right); len(words) > 0 {
		return words[0]
	}
	return ""
}

// Distance returns the number of letters to insert, remove, change or swap with their neighbour to
// get from a to b. It ignores case, blanks, "_", "-" and ".". Words of more than 64 bytes have
// distance 64 to all others.
func Distance(a, b string) int { return distance(fold(a), fold(b)) }

// beginAlike reports whether words have a common prefix of most of the shorter one, for example
// "worker" and "worker-id".
func beginAlike(a, b string) bool {
	shorter := min(len(a), len(b))
	same := 0
	for same < shorter && a[same] == b[same] {
		same++
	}
	return shorter >= 3 && same*4 >= shorter*3
}

var folding = strings.NewReplacer("_", "", "-", "", ".", "", " ", "")

func fold(s string) string { return folding.Replace(strings.ToLower(s)) }

// maxWord limits the length of compared words.
const maxWord = 64

func distance(a, b string) int {
	if len(a) > maxWord || len(b) > maxWord {
		return maxWord
	}
	var before, last, row [maxWord + 1]int // three rows of the edit-distance table
	for j := range len(b) + 1 {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}
