package engines

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/shardkey/shardkey/internal/testserver"
)

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
	var addresses []string // addresses for connections between members
	for range members {
		port, err := testserver.FreePort()
		if err != nil {
			return err
		}
		addresses = append(addresses, fmt.Sprintf("127.0.0.1:%d", port))
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
