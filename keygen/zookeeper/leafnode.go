package zookeeper

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/shardkey/shardkey/keygen/workerid"
)

// leafReport is what Leaf writes into its node, in its words.
type leafReport struct {
	IP        string `json:"ip"`
	Port      string `json:"port"`
	Timestamp int64  `json:"timestamp"`
}

// leafGrace is how far behind its keys a Leaf server may report: it does so
// each 3 s, and the report takes its time.
const leafGrace = 5 * time.Second

// leafText is a node's data: Leaf's report, and below it our record. Leaf's
// JSON reader stops where the report ends.
func leafText(report leafReport, r workerid.Record) []byte {
	report.Timestamp = r.ReservedUntil
	if r.FreeFrom > 0 {
		report.Timestamp = r.FreeFrom
	}
	text, err := json.Marshal(report)
	if err != nil {
		return nil // cannot be: strings and integers always marshal
	}
	if r.IsZero() {
		return text
	}
	return append(append(text, '\n'), r.Text()...)
}

// parseLeaf reads a node's data, that a Leaf server or we have written.
//
// A Leaf server's report stands for a record: it holds the worker id until
// shortly behind its report. version makes that record's token, as no two
// reports have the same.
func parseLeaf(workerID int64, data []byte, version int32, grace time.Duration) (workerid.Record, error) {
	foreign := func(err error) (workerid.Record, error) {
		return workerid.Record{}, &workerid.ForeignRecordError{WorkerID: workerID, Value: string(data), Err: err}
	}
	var report leafReport
	d := json.NewDecoder(bytes.NewReader(data))
	if err := d.Decode(&report); err != nil {
		return foreign(fmt.Errorf("it is not Leaf's JSON: %w", err))
	}
	switch rest := strings.TrimSpace(string(data[d.InputOffset():])); {
	case rest != "":
		return workerid.ParseRecord(workerID, rest)
	case report.Timestamp < 0 || report.IP == "":
		return foreign(fmt.Errorf("it is not Leaf's JSON: ip and timestamp"))
	case report.Timestamp == 0: // as we make it
		return workerid.Record{}, nil
	}
	return workerid.Record{
		Owner:         leafOwner + strconv.Itoa(int(version)),
		ReservedUntil: report.Timestamp + grace.Milliseconds(),
		Holder:        "a Leaf server at " + report.IP + ":" + report.Port,
		Since:         report.Timestamp,
	}, nil
}

const leafOwner = "leaf-"

func isLeafs(r workerid.Record) bool { return strings.HasPrefix(r.Owner, leafOwner) }

// leafNumber takes a node's name, <ip>:<port>-NNNNNNNNNN, apart.
func leafNumber(name string) (address string, workerID int64, ok bool) {
	i := strings.LastIndexByte(name, '-')
	if i < 0 {
		return "", 0, false
	}
	n, err := strconv.ParseInt(name[i+1:], 10, 32)
	return name[:i], n, err == nil && n >= 0
}
