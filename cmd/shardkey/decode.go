package main

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/google/uuid"
	"github.com/shardkey/shardkey/keygen/snowflake"
	"github.com/spf13/cobra"
)

type decodeFlags struct {
	layoutFlags
	guess     bool
	zone      *time.Location
	shardBits int
	interval  string
}

func decodeCommand(p *program) *cobra.Command {
	f := new(decodeFlags)
	c := &cobra.Command{
		Use:   "decode [KEY...]",
		Short: "show the time, worker ID and sequence of keys, or the keys of a time",
		Long: `Use decode to see when, and by which worker ID, a key was generated. It prints the time,
worker ID, sequence and layout of integer keys and UUIDs. If KEY is -, or if there is
none and input is piped, it reads keys from standard input, one per line. Words that are
not keys are errors, after the others.

` + layoutHelp + `

A key doesn't contain its layout. --guess decodes it in the layouts of well-known
generators, and marks those in which its time is within the last year. The list isn't
complete: use --layout, --tick and --epoch for other generators.

--range prints the smallest and largest key of an interval, over all worker IDs, and a
BETWEEN condition. The interval doesn't include UNTIL. Without UNTIL it is the whole day
if FROM is a day, and otherwise ends now.

` + timeHelp + `

The exit status is 1 if a word is not a key, the layout has no keys in the interval, or
the rule can't be read.`,
		Example: `  shardkey decode 1095292305367040001
  shardkey decode --guess 1095292305367040001
  shardkey decode 019a9e5c-7a00-7000-8000-000000000000
  shardkey decode --range yesterday
  shardkey decode --range '2026-02-01 10:00..+30m' --tz Asia/Shanghai
  mysql -N -e 'SELECT order_id FROM t_order' | shardkey decode --rule rule.yaml`,
		RunE: func(c *cobra.Command, args []string) error { return decode(p, c, f, args) },
	}
	f.declare(c)
	fs := c.Flags()
	fs.BoolVar(&f.guess, "guess", false, "decode the keys in all well-known layouts")
	fs.IntVar(&f.shardBits, "gene-bits", 0, "`number` of shard bits, 1 to 16, the gene-bits of the rule")
	fs.StringVar(&f.interval, "range", "", "print the keys of the `time` FROM or FROM..UNTIL")
	zoneFlag(fs, &f.zone, "of --range and the output")
	for _, other := range []string{"rule", "generator", "guess", "range"} {
		c.MarkFlagsMutuallyExclusive(other, "gene-bits")
	}
	c.MarkFlagsMutuallyExclusive("guess", "range")
	_ = c.RegisterFlagCompletionFunc("range", words("today", "yesterday", "24h", "7d"))
	return c
}

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

type decodedKeys struct {
	Keys []decoded `json:"keys"`
}

func decode(p *program, c *cobra.Command, f *decodeFlags, args []string) error {
	between := c.Flag("range").Changed
	switch {
	case between && len(args) > 0:
		return usagef("--range: expected no keys, found %s", quoted(args[0]))
	case !between && len(p.arguments(args)) == 0:
		return usagef("no keys: pass them as arguments, or on standard input")
	case c.Flag("gene-bits").Changed && (f.shardBits < 1 || f.shardBits > 16):
		return usagef("--gene-bits %d: expected 1 to 16", f.shardBits)
	}
	layout, err := f.open(p, c)
	if err != nil {
		return err
	}
	defer layout.close()
	if between {
		return keyRange(p, layout, f)
	}
	layout.shardBits = max(layout.shardBits, f.shardBits)
	d := &decoder{p: p, layout: layout, zone: f.zone, guess: f.guess}
	p.beforeWait = d.show
	for word, err := range p.words(p.arguments(args)) {
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
func (de *decoder) show() {
	if de.p.json() || len(de.keys) == 0 {
		return
	}
	rows := newTable(de.p.out)
	for _, v := range de.keys {
		switch {
		case v.Error != "":
		case de.guess:
			printGuesses(de.p.out, v)
		default:
			de.row(rows, v)
		}
	}
	rows.Flush()
	for _, v := range de.keys {
		if v.Error != "" {
			de.p.warn(v.Error)
		}
	}
	de.keys = de.keys[:0]
}

func (de *decoder) row(w io.Writer, v decoded) {
	header, shard := "KEY\tTIME\tWORKER\tSEQUENCE\tLAYOUT", ""
	if de.layout.shardBits > 0 {
		header += "\tSHARD BITS"
		shard = "\t-"
		if v.ShardBits != nil {
			shard = fmt.Sprintf("\t%d of %d", *v.ShardBits, 1<<de.layout.shardBits)
		}
	}
	if !de.shown {
		de.shown = true
		fmt.Fprintln(w, header)
	}
	fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s%s\n",
		v.Key, orDash(v.Time), numberOrDash(v.Worker), numberOrDash(v.Sequence), v.Layout, shard)
}

func (de *decoder) decode(word string) decoded {
	if u, ok := parseUUID(word); ok {
		return decodeUUID(u, word, de.zone)
	}
	key, err := strconv.ParseInt(word, 10, 64)
	if err != nil {
		return decoded{
			Key:   strings.Trim(quoted(word), `"`),
			Error: quoted(word) + " is not a key: expected an integer in 0..9223372036854775807, or a UUID",
		}
	}
	v := decoded{Key: strconv.FormatInt(key, 10)}
	if de.guess {
		if v.Guesses = guesses(key, de.p.clock.Now(), de.zone); len(v.Guesses) == 0 {
			v.Error = fmt.Sprintf("%d is not a key of a known layout", key)
		}
		return v
	}
	if err := de.layout.untimed; err != nil {
		v.Error = fmt.Sprintf("%d cannot be decoded: %v", key, err)
		return v
	}
	parts, err := de.layout.DecodeKey(key)
	if err != nil {
		v.Error = trimPrefix(err)
		return v
	}
	v.Time, v.Layout = formatTime(parts.Time, de.zone), parts.Layout
	v.Worker, v.Sequence = &parts.WorkerID, &parts.Sequence
	if de.layout.shardBits > 0 {
		v.ShardBits = new(key & (1<<de.layout.shardBits - 1))
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

// knownLayout is the default layout of the integer keys of a library or service.
type knownLayout struct {
	name   string
	layout snowflake.Layout
	epoch  time.Time
}

func layoutOf(timeBits, workerBits, sequenceBits int) snowflake.Layout {
	return snowflake.Layout{TimeBits: timeBits, WorkerBits: workerBits, SequenceBits: sequenceBits}
}

func ms(n int64) time.Time { return time.UnixMilli(n).UTC() }

// sonyflake is the name of a layout whose sequence comes before the worker.
const sonyflake = "Sonyflake (time, sequence, machine)"

// knownLayouts are layouts of time, worker and sequence whose keys fit in a BIGINT.
var knownLayouts = []knownLayout{
	{"SNOWFLAKE; ShardingSphere in UTC", snowflake.Classic, snowflake.DefaultEpoch},
	// The epoch of ShardingSphere's SnowflakeKeyGenerateAlgorithm is midnight of 2016-11-01
	// in the machine's time zone.
	{"ShardingSphere at +08:00", snowflake.Classic, snowflake.DefaultEpoch.Add(-8 * time.Hour)},
	{"ShardingSphere at +09:00", snowflake.Classic, snowflake.DefaultEpoch.Add(-9 * time.Hour)},
	{"REDIS", layoutOf(41, 12, 10), snowflake.DefaultEpoch},
	{"SNOWFLAKE js53", snowflake.Layout{TimeBits: 33, WorkerBits: 4, SequenceBits: 15, Tick: time.Second}, snowflake.DefaultEpoch},
	// The epoch is twepoch in IdWorker.scala of twitter-archive/snowflake. The same epoch is
	// in SnowflakeIDGenImpl.java of Meituan-Dianping/Leaf, snowflake.go of bwmarrin/snowflake,
	// Sequence.java of baomidou/mybatis-plus and Snowflake.java of dromara/hutool. Some of
	// them split the worker's 10 bits into 5 of a data center and 5 of a worker.
	{"Twitter, Leaf, bwmarrin/snowflake, MyBatis-Plus, Hutool", snowflake.Classic, ms(1288834974657)},
	// https://discord.com/developers/docs/reference#snowflakes
	{"Discord", snowflake.Classic, ms(1420070400000)},
	// "Sharding & IDs at Instagram", 2012: 41 bits of ms, 13 of a shard, 10 of a sequence.
	{"Instagram", layoutOf(40, 13, 10), ms(1314220021721)},
	// IdGeneratorOptions.go of yitter/IdGenerator.
	{"yitter/IdGenerator in Go", layoutOf(51, 6, 6), ms(1582136402000)},
	// YitIdHelper's IdGeneratorOptions.cs: BaseTime is 2020-02-20T02:20:02.020Z.
	{"yitter/IdGenerator in C#", layoutOf(51, 6, 6), ms(1582165202020)},
	// IdWorker.java of apache/incubator-seata before 1.4: twepoch is 2020-05-03 at +08:00.
	{"Seata before 1.4", snowflake.Classic, ms(1588435200000)},
	// sonyflake.go of sony/sonyflake: 39 bits of 10 ms, 8 of a sequence, 16 of a machine.
	{sonyflake, snowflake.Layout{TimeBits: 39, WorkerBits: 8, SequenceBits: 16, Tick: 10 * time.Millisecond}, ms(1409529600000)},
	// CosId.java of Ahoo-Wang/CosId: COSID_EPOCH is 2019-12-25 at +08:00.
	{"CosId", snowflake.Classic, ms(1577203200000)},
	// DefaultUidGenerator.java of baidu/uid-generator. Its epoch is a date in the machine's
	// time zone.
	{
		"Baidu uid-generator at +08:00",
		snowflake.Layout{TimeBits: 28, WorkerBits: 22, SequenceBits: 13, Tick: time.Second}, ms(1463673600000),
	},
	// snowflake.go of godruoyi/go-snowflake.
	{"godruoyi/go-snowflake", snowflake.Classic, time.Date(2008, 11, 10, 23, 0, 0, 0, time.UTC)},
}

// guess is a key decoded in a known layout.
type guess struct {
	Time     string `json:"time"` // RFC 3339
	Worker   int64  `json:"worker"`
	Sequence int64  `json:"sequence"`
	Layout   string `json:"layout"`
	Epoch    string `json:"epoch"` // RFC 3339
	KeysOf   string `json:"keysOf"`
	Near     bool   `json:"near"` // the time is near now

	distance time.Duration // between the time and now
}

// A time is near now if it is at most nearBefore earlier or nearAfter later. A time more
// than farOff ahead of now shows that a layout is wrong.
const (
	nearBefore = 366 * 24 * time.Hour
	nearAfter  = 24 * time.Hour
	farOff     = 100 * 366 * 24 * time.Hour
)

// guesses decodes a key in each known layout, nearest time first. It leaves out layouts in
// which the key is invalid or its time is more than farOff ahead.
func guesses(key int64, now time.Time, zone *time.Location) (found []guess) {
	for _, k := range knownLayouts {
		parts, err := snowflake.Decode(k.layout, k.epoch, key)
		after := parts.Time.Sub(now)
		if err != nil || after > farOff {
			continue
		}
		if k.name == sonyflake {
			parts.WorkerID, parts.Sequence = parts.Sequence, parts.WorkerID
		}
		found = append(found, guess{
			Time: formatTime(parts.Time, zone), Worker: parts.WorkerID, Sequence: parts.Sequence,
			Layout: k.layout.String(), Epoch: formatTime(k.epoch, time.UTC), KeysOf: k.name,
			Near: -nearBefore <= after && after <= nearAfter, distance: max(after, -after),
		})
	}
	slices.SortStableFunc(found, func(a, b guess) int { return cmp.Compare(a.distance, b.distance) })
	return found
}

func printGuesses(w io.Writer, v decoded) {
	if v.Guesses == nil { // a UUID, which contains its version
		fmt.Fprintf(w, "%s  %s  %s\n", v.Key, orDash(v.Time), v.Layout)
		return
	}
	fmt.Fprintln(w, v.Key)
	rows := newTable(w)
	fmt.Fprintln(rows, " \tTIME\tWORKER\tSEQUENCE\tLAYOUT\tEPOCH\tKEYS OF")
	for _, g := range v.Guesses {
		mark := " "
		if g.Near {
			mark = "*"
		}
		fmt.Fprintf(rows, "%s\t%s\t%d\t%d\t%s\t%s\t%s\n",
			mark, g.Time, g.Worker, g.Sequence, g.Layout, g.Epoch, g.KeysOf)
	}
	rows.Flush()
	if !slices.ContainsFunc(v.Guesses, func(g guess) bool { return g.Near }) {
		fmt.Fprintln(w, "No time is near now, so the key may be of another generator: use --layout, --tick and --epoch.")
	}
}

// binaryLiteral matches SQL's literals of 16 bytes.
var binaryLiteral = regexp.MustCompile(`(?i)^(?:x'([0-9a-f]{32})'|0x([0-9a-f]{32}))$`)

// parseUUID parses a UUID with or without dashes, as x'…' or 0x…, in braces, or as a URN.
func parseUUID(word string) (u uuid.UUID, ok bool) {
	word = binaryLiteral.ReplaceAllString(word, "$1$2")
	u, err := uuid.Parse(word)
	return u, err == nil && uuid.Validate(word) == nil // Parse doesn't look at the braces
}

// uuidKinds describes the UUID versions without a time. See RFC 9562.
var uuidKinds = map[uuid.Version]string{
	2: "DCE security", 3: "MD5 of a name", 4: "random", 5: "SHA-1 of a name", 8: "custom",
}

func decodeUUID(u uuid.UUID, word string, zone *time.Location) decoded {
	v := decoded{Key: word}
	version, ticks := u.Version(), u.Time()
	if version == 6 {
		// Unlike RFC 9562, Time reads the version as a part of the time.
		first := binary.BigEndian.Uint64(u[:8])
		ticks = uuid.Time(first>>16<<12 | first&0xfff)
	}
	switch {
	case u == uuid.Nil:
		v.Layout = "nil UUID"
	case u == uuid.Max:
		v.Layout = "max UUID"
	case u.Variant() != uuid.RFC4122:
		v.Layout = "UUID of another variant"
	case version == 1, version == 6:
		v.Time, v.Sequence = formatTime(time.Unix(ticks.UnixTime()), zone), new(int64(u.ClockSequence()))
	case version == 7:
		v.Time = formatTime(time.Unix(ticks.UnixTime()), zone)
	case uuidKinds[version] != "":
		v.Layout = fmt.Sprintf("UUIDv%d (%s)", version, uuidKinds[version])
	}
	v.Layout = cmp.Or(v.Layout, fmt.Sprintf("UUIDv%d", version))
	return v
}
