package nanoid

import "github.com/shardkey/shardkey/spi"

func init() {
	spi.RegisterKeyGenerator("NANOID", func(p spi.Props) (spi.KeyGenerator, error) {
		size, err := p.Int("size", DefaultSize, minSize, maxSize)
		if err != nil {
			return nil, err
		}
		alphabet := p.String("alphabet", DefaultAlphabet)
		if alphabet == "" {
			return nil, p.Wrong("alphabet", "2..256 different characters")
		}
		g, err := New(Config{Size: int(size), Alphabet: alphabet})
		if err != nil {
			return nil, err
		}
		return g, nil
	})
}
