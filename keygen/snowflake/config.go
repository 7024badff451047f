package snowflake

import (
	"fmt"
	"log/slog"
	"math"
	"time"

	"github.com/shardkey/shardkey/spi"
)

// DefaultEpoch is ShardingSphere's (EPOCH in SnowflakeKeyGenerateAlgorithm):
// midnight UTC of 1 November 2016. Older releases of it used local midnight of
// that day; a system that moves from one needs that as its epoch, or hours of its
// keys repeat.
var DefaultEpoch = time.Date(2016, time.November, 1, 0, 0, 0, 0, time.UTC)

// Values of clock-back: what to do while the clock is behind the keys already made.
const (
	// clockBackWait waits when the clock is behind by the tolerance at most, and is an
	// error otherwise.
	clockBackWait = "wait"
	// clockBackBorrow continues from the newest key's time, at the clock's rate: keys
	// stay ahead of the clock by the size of the step, until a lull in the
	// demand or a step forward lets the clock catch up.
	clockBackBorrow = "borrow"
	// clockBackFail is an error at once.
	clockBackFail = "error"
)

// config is what a rule's properties say.
type config struct {
	Layout Layout
	Epoch  time.Time // of tick 0

	WorkerID    int64
	WorkerIDSet bool                 // WorkerID was chosen
	Assigner    spi.WorkerIDAssigner // instead of WorkerID; the rule closes it

	MaxVibrationOffset int64 // the highest sequence that a fresh tick begins with
	ClockBack          string
	Tolerance          time.Duration // of clockBackWait
	RingSize           int           // past ticks whose state is kept; 1: only the newest

	Clock  spi.Clock
	Logger *slog.Logger
}

const (
	defaultTolerance = 10       // ms
	maxTolerance     = 86400000 // ms: a day
	defaultRingSize  = 200      // of SNOWFLAKE_RING
	maxRingSize      = 1 << 16
	leastYears       = 10 // that a layout must have before it when it is chosen
)

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
	c := config{RingSize: ringSize, Clock: p.Clock(), Logger: p.Logger()}
	for _, read := range []func(spi.Props) error{c.readTime, c.readWorker, c.readPolicies} {
		if err := read(p); err != nil {
			return nil, err
		}
	}
	return newGenerator(c), nil
}

// readTime reads what decides which times keys can have.
func (c *config) readTime(p spi.Props) error {
	tick, err := p.Duration("tick", 0, time.Microsecond, time.Hour)
	if err != nil {
		return err
	}
	if c.Layout, err = ParseLayout(p.String("layout", Classic.String()), tick); err != nil {
		return err
	}
	if c.Epoch, err = p.Time("epoch", DefaultEpoch); err != nil {
		return err
	}
	return c.checkTime()
}

// checkTime checks the epoch, against now where the clock is the system's: a
// program's own clock is not read before the first key.
func (c *config) checkTime() error {
	if err := checkEpoch(c.Epoch); err != nil || c.Clock != spi.SystemClock {
		return err
	}
	now, last := time.Now(), lastTime(c.Layout, c.Epoch)
	switch {
	case c.Epoch.After(now):
		return fmt.Errorf("%w: epoch %s is in the future (it is %s)", spi.ErrTimeOverflow, stamp(c.Epoch), stamp(now))
	case last.Before(now.AddDate(leastYears, 0, 0)):
		return fmt.Errorf("%w: layout %s with epoch %s ends at %s, in under %d years: "+
			"use more bits of time, a longer tick or a later epoch",
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

// lastTick is the highest value of the time field whose time Go can hold in
// nanoseconds, which it can until the year 2262.
func lastTick(l Layout, epoch time.Time) int64 {
	const end = math.MaxInt64 / int64(time.Second) * int64(time.Second)
	return min(1<<l.TimeBits-1, (end-epoch.UnixNano())/int64(l.Tick)-1)
}

func lastTime(l Layout, epoch time.Time) time.Time {
	return time.Unix(0, epoch.UnixNano()+lastTick(l, epoch)*int64(l.Tick)).UTC()
}

func (c *config) readWorker(p spi.Props) (err error) {
	if c.WorkerID, err = p.Int("worker-id", 0, 0, c.Layout.MaxWorkerID()); err != nil {
		return err
	}
	c.WorkerIDSet = p.Has("worker-id")
	if c.Assigner, err = p.WorkerIDAssigner("worker-id-assigner"); err != nil {
		return err
	}
	if c.Assigner != nil && c.WorkerIDSet {
		return p.Wrong("worker-id", "no worker-id beside worker-id-assigner: one of the two")
	}
	return nil
}

func (c *config) readPolicies(p spi.Props) (err error) {
	most := c.Layout.MaxSequence()
	if c.MaxVibrationOffset, err = p.Int("max-vibration-offset", min(1, most), 0, most); err != nil {
		return err
	}
	ms, err := p.Int("max-tolerate-time-difference-milliseconds", defaultTolerance, 0, maxTolerance)
	if err != nil {
		return err
	}
	c.Tolerance = time.Duration(ms) * time.Millisecond
	c.ClockBack, err = p.Enum("clock-back", clockBackWait, clockBackWait, clockBackBorrow, clockBackFail)
	return err
}
