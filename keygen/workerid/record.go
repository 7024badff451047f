package workerid

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
)

// Record is the data in a [Store] for one worker ID. The zero Record means that the worker ID was
// never used.
//
// All times are key times: milliseconds since the Unix epoch, as in keys.
type Record struct {
	// Owner is a random token that is new in every write. No two records are equal, and only the
	// writer knows its next token.
	Owner string `json:"owner"`
	// ReservedUntil is the first millisecond for which no key of this worker ID has been reserved.
	// It never decreases.
	ReservedUntil int64 `json:"reserved_until"`
	// FreeFrom is 0 while the worker ID is held. When the owner releases it, FreeFrom is the first
	// millisecond that it hasn't used. The next lease starts there, and its record has 0 again.
	FreeFrom int64 `json:"free_from,omitempty"`
	// Holder describes the holder, for example "host-7 pid 4711". It has at most 200 bytes.
	Holder string `json:"holder"`
	// Since is when the holder leased the worker ID, by the holder's clock.
	Since int64 `json:"since"`
}

// IsZero reports whether the worker ID was never used.
func (r Record) IsZero() bool { return r == Record{} }

// Same reports whether two records are the same write.
func (r Record) Same(other Record) bool {
	return r.Owner == other.Owner && r.ReservedUntil == other.ReservedUntil
}

// start returns the first key time that the next owner may use.
func (r Record) start() int64 {
	if r.FreeFrom > 0 {
		return r.FreeFrom
	}
	return r.ReservedUntil
}

// recordVersion identifies the format of a record in JSON.
const recordVersion = 1

type recordText struct {
	Version int `json:"shardkey"`
	Record
}

// Text returns the record as one line of JSON, for stores that store a string.
func (r Record) Text() string {
	text, err := json.Marshal(recordText{recordVersion, r})
	if err != nil {
		return "" // can't happen: strings and integers always marshal
	}
	return string(text)
}

// ParseRecord parses the result of [Record.Text] for a worker ID. The error for any other string is
// a [*ForeignRecordError].
func ParseRecord(workerID int64, text string) (Record, error) {
	var t recordText
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	err := d.Decode(&t)
	if err == nil {
		if _, more := d.Token(); more != io.EOF {
			err = fmt.Errorf("expected the end after the record")
		}
	}
	if err == nil && t.Version != recordVersion {
		err = fmt.Errorf("expected \"shardkey\":%d", recordVersion)
	}
	if err == nil {
		err = t.check()
	}
	if err != nil {
		return Record{}, &ForeignRecordError{WorkerID: workerID, Value: text, Err: err}
	}
	return t.Record, nil
}

// check returns an error if this package can't have written the record. Stores with separate fields
// call it for the records that they read.
func (r Record) check() error {
	switch {
	case r.Owner == "":
		return fmt.Errorf("expected an owner's token, found an empty string")
	case r.ReservedUntil <= 0:
		return fmt.Errorf("expected a positive reserved_until, found %d", r.ReservedUntil)
	case r.FreeFrom < 0:
		return fmt.Errorf("expected a free_from of 0 or more, found %d", r.FreeFrom)
	}
	return nil
}

// String describes the record for messages.
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
