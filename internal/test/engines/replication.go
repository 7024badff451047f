package engines

import (
	"database/sql"
	"fmt"
	"strconv"
	"strings"
	"testing"

	testserver "github.com/shardkey/shardkey/internal/test/server"
)

// Replication is a MySQL source with a replica, by GTID, with binlog_format ROW.
type Replication struct {
	Cluster
	Source *testserver.Server
	// Replica is super_read_only until [Replication.Promote].
	Replica *testserver.Server
}

// StartReplication starts a source and its replica for one test. With semiSync, a commit on the
// source waits for the replica without a limit.
func StartReplication(t testing.TB, semiSync bool) *Replication {
	t.Helper()
	r := new(Replication)
	r.openForTest(t, "replication", func() error { return r.start(semiSync) })
	return r
}

func (r *Replication) start(semiSync bool) error {
	args := make([][]string, 2)
	for i, plugin := range []string{"source", "replica"} {
		args[i] = []string{"--gtid-mode=ON", "--enforce-gtid-consistency=ON", "--server-id=" + strconv.Itoa(i+1)}
		if semiSync {
			args[i] = append(args[i], "--plugin-load-add=semisync_"+plugin+".so", "--rpl-semi-sync-"+plugin+"-enabled=1")
		}
	}
	if semiSync {
		args[0] = append(args[0], "--rpl-semi-sync-source-timeout=3600000") // in ms; after it, the source would continue alone
	}
	// The replica must keep up with the source, and never loses power.
	args[1] = append(args[1], "--innodb-flush-log-at-trx-commit=2", "--sync-binlog=0")
	servers, err := r.startAll(testserver.KindMySQL, args...)
	if err != nil {
		return err
	}
	r.Source, r.Replica = servers[0], servers[1]
	// Remove the transactions that created the data directories from the history.
	if err := Run(r.Source.DSN(), "RESET BINARY LOGS AND GTIDS"); err != nil {
		return err
	}
	return Run(r.Replica.DSN(), "RESET BINARY LOGS AND GTIDS",
		fmt.Sprintf("CHANGE REPLICATION SOURCE TO SOURCE_HOST='127.0.0.1', SOURCE_PORT=%d, SOURCE_USER='root', "+
			"SOURCE_AUTO_POSITION=1, GET_SOURCE_PUBLIC_KEY=1, SOURCE_CONNECT_RETRY=1", r.Source.Port()),
		"START REPLICA", "SET PERSIST super_read_only = ON")
}

// Promote makes the replica writable after it has applied everything that it received. Stop
// writing to the source first.
func (r *Replication) Promote() error {
	if err := Run(r.Replica.DSN(), "STOP REPLICA IO_THREAD"); err != nil {
		return err
	}
	if err := r.awaitApplied(); err != nil {
		return err
	}
	return Run(r.Replica.DSN(), "STOP REPLICA", "RESET REPLICA ALL", "SET PERSIST super_read_only = OFF", "SET PERSIST read_only = OFF")
}

// awaitApplied returns when the replica has applied everything that it received.
func (r *Replication) awaitApplied() error {
	db, err := sql.Open("mysql", r.Replica.DSN())
	if err != nil {
		return err
	}
	defer db.Close()
	var late bool
	err = db.QueryRow("SELECT WAIT_FOR_EXECUTED_GTID_SET(RECEIVED_TRANSACTION_SET, ?) "+
		"FROM performance_schema.replication_connection_status", patience.Seconds()).Scan(&late)
	if late {
		err = fmt.Errorf("the replica has not applied what it received within %v", patience)
	}
	return err
}

// Group is a MySQL replication group that accepts writes on each member.
type Group struct {
	Cluster
	Members []*testserver.Server
}

// StartGroup starts a group for one test.
func StartGroup(t testing.TB, members int) *Group {
	t.Helper()
	g := new(Group)
	g.openForTest(t, "replication group", func() error { return g.start(members) })
	return g
}

func (g *Group) start(members int) error {
	addresses, err := freeAddresses(members) // for connections between members
	if err != nil {
		return err
	}
	args := make([][]string, members)
	for i := range args {
		args[i] = []string{"--gtid-mode=ON", "--enforce-gtid-consistency=ON", "--server-id=" + strconv.Itoa(i+1), "--report-host=127.0.0.1",
			"--plugin-load-add=group_replication.so", "--loose-group-replication-start-on-boot=OFF",
			"--loose-group-replication-group-name=5a4c3b2a-0000-4000-8000-73686172646b", "--loose-group-replication-single-primary-mode=OFF",
			"--loose-group-replication-local-address=" + addresses[i], "--loose-group-replication-group-seeds=" + strings.Join(addresses, ","),
			"--loose-group-replication-ip-allowlist=127.0.0.1/8"}
	}
	servers, err := g.startAll(testserver.KindMySQL, args...)
	if err != nil {
		return err
	}
	g.Members = servers
	for i, member := range servers {
		// Remove the transactions that created the data directories from the history.
		join := []string{"RESET BINARY LOGS AND GTIDS", "CHANGE REPLICATION SOURCE TO SOURCE_USER='root' FOR CHANNEL 'group_replication_recovery'",
			"START GROUP_REPLICATION"}
		if i == 0 {
			join = []string{join[0], "SET GLOBAL group_replication_bootstrap_group = ON", join[2], "SET GLOBAL group_replication_bootstrap_group = OFF"}
		}
		if err := Run(member.DSN(), join...); err != nil {
			return fmt.Errorf("member %d: %w; its log ends with\n%s", i, err, member.LogTail())
		}
	}
	return nil
}
