package driver

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"io"
	"os"
)

// copiedInMemory is how many bytes of the rows of one INSERT … SELECT are kept in memory;
// what is more goes to a file.
const copiedInMemory = 4 << 20

// copiedRow is a row of a query as the text of its values. The key stands between
// before and after, and is empty where one is to be generated.
type copiedRow struct{ before, key, after []byte }

// size is about how many bytes the row takes in an INSERT.
func (r *copiedRow) size() int {
	const rest = len("(),") + len("18446744073709551615")
	return len(r.before) + len(r.key) + len(r.after) + rest
}

// rowBuffer keeps rows in memory, and beyond that in a private file, which has no
// name any more where the system lets an open file be removed. Its zero value is empty.
type rowBuffer struct {
	rows   int
	memory []byte
	file   *os.File
	w      *bufio.Writer
	r      *bufio.Reader
	row    []byte // that was read last
}

// add appends a row.
func (b *rowBuffer) add(row copiedRow) error {
	b.rows++
	var head [3 * binary.MaxVarintLen64]byte
	n := 0
	for _, part := range [][]byte{row.before, row.key, row.after} {
		n += binary.PutUvarint(head[n:], uint64(len(part)))
	}
	for _, part := range [][]byte{head[:n], row.before, row.key, row.after} {
		if err := b.write(part); err != nil {
			return err
		}
	}
	return nil
}

func (b *rowBuffer) write(p []byte) (err error) {
	if b.w != nil {
		_, err = b.w.Write(p)
		return err
	}
	if len(b.memory)+len(p) <= copiedInMemory {
		b.memory = append(b.memory, p...)
		return nil
	}
	if b.file, err = os.CreateTemp("", "shardkey-rows-*"); err != nil { // for its owner alone
		return err
	}
	_ = os.Remove(b.file.Name()) // Windows removes it in close
	b.w = bufio.NewWriterSize(b.file, 64<<10)
	_, err = b.w.Write(b.memory)
	b.memory = nil
	if err == nil {
		_, err = b.w.Write(p)
	}
	return err
}

// rewind makes next begin with the first row. No row is added from then on.
func (b *rowBuffer) rewind() error {
	if b.file == nil {
		b.r = bufio.NewReader(bytes.NewReader(b.memory))
		return nil
	}
	if err := b.w.Flush(); err != nil {
		return err
	}
	_, err := b.file.Seek(0, io.SeekStart)
	b.r = bufio.NewReaderSize(b.file, 64<<10)
	return err
}

// next returns the next row, valid until the next call, and io.EOF after the last.
func (b *rowBuffer) next() (copiedRow, error) {
	var sizes [3]int
	total := 0
	for i := range sizes {
		n, err := binary.ReadUvarint(b.r)
		if err != nil {
			if i > 0 {
				err = errors.Join(errors.New("shardkey: the file of copied rows ends early"), err)
			}
			return copiedRow{}, err
		}
		sizes[i] = int(n)
		total += int(n)
	}
	if cap(b.row) < total {
		b.row = make([]byte, total)
	}
	b.row = b.row[:total]
	if _, err := io.ReadFull(b.r, b.row); err != nil {
		return copiedRow{}, errors.Join(errors.New("shardkey: the file of copied rows ends early"), err)
	}
	key := sizes[0] + sizes[1]
	return copiedRow{b.row[:sizes[0]], b.row[sizes[0]:key], b.row[key:]}, nil
}

// close frees the rows.
func (b *rowBuffer) close() error {
	if b.file == nil {
		*b = rowBuffer{}
		return nil
	}
	err := b.file.Close()
	if again := os.Remove(b.file.Name()); again != nil && !errors.Is(again, os.ErrNotExist) {
		err = cmp.Or(err, again)
	}
	*b = rowBuffer{}
	return err
}
