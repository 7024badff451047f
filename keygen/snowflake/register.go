package snowflake

import (
	"time"

	"github.com/shardkey/shardkey/spi"
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
	cfg := Config{RingSize: ringSize, Clock: p.Clock(), Logger: p.Logger()}
	for _, read := range []func(spi.Props, *Config) error{readLayout, readWorker, readOffset, readBack} {
		if err := read(p, &cfg); err != nil {
			return nil, err
		}
	}
	g, err := New(cfg)
	if err != nil {
		return nil, err // not g: a nil *Generator in an interface is not nil
	}
	return g, nil
}

func readLayout(p spi.Props, cfg *Config) error {
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

func readWorker(p spi.Props, cfg *Config) (err error) {
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

func readOffset(p spi.Props, cfg *Config) error {
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

func readBack(p spi.Props, cfg *Config) error {
	ms, err := p.Int("max-tolerate-time-difference-milliseconds", defaultTolerance.Milliseconds(), 0, maxTolerance.Milliseconds())
	if err != nil {
		return err
	}
	if cfg.Tolerance = time.Duration(ms) * time.Millisecond; ms == 0 {
		cfg.Tolerance = -1
	}
	word, err := p.Enum("clock-back", Wait.String(), Wait.String(), Borrow.String(), Fail.String())
	if err != nil {
		return err
	}
	for _, policy := range []ClockBack{Wait, Borrow, Fail} {
		if policy.String() == word {
			cfg.ClockBack = policy
		}
	}
	return nil
}
