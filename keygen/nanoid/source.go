package nanoid

import "io"

// source hands out random bytes one by one and reads them in blocks. Nothing
// is kept from one call of GenerateKeys to the next.
type source struct {
	rand io.Reader
	want int // bytes that will be asked for, at least
	buf  []byte
	pos  int
}

const (
	minBlock = 64
	maxBlock = 4096
)

func (s *source) next() (byte, error) {
	if s.pos == len(s.buf) {
		if err := s.fill(); err != nil {
			return 0, err
		}
	}
	b := s.buf[s.pos]
	s.pos++
	return b, nil
}

func (s *source) fill() error {
	if s.buf == nil {
		s.buf = make([]byte, max(minBlock, min(s.want, maxBlock)))
	}
	s.pos = 0
	n, err := io.ReadAtLeast(s.rand, s.buf, 1)
	s.buf = s.buf[:n]
	return err
}
