package main

import (
	"cmp"
	"fmt"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
)

func decodeCommand(p *program) *cobra.Command {
	f := new(decodeFlags)
	c := &cobra.Command{
		Use:   "decode KEY…",
		Short: "take keys apart: time, worker, sequence",
		Long: "Takes integer keys and UUIDs apart and prints, for each, its time, worker id,\n" +
			"sequence and layout. KEY - is standard input, a key a line, and so is a pipe where no\n" +
			"KEY is given. A KEY that cannot be one is an error, printed after the others.\n\n" + layoutHelp +
			"\n\nA key does not say how it was made: -guess reads it in each of the layouts and epochs\n" +
			"that are well known, and marks those whose time is within a year before now.",
		Example: "  shardkey decode 1095292305367040001\n" +
			"  shardkey decode -guess 1095292305367040001\n" +
			"  shardkey decode 019a9e5c-7a00-7000-8000-000000000000\n" +
			"  mysql -N -e 'SELECT order_id FROM t_order' | shardkey decode -rule rule.yaml -o json",
		ValidArgsFunction: oneOf(),
	}
	f.declare(c.Flags())
	c.Flags().BoolVar(&f.guess, "guess", false, "read the keys in all known layouts and epochs")
	c.Flags().IntVar(&f.geneBits, "gene-bits", 0, "how many of a key's lowest `bits` are a gene, as the rule's gene-bits; 1 to 16")
	c.Flags().StringVar(&f.zone, "tz", "UTC", "the time `zone` to print times in: a name as Asia/Shanghai, +08:00, or Local")
	p.outputFlag(c.Flags())
	c.RunE = func(_ *cobra.Command, args []string) error { return decode(p, f, p.arguments(args)) }
	return c
}

type decodeFlags struct {
	layoutFlags
	guess    bool
	zone     string
	geneBits int
}

// decoded is what a key holds.
type decoded struct {
	Key      string  `json:"key"`
	Time     string  `json:"time,omitempty"` // RFC 3339
	Worker   *int64  `json:"worker,omitempty"`
	Sequence *int64  `json:"sequence,omitempty"`
	Layout   string  `json:"layout,omitempty"`
	Gene     *int64  `json:"gene,omitempty"` // of 2^gene-bits
	Guesses  []guess `json:"guesses,omitempty"`
	Error    string  `json:"error,omitempty"`
}

// maxTogether bounds the rows that wait to be printed together, and maxWrong the keys
// that are none and are shown.
const (
	maxTogether = 1000
	maxWrong    = 20
)

func decode(p *program, f *decodeFlags, args []string) error {
	if len(args) == 0 {
		return usagef("give the keys to decode")
	}
	zone, err := parseZone(f.zone)
	if err != nil {
		return err
	}
	bits, done, err := f.open(p)
	if err != nil {
		return err
	}
	defer done()
	d := &decoder{p: p, bits: bits, zone: zone, guess: f.guess}
	if d.geneBits, err = f.genes(bits); err != nil {
		return err
	}
	columns := []string{"KEY", "TIME", "WORKER", "SEQUENCE", "LAYOUT"}
	if d.geneBits > 0 {
		columns = append(columns, "GENE")
	}
	d.rows = newTable(columns...)
	p.beforeWait = d.show
	for word, err := range p.words(args) {
		if err != nil {
			d.show()
			return err
		}
		if err := d.add(word); err != nil {
			return err
		}
	}
	d.show()
	if d.hidden > 0 {
		p.report(fmt.Errorf("and %d more that are no keys", d.hidden))
	}
	if d.wrong > 0 {
		return errReported
	}
	return nil
}

// decoder prints what keys hold, those together that are read together.
type decoder struct {
	p      *program
	bits   keyBits
	zone   *time.Location
	guess  bool
	rows   *table
	errors []string
	wrong  int
	hidden int // of the wrong ones

	geneBits int
}

func (d *decoder) add(word string) error {
	v := d.decode(word)
	if v.Error != "" {
		d.wrong++
	}
	switch {
	case d.p.json:
		return d.p.emit(v)
	case v.Error != "" && d.wrong > maxWrong:
		d.hidden++
	case v.Error != "":
		d.errors = append(d.errors, v.Error)
	case d.guess:
		d.show()
		printGuesses(d.p, v)
	default:
		row := []string{v.Key, cmp.Or(v.Time, "-"), formatNumber(v.Worker), formatNumber(v.Sequence), v.Layout}
		if d.geneBits > 0 {
			row = append(row, formatGene(v.Gene, d.geneBits))
		}
		d.rows.add(row...)
	}
	if len(d.rows.rows) >= maxTogether {
		d.show()
	}
	return nil
}

// show prints what has been decoded, and what could not be.
func (d *decoder) show() {
	d.rows.print(d.p.out)
	for _, text := range d.errors {
		d.p.reportText(text)
	}
	d.errors = d.errors[:0]
}

func (d *decoder) decode(word string) decoded {
	if u, ok := parseUUID(word); ok {
		return u.decode(word, d.zone)
	}
	key, err := strconv.ParseInt(word, 10, 64)
	if err != nil {
		return decoded{Key: word, Error: fmt.Sprintf("%s is not a key: an integer in 0..9223372036854775807 is one, or a UUID", quoted(word))}
	}
	v := decoded{Key: strconv.FormatInt(key, 10)}
	if d.guess {
		if v.Guesses = guesses(key, d.p.clock.Now(), d.zone); len(v.Guesses) == 0 {
			v.Error = fmt.Sprintf("%d is a key of no known layout", key)
		}
		return v
	}
	parts, err := d.bits.DecodeKey(key)
	if err != nil {
		v.Error = plain(err)
		return v
	}
	v.Time, v.Worker, v.Sequence, v.Layout = formatTime(parts.Time, d.zone), &parts.WorkerID, &parts.Sequence, parts.Layout
	if d.geneBits > 0 {
		v.Gene = new(key & (1<<d.geneBits - 1))
	}
	return v
}

// shorten is the beginning of a word that somebody gave for a key.
func shorten(word string) string {
	const most = 60
	if len(word) <= most {
		return word
	}
	end := most
	for end > 0 && !utf8.RuneStart(word[end]) {
		end--
	}
	return word[:end] + "…"
}

func formatNumber(n *int64) string {
	if n == nil {
		return "-"
	}
	return strconv.FormatInt(*n, 10)
}
