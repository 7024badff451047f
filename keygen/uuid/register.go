package uuid

import "github.com/shardkey/shardkey/spi"

func init() {
	spi.RegisterKeyGenerator("UUID", func(p spi.Props) (spi.KeyGenerator, error) {
		version, err := p.Enum("version", "4", "4", "7")
		if err != nil {
			return nil, err
		}
		format, err := p.Enum("format", Hex.String(), Hex.String(), Canonical.String(), Binary.String())
		if err != nil {
			return nil, err
		}
		cfg := Config{Version: int(version[0] - '0'), Clock: p.Clock()}
		for _, f := range []Format{Hex, Canonical, Binary} {
			if f.String() == format {
				cfg.Format = f
			}
		}
		g, err := New(cfg)
		if err != nil {
			return nil, err
		}
		return g, nil
	})
}
