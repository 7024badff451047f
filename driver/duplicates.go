package driver

import (
	"context"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/shardkey/shardkey/driver/internal/session"
	"github.com/shardkey/shardkey/internal/panics"
	"github.com/shardkey/shardkey/internal/sqlerr"
	"github.com/shardkey/shardkey/rewrite"
	"github.com/shardkey/shardkey/spi"
)

// duplicated matches the entry and the index in the message of that error, in any language. Some
// servers put the table in front of the index.
var duplicated = regexp.MustCompile(`'(.+?)' [^']+ '(?:[^']*\.)?([^'.]+)'`)

// onDuplicate is the remedy for a generated key that is in its table already.
const onDuplicate = "two processes may use one worker ID, the store may have lost a lease, or a program sets keys itself; see " +
	"https://github.com/shardkey/shardkey/blob/main/docs/guides/runbook.md#error-1062-for-a-generated-key"

// reportDuplicate counts and logs an error of the server for a generated key that is in the table
// already. It ignores an error for another unique column, which is the program's.
func (p *plan) reportDuplicate(ctx context.Context, s *session.Session, keys *rewrite.Keys, err error) {
	if keys.Len() == 0 || !sqlerr.Is(err, sqlerr.DuplicateKey) {
		return
	}
	found := duplicated.FindStringSubmatch(err.Error())
	if found == nil {
		return
	}
	key := keyOfEntry(keys, found[1])
	if key == nil || !s.IndexHas(ctx, p.filler.Insert.Schema, p.filler.Insert.Name, found[2], p.filler.Insert.Table.Key) {
		return
	}
	p.table.Counts.Duplicates.Add(1)
	if suppressed, due := p.table.duplicates.due(); due {
		attrs := []any{"table", p.filler.Name(), "column", p.filler.Insert.Table.Key, "generator", p.table.Rule.GeneratorName}
		attrs = append(attrs, p.table.decoded(key)...)
		if suppressed > 0 {
			attrs = append(attrs, "suppressed", suppressed)
		}
		p.rules.logger.ErrorContext(ctx, "shardkey: generated key exists already", append(attrs, "fix", onDuplicate)...)
	}
}

// keyOfEntry returns the key that an index entry contains, nil if it contains none. The columns of an
// entry are separated by -.
func keyOfEntry(keys *rewrite.Keys, entry string) any {
	for field := range strings.SplitSeq(entry, "-") {
		if i, err := strconv.ParseInt(field, 10, 64); err == nil && slices.Contains(keys.Ints, i) {
			return i
		}
	}
	for _, v := range keys.Values {
		if strings.Contains("-"+entry+"-", "-"+session.Text(v)+"-") {
			return v
		}
	}
	return nil
}

// decoded returns the attributes of a log line that show what a key contains, instead of the key.
func (t *keyedTable) decoded(key any) (attrs []any) {
	decoder, _ := t.Rule.Generator.(spi.KeyDecoder)
	i, isInt := key.(int64)
	if decoder == nil || !isInt {
		return nil
	}
	_ = panics.Call("the generator's DecodeKey", func() error {
		parts, err := decoder.DecodeKey(i)
		if err == nil {
			attrs = []any{"worker_id", parts.WorkerID, "key_time", parts.Time, "sequence", parts.Sequence}
		}
		return err
	})
	return attrs
}
