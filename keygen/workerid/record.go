package workerid

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
)

// Record is what a [Store] keeps for one worker ID. The zero Record stands for
// a worker ID that was never used.
//
// All times are id time: milliseconds since the Unix epoch, as ids carry them.
type Record struct {
	// Owner is a random token, new with every write: no two records ever
	// written are equal, and only the writer knows what comes next.
	Owner string `json:"owner"`
	// ReservedUntil is the first millisecond that no id of this worker ID has
	// been reserved for. It only ever rises.
	ReservedUntil int64 `json:"reserved_until"`
	// FreeFrom is 0 while the worker ID is held. The owner that releases it
	// writes the first millisecond that it has not used; the next one begins
	// there. The next owner's record has 0 again.
	FreeFrom int64 `json:"free_from,omitempty"`
	// Holder names the holder for people, as "host-7 pid 4711"; at most 200
	// bytes.
	Holder string `json:"holder"`
	// Since is when the holder took the worker ID, by the holder's clock.
	Since int64 `json:"since"`
}

// IsZero reports whether the worker ID was never used.
func (r Record) IsZero() bool { return r == Record{} }

// Same reports whether two records are one and the same write.
func (r Record) Same(other Record) bool {
	return r.Owner == other.Owner && r.ReservedUntil == other.ReservedUntil
}

// start is the first id time that a next owner may use.
func (r Record) start() int64 {
	if r.FreeFrom > 0 {
		return r.FreeFrom
	}
	return r.ReservedUntil
}

// recordVersion marks a text as ours, and its form.
const recordVersion = 1

type recordText struct {
	Version int `json:"shardkey"`
	Record
}

// Text is the record in one line of JSON, for stores that keep a text.
func (r Record) Text() string {
	text, err := json.Marshal(recordText{recordVersion, r})
	if err != nil {
		return "" // cannot be: strings and integers always marshal
	}
	return string(text)
}

// ParseRecord reads what [Record.Text] wrote for a worker ID. Any other text is
// a [*ForeignRecordError].
func ParseRecord(workerID int64, text string) (Record, error) {
	var t recordText
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	err := d.Decode(&t)
	if err == nil {
		if _, more := d.Token(); more != io.EOF {
			err = fmt.Errorf("text follows the record")
		}
	}
	if err == nil && t.Version != recordVersion {
		err = fmt.Errorf("it is not marked as one (\"shardkey\":%d)", recordVersion)
	}
	if err == nil {
		err = t.check()
	}
	if err != nil {
		return Record{}, &ForeignRecordError{WorkerID: workerID, Value: text, Err: err}
	}
	return t.Record, nil
}

// check returns why a stored record cannot be one that this package wrote. Stores that
// keep fields apart call it on what they read.
func (r Record) check() error {
	switch {
	case r.Owner == "":
		return fmt.Errorf("the owner's token is empty")
	case r.ReservedUntil <= 0:
		return fmt.Errorf("reserved_until is %d", r.ReservedUntil)
	case r.FreeFrom < 0:
		return fmt.Errorf("free_from is %d", r.FreeFrom)
	}
	return nil
}

// String shows the record to people.
func (r Record) String() string {
	switch {
	case r.IsZero():
		return "never used"
	case r.FreeFrom > 0:
		return fmt.Sprintf("released by %s, free from %s", r.Holder, formatTime(r.FreeFrom))
	}
	return fmt.Sprintf("held by %s since %s, reserved until %s",
		r.Holder, formatTime(r.Since), formatTime(r.ReservedUntil))
}

func formatTime(ms int64) string {
	return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z")
}
