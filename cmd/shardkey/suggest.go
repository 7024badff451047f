package main

import (
	"strings"

	edlib "github.com/hbollon/go-edlib"
)

// nearest returns the word of right that is most similar to wrong, and their edit distance. It
// ignores case and the separators of words. It returns "" if none is similar.
func nearest(wrong string, right []string) (word string, distance int) {
	wrong = folded(wrong)
	most := 1 + len(wrong)/4
	for _, known := range right {
		d := edlib.OSADamerauLevenshteinDistance(wrong, folded(known))
		if wrong != "" && d <= most {
			word, distance, most = known, d, d-1
		}
	}
	return word, distance
}

func folded(s string) string {
	const longest = 64 // no name is longer, and the distance takes quadratic time
	s = strings.NewReplacer("_", "", "-", "", ".", "", " ", "").Replace(strings.ToLower(s))
	return s[:min(len(s), longest)]
}

// didYouMean returns the end of a message about a wrong word: a suggestion, or "" if no
// right word is similar.
func didYouMean(wrong string, right []string) string {
	if word, _ := nearest(wrong, right); word != "" {
		return "; did you mean " + word + "?"
	}
	return ""
}
