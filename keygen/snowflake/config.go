package snowflake

import (
	"cmp"
	"fmt"
	"log/slog"
	"math"
	"time"

	"github.com/shardkey/shardkey/internal/guard"
	"github.com/shardkey/shardkey/spi"
)

// DefaultEpoch is ShardingSphere's (EPOCH in SnowflakeKeyGenerateAlgorithm):
// midnight UTC of 1 November 2016. Older releases of it used local midnight of
// that day; a system that moves from one needs that as its epoch, or hours of its
// keys repeat.
var DefaultEpoch = time.Date(2016, time.November, 1, 0, 0, 0, 0, time.UTC)

// clockBack says what to do while the clock is behind the keys already made.
type clockBack int

const (
	// clockBackWait waits when the clock is behind by Tolerance at most, and is an
	// error otherwise.
	clockBackWait clockBack = iota
	// clockBackBorrow continues from the newest key's time, at the clock's rate: keys
	// stay ahead of the clock by the size of the step, until a lull in the
	// demand or a step forward lets the clock catch up.
	clockBackBorrow
	// clockBackFail is an error at once.
	clockBackFail
)

// String is the policy as it is written in a rule.
func (c clockBack) String() string {
	switch c {
	case clockBackWait:
		return "wait"
	case clockBackBorrow:
		return "borrow"
	case clockBackFail:
		return "error"
	}
	return fmt.Sprintf("ClockBack(%d)", int(c))
}

// config describes a generator. The zero config is ShardingSphere's SNOWFLAKE
// with its defaults: worker 0, which is right for a single process only.
type config struct {
	// Layout is the split of the bits; zero means [Classic].
	Layout Layout
	// Epoch is the time of tick 0, within 1970 and now; zero means
	// [DefaultEpoch].
	Epoch time.Time

	// WorkerID is this process's own worker id, 0..Layout.MaxWorkerID().
	WorkerID int64
	// WorkerIDSet says that WorkerID was chosen. Without it and without an
	// Assigner the generator works as worker 0, warns once and shows it in
	// its health; a WorkerID above 0 needs no WorkerIDSet.
	WorkerIDSet bool
	// Assigner leases a worker id at the first key, instead of WorkerID. It
	// stays the caller's, who closes it after the generator.
	Assigner spi.WorkerIDAssigner

	// MaxVibrationOffset is the highest sequence that a fresh tick begins
	// with; beginnings go round 0..MaxVibrationOffset. Zero means 1, as in
	// ShardingSphere; −1 means none, so that each tick begins with 0. The
	// highest is Layout.MaxSequence().
	MaxVibrationOffset int
	// ClockBack is what to do when the clock steps back; zero is [clockBackWait].
	ClockBack clockBack
	// Tolerance is how far behind [clockBackWait] waits, 0..24 h; zero means 10 ms,
	// negative none.
	Tolerance time.Duration
	// RingSize is the number of past ticks whose state is kept, 1..65536, so
	// that the clock may step back among them; zero means 1: only the newest.
	RingSize int

	// Clock is the time; nil is the system's. Generators with the same Layout,
	// Epoch, worker id and Clock share one state within a process.
	Clock spi.Clock
	// Logger takes the leased worker ids, and the one warning of a worker id that
	// was not set; nil is slog.Default().
	Logger *slog.Logger
}

const (
	defaultTolerance = 10 * time.Millisecond
	maxTolerance     = 24 * time.Hour
	defaultRingSize  = 200 // of SNOWFLAKE_RING
	maxRingSize      = 1 << 16
	leastYears       = 10 // that a layout must have before it when it is chosen
)

func (c config) withDefaults() config {
	c.Layout = c.Layout.orDefault()
	if c.Epoch.IsZero() {
		c.Epoch = DefaultEpoch
	}
	if c.MaxVibrationOffset == 0 {
		c.MaxVibrationOffset = int(min(1, c.Layout.MaxSequence()))
	}
	if c.Tolerance == 0 {
		c.Tolerance = defaultTolerance
	}
	c.MaxVibrationOffset = max(c.MaxVibrationOffset, 0)
	c.Tolerance = max(c.Tolerance, 0)
	c.RingSize = max(c.RingSize, 1)
	if c.Clock == nil {
		c.Clock = spi.SystemClock
	}
	if c.Clock != spi.SystemClock {
		c.Clock = guard.NewClock(c.Clock)
	}
	c.Logger = guard.NewLogger(cmp.Or(c.Logger, slog.Default()))
	return c
}

// check refuses what cannot work. Fields have their defaults.
func (c config) check() error {
	if err := c.Layout.check(); err != nil {
		return err
	}
	if err := outside("worker id", c.WorkerID, c.Layout.MaxWorkerID()); err != nil {
		return err
	}
	if err := outside("max vibration offset", int64(c.MaxVibrationOffset), c.Layout.MaxSequence()); err != nil {
		return err
	}
	switch {
	case c.ClockBack < clockBackWait || c.ClockBack > clockBackFail:
		return fmt.Errorf("shardkey: %v is not a clock-back policy: use wait, borrow or error", c.ClockBack)
	case c.Tolerance > maxTolerance:
		return fmt.Errorf("shardkey: tolerance %v of a clock that steps back is above %v", c.Tolerance, maxTolerance)
	case c.RingSize > maxRingSize:
		return fmt.Errorf("shardkey: ring size %d is not in 1..%d", c.RingSize, maxRingSize)
	}
	return c.checkTime()
}

// checkTime checks the epoch, against now where the clock is the system's: a
// [config.Clock] is not read before the first key.
func (c config) checkTime() error {
	if err := checkEpoch(c.Epoch); err != nil {
		return err
	}
	if c.Clock != spi.SystemClock {
		return nil
	}
	now, last := time.Now(), lastTime(c.Layout, c.Epoch)
	switch {
	case c.Epoch.After(now):
		return fmt.Errorf("%w: epoch %s is in the future (it is %s)", spi.ErrTimeOverflow, stamp(c.Epoch), stamp(now))
	case last.Before(now.AddDate(leastYears, 0, 0)):
		return fmt.Errorf("%w: layout %s with epoch %s ends at %s, in under %d years: use more bits of time, a longer tick or a later epoch",
			spi.ErrTimeOverflow, c.Layout, stamp(c.Epoch), stamp(last), leastYears)
	}
	return nil
}

func checkEpoch(epoch time.Time) error {
	if epoch.Before(time.Unix(0, 0)) || epoch.Year() > 2200 {
		return fmt.Errorf("shardkey: epoch %s is not within 1970 and now", stamp(epoch))
	}
	return nil
}

func outside(what string, value, most int64) error {
	if value < 0 || value > most {
		return fmt.Errorf("shardkey: %s %d is not in 0..%d", what, value, most)
	}
	return nil
}

// lastTick is the highest value of the time field whose time Go can hold in
// nanoseconds, which it can until the year 2262.
func lastTick(l Layout, epoch time.Time) int64 {
	const end = math.MaxInt64 / int64(time.Second) * int64(time.Second)
	return min(1<<l.TimeBits-1, (end-epoch.UnixNano())/int64(l.Tick)-1)
}

func lastTime(l Layout, epoch time.Time) time.Time {
	return time.Unix(0, epoch.UnixNano()+lastTick(l, epoch)*int64(l.Tick)).UTC()
}

func init() {
	spi.RegisterKeyGenerator("SNOWFLAKE", func(p spi.Props) (spi.KeyGenerator, error) {
		return fromProps(p, 1)
	})
	spi.RegisterKeyGenerator("SNOWFLAKE_RING", func(p spi.Props) (spi.KeyGenerator, error) {
		size, err := p.Int("ring-size", defaultRingSize, 2, maxRingSize)
		if err != nil {
			return nil, err
		}
		return fromProps(p, int(size))
	})
}

func fromProps(p spi.Props, ringSize int) (spi.KeyGenerator, error) {
	cfg := config{RingSize: ringSize, Clock: p.Clock(), Logger: p.Logger()}
	for _, read := range []func(spi.Props, *config) error{readLayout, readWorker, readOffset, readBack} {
		if err := read(p, &cfg); err != nil {
			return nil, err
		}
	}
	g, err := newGenerator(cfg)
	if err != nil {
		return nil, err // not g: a nil *generator in an interface is not nil
	}
	return g, nil
}

func readLayout(p spi.Props, cfg *config) error {
	tick, err := p.Duration("tick", 0, time.Microsecond, time.Hour)
	if err != nil {
		return err
	}
	if cfg.Layout, err = ParseLayout(p.String("layout", Classic.String()), tick); err != nil {
		return err
	}
	cfg.Epoch, err = p.Time("epoch", DefaultEpoch)
	return err
}

func readWorker(p spi.Props, cfg *config) (err error) {
	if cfg.WorkerID, err = p.Int("worker-id", 0, 0, cfg.Layout.MaxWorkerID()); err != nil {
		return err
	}
	cfg.WorkerIDSet = p.Has("worker-id")
	if cfg.Assigner, err = p.WorkerIDAssigner("worker-id-assigner"); err != nil {
		return err
	}
	if cfg.Assigner != nil && cfg.WorkerIDSet {
		return p.Wrong("worker-id", "no worker-id beside worker-id-assigner: one of the two")
	}
	return nil
}

func readOffset(p spi.Props, cfg *config) error {
	most := cfg.Layout.MaxSequence()
	offset, err := p.Int("max-vibration-offset", min(1, most), 0, most)
	if err != nil {
		return err
	}
	if cfg.MaxVibrationOffset = int(offset); offset == 0 {
		cfg.MaxVibrationOffset = -1
	}
	return nil
}

func readBack(p spi.Props, cfg *config) error {
	ms, err := p.Int("max-tolerate-time-difference-milliseconds", defaultTolerance.Milliseconds(), 0, maxTolerance.Milliseconds())
	if err != nil {
		return err
	}
	if cfg.Tolerance = time.Duration(ms) * time.Millisecond; ms == 0 {
		cfg.Tolerance = -1
	}
	word, err := p.Enum("clock-back", clockBackWait.String(), clockBackWait.String(), clockBackBorrow.String(), clockBackFail.String())
	if err != nil {
		return err
	}
	for _, policy := range []clockBack{clockBackWait, clockBackBorrow, clockBackFail} {
		if policy.String() == word {
			cfg.ClockBack = policy
		}
	}
	return nil
}
