package main

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
)

type decodeFlags struct {
	layoutFlags
	guess     bool
	zone      zone
	shardBits int
}

func decodeCommand(p *program) *cobra.Command {
	f := &decodeFlags{zone: zone{time.UTC}}
	c := &cobra.Command{
		Use:   "decode [KEY...]",
		Short: "show the time, worker ID and sequence of keys",
		Long: `Use decode to see when, and by which worker ID, a key was generated. It prints the time,
worker ID, sequence and layout of integer keys and UUIDs. If KEY is -, or if there is
none and input is piped, it reads keys from standard input, one per line. Words that are
not keys are errors, after the others.

` + layoutHelp + `

A key doesn't contain its layout. --guess decodes it in the layouts of well-known
generators, and marks those in which its time is within the last year.

The exit status is 1 if a word is not a key, or the rule can't be read.`,
		Example: `  shardkey decode 1095292305367040001
  shardkey decode --guess 1095292305367040001
  shardkey decode 019a9e5c-7a00-7000-8000-000000000000
  mysql -N -e 'SELECT order_id FROM t_order' | shardkey decode --rule rule.yaml`,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(c *cobra.Command, args []string) error { return decode(p, c, f, p.arguments(args)) },
	}
	f.declare(c)
	fs := c.Flags()
	fs.BoolVar(&f.guess, "guess", false, "decode the keys in all well-known layouts")
	fs.IntVar(&f.shardBits, "gene-bits", 0, "`number` of shard bits, 1 to 16, the gene-bits of the rule")
	zoneFlag(fs, &f.zone, "of the output")
	p.outputFlag(fs)
	for _, other := range []string{"rule", "generator", "guess"} {
		c.MarkFlagsMutuallyExclusive(other, "gene-bits")
	}
	return c
}

// decoded is a decoded key.
type decoded struct {
	Key       string  `json:"key"`
	Time      string  `json:"time,omitempty"` // RFC 3339
	Worker    *int64  `json:"worker,omitempty"`
	Sequence  *int64  `json:"sequence,omitempty"`
	Layout    string  `json:"layout,omitempty"`
	ShardBits *int64  `json:"shardBits,omitempty"`
	Guesses   []guess `json:"guesses,omitempty"`
	Error     string  `json:"error,omitempty"`
}

// decodedKeys is the output of decode.
type decodedKeys struct {
	Keys []decoded `json:"keys"`
}

func decode(p *program, c *cobra.Command, f *decodeFlags, args []string) error {
	switch {
	case len(args) == 0:
		return usagef("no keys: pass them as arguments, or on standard input")
	case c.Flag("gene-bits").Changed && (f.shardBits < 1 || f.shardBits > 16):
		return usagef("--gene-bits %d: expected 1 to 16", f.shardBits)
	}
	layout, err := f.open(p, c)
	if err != nil {
		return err
	}
	defer layout.close()
	layout.shardBits = max(layout.shardBits, f.shardBits)
	d := &decoder{p: p, layout: layout, zone: f.zone.Location, guess: f.guess}
	p.beforeWait = d.show
	for word, err := range p.words(args) {
		if err != nil {
			d.show()
			return err
		}
		v := d.decode(word)
		d.keys, d.wrong = append(d.keys, v), d.wrong || v.Error != ""
	}
	d.show()
	return p.answer(decodedKeys{d.keys}, func(io.Writer) {}, d.wrong)
}

// decoder decodes keys. As text, it prints the keys of one read of the input as one table.
type decoder struct {
	p      *program
	layout *keyLayout
	zone   *time.Location
	guess  bool
	keys   []decoded // not yet printed
	shown  bool      // the table's header is printed
	wrong  bool      // a word was not a key
}

// show prints the keys that were decoded since its last call. It prints no JSON, which
// follows at the end.
func (d *decoder) show() {
	if d.p.json() || len(d.keys) == 0 {
		return
	}
	rows := newTable(d.p.out)
	for _, v := range d.keys {
		switch {
		case v.Error != "":
		case d.guess:
			printGuesses(d.p.out, v)
		default:
			d.row(rows, v)
		}
	}
	rows.Flush()
	for _, v := range d.keys {
		if v.Error != "" {
			d.p.warn(v.Error)
		}
	}
	d.keys = d.keys[:0]
}

func (d *decoder) row(w io.Writer, v decoded) {
	header, shard := "KEY\tTIME\tWORKER\tSEQUENCE\tLAYOUT", ""
	if d.layout.shardBits > 0 {
		header += "\tSHARD BITS"
		shard = "\t-"
		if v.ShardBits != nil {
			shard = fmt.Sprintf("\t%d of %d", *v.ShardBits, 1<<d.layout.shardBits)
		}
	}
	if !d.shown {
		d.shown = true
		fmt.Fprintln(w, header)
	}
	fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s%s\n",
		v.Key, orDash(v.Time), numberOrDash(v.Worker), numberOrDash(v.Sequence), v.Layout, shard)
}

func (d *decoder) decode(word string) decoded {
	if u, ok := parseUUID(word); ok {
		return u.decode(word, d.zone)
	}
	key, err := strconv.ParseInt(word, 10, 64)
	if err != nil {
		return decoded{
			Key:   strings.Trim(quoted(word), `"`),
			Error: quoted(word) + " is not a key: expected an integer in 0..9223372036854775807, or a UUID",
		}
	}
	v := decoded{Key: strconv.FormatInt(key, 10)}
	if d.guess {
		if v.Guesses = guesses(key, d.p.clock.Now(), d.zone); len(v.Guesses) == 0 {
			v.Error = fmt.Sprintf("%d is not a key of a known layout", key)
		}
		return v
	}
	parts, err := d.layout.DecodeKey(key)
	if err != nil {
		v.Error = plain(err)
		return v
	}
	v.Time, v.Layout = formatTime(parts.Time, d.zone), parts.Layout
	v.Worker, v.Sequence = &parts.WorkerID, &parts.Sequence
	if d.layout.shardBits > 0 {
		v.ShardBits = new(key & (1<<d.layout.shardBits - 1))
	}
	return v
}

// newTable returns a writer that aligns columns separated by tabs.
func newTable(w io.Writer) *tabwriter.Writer { return tabwriter.NewWriter(w, 0, 0, 2, ' ', 0) }

func orDash(text string) string { return cmp.Or(text, "-") }

func numberOrDash(n *int64) string {
	if n == nil {
		return "-"
	}
	return strconv.FormatInt(*n, 10)
}
