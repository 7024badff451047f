package snowflake

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/shardkey/shardkey/spi"
)

// DefaultEpoch is ShardingSphere's epoch (EPOCH in SnowflakeKeyGenerateAlgorithm): midnight UTC on
// 1 November 2016. Older releases of ShardingSphere used midnight in local time. A system that
// migrates from such a release must set that time as its epoch. Otherwise some hours of keys
// repeat.
var DefaultEpoch = time.Date(2016, time.November, 1, 0, 0, 0, 0, time.UTC)

// Values of clock-back, which specifies what to do while the clock is behind the newest key. With a
// leased worker ID, clockBackWait borrows instead of returning an error, and so does clockBackFail
// after more than a second; see borrows.
const (
	// clockBackWait waits if the clock is behind by at most the tolerance, and returns an error
	// otherwise.
	clockBackWait = "wait"
	// clockBackBorrow continues from the newest key's time, at the clock's rate. Keys stay ahead of
	// the clock by the size of the step, until demand drops or the clock steps forward.
	clockBackBorrow = "borrow"
	// clockBackFail returns an error at once.
	clockBackFail = "error"
)

// config has the properties of a generator.
type config struct {
	Layout Layout
	Epoch  time.Time // the time of tick 0

	WorkerID    int64
	WorkerIDSet bool                 // WorkerID was configured
	Assigner    spi.WorkerIDAssigner // used instead of WorkerID; the rule closes it

	MaxVibrationOffset int64 // the highest sequence that a fresh tick starts with
	ClockBack          string
	Tolerance          time.Duration // for clockBackWait
	RingSize           int           // number of past ticks with their own state; 1 means only the newest

	Clock  spi.Clock
	Logger *slog.Logger
}

const (
	defaultTolerance = 10       // ms
	maxTolerance     = 86400000 // ms; a day
	defaultRingSize  = 200      // for SNOWFLAKE_RING
	maxRingSize      = 1 << 16
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

// readTime reads the properties that determine the times that keys can have.
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

// checkTime checks the epoch. It compares it with the clock only if that is the system's clock: a
// custom clock isn't read before the first key.
func (c *config) checkTime() error {
	if err := checkEpoch(c.Epoch); err != nil || c.Clock != spi.SystemClock {
		return err
	}
	now, last := time.Now(), tickTime(c.Layout, c.Epoch, maxTick(c.Layout))
	switch {
	case c.Epoch.After(now):
		return fmt.Errorf("%w: epoch: expected a time before the current time %[3]s, found %[2]s", spi.ErrTimeOverflow, stamp(c.Epoch), stamp(now))
	case !now.Before(last.Add(c.Layout.Tick)):
		return fmt.Errorf("%w: layout %s with epoch %s ended at %s, so no key is left; "+
			"use another generator with more time bits or a longer tick; a later epoch is for tables without keys only",
			spi.ErrTimeOverflow, c.Layout, stamp(c.Epoch), stamp(last))
	}
	return nil
}

func checkEpoch(epoch time.Time) error {
	if epoch.Before(time.Unix(0, 0)) || epoch.Year() > 2200 {
		return fmt.Errorf("shardkey: epoch: expected a time from 1970 to 2200, found %s", stamp(epoch))
	}
	return nil
}

func (c *config) readWorker(p spi.Props) (err error) {
	if c.WorkerID, err = p.Int("worker-id", 0, 0, c.Layout.maxWorkerID()); err != nil {
		return err
	}
	c.WorkerIDSet = p.Has("worker-id")
	if c.Assigner, err = p.WorkerIDAssigner("worker-id-assigner"); err != nil {
		return err
	}
	if c.Assigner != nil && c.WorkerIDSet {
		return p.Wrong("worker-id", "no value next to worker-id-assigner")
	}
	return nil
}

func (c *config) readPolicies(p spi.Props) (err error) {
	most := c.Layout.maxSequence()
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
