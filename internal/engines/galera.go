package engines

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/shardkey/shardkey/internal/testserver"
)

// Galera is a MariaDB cluster of which each node is written to, and haproxy in front
// of it.
type Galera struct {
	Cluster
	Nodes []*testserver.Server
	// Proxy gives each connection to the node that has the fewest.
	Proxy     *HAProxy
	addresses []string // where the nodes hear each other
	data      fs.FS    // what nodes after the first one begin with
	formed    bool     // there is a cluster to join
}

// StartGalera starts a cluster for one test.
func StartGalera(t testing.TB, nodes int) *Galera {
	t.Helper()
	g := new(Galera)
	g.openForTest(t, "galera", func() error { return g.start(nodes) })
	return g
}

func (g *Galera) start(nodes int) error {
	for range nodes {
		port, err := testserver.FreePort()
		if err != nil {
			return err
		}
		g.addresses = append(g.addresses, fmt.Sprintf("127.0.0.1:%d", port))
	}
	// The first one begins alone. Stopped, it has data that the others begin with.
	for i := range nodes {
		if i == 1 {
			g.Nodes[0].Stop()
			if err := g.seed(g.Nodes[0]); err != nil {
				return err
			}
			g.Nodes[0].Start()
		}
		node, err := g.startOne(g.node(i))
		if err != nil {
			return err
		}
		g.Nodes = append(g.Nodes, node)
	}
	g.formed = true
	if err := Run(g.Nodes[0].DSN(), "CREATE USER haproxy"); err != nil {
		return err
	}
	var err error
	g.Proxy, err = g.haproxy("option mysql-check user haproxy", g.Nodes...)
	return err
}

// Isolate cuts a node off from the others, or lets them hear each other again. What it
// is connected to besides, clients and haproxy, stays.
func (g *Galera) Isolate(node *testserver.Server, on bool) error {
	option := "gmcast.isolate=0"
	if on {
		option = "gmcast.isolate=1"
	}
	return Run(node.DSN(), "SET GLOBAL wsrep_provider_options = '"+option+"'")
}

// AwaitAll returns when all nodes take part again and have what the others have.
func (g *Galera) AwaitAll() error { return g.await(nil) }

// AwaitWithout returns when the other nodes continue without one that is away, which takes
// them some seconds to see. Before that it had better not come back: they would take it
// for a second one.
func (g *Galera) AwaitWithout(away *testserver.Server) error { return g.await(away) }

func (g *Galera) await(away *testserver.Server) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	size := len(g.Nodes)
	if away != nil {
		size--
	}
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		var err error
		var missing *testserver.Server
		for i, node := range g.Nodes {
			if node == away {
				continue
			}
			if e := isSynced(ctx, node, size); e != nil {
				err, missing = fmt.Errorf("node %d: %w", i, e), node
			}
		}
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("%d nodes are not together within %v: %w; its log ends with\n%s", size, patience, err, missing.LogTail())
		}
	}
}

// galeraTransfer is the way by which a node would get all data of another one, which
// is a script that the server runs at both ends. The usual ones need programs and users
// that a test machine may not have. Ours passes on no data, but only what the server is to
// be told when another one's cache will do: the joining end says where it listens, which is
// a file here, and the giving end writes there where it stands.
const (
	galeraTransfer       = "caches"
	galeraTransferScript = `#!/bin/sh
while [ $# -gt 0 ]; do
	case $1 in
	--role) role=$2 ;;
	--datadir) data=$2 ;;
	--address) address=$2 ;;
	--gtid) gtid=$2 ;;
	--bypass) bypass=yes ;;
	esac
	shift
done
if [ "$role" = joiner ]; then
	file=${data%/}/transfer
	rm -f "$file"
	echo "ready $file"
	until [ -e "$file" ]; do sleep 0.05; done
	cat "$file"
elif [ "$bypass" = yes ]; then
	echo "$gtid" >"$address.new" && mv "$address.new" "$address" && echo "done $gtid"
else
	exit 1
fi
`
)

// node is a MariaDB server that joins the others, or, the first one, begins a cluster.
func (g *Galera) node(i int) testserver.Recipe {
	r := testserver.KindMariaDB.Recipe()
	prepare, command := r.Prepare, r.Command
	r.Prepare = func(s *testserver.Server) error {
		err := os.WriteFile(filepath.Join(s.Dir(), "wsrep_sst_"+galeraTransfer), []byte(galeraTransferScript), 0o755)
		if err != nil || g.data == nil {
			return errors.Join(err, prepare(s))
		}
		_, err = testserver.Certify(s.Dir())
		return errors.Join(err, os.CopyFS(s.Data(), g.data))
	}
	r.Command = func(s *testserver.Server) (*exec.Cmd, error) {
		library, err := galeraLibrary()
		if err != nil {
			return nil, err
		}
		cmd, err := command(s)
		if err != nil {
			return nil, err
		}
		missed, err := testserver.FreePort()
		if err != nil {
			return nil, err
		}
		cmd.Args = append(cmd.Args,
			"--binlog-format=ROW", "--innodb-autoinc-lock-mode=2", "--innodb-flush-log-at-trx-commit=2",
			"--wsrep-on=ON", "--wsrep-provider="+library, "--wsrep-cluster-name=shardkey",
			"--wsrep-cluster-address=gcomm://"+strings.Join(g.addresses, ","),
			fmt.Sprintf("--wsrep-node-name=n%d", i), "--wsrep-node-address="+g.addresses[i], "--wsrep-node-incoming-address="+s.Addr(),
			"--wsrep-provider-options=gmcast.listen_addr=tcp://"+g.addresses[i]+fmt.Sprintf(";ist.recv_addr=tcp://127.0.0.1:%d", missed)+
				";gcache.size=256M;pc.recovery=false;evs.suspect_timeout=PT3S;evs.inactive_timeout=PT6S",
			"--wsrep-sst-method="+galeraTransfer, "--wsrep-slave-threads=2")
		cmd.Env = append(os.Environ(), "PATH="+s.Dir()+":"+os.Getenv("PATH")) // for the script
		if _, err := os.Stat(filepath.Join(s.Data(), "grastate.dat")); err == nil {
			position, err := recovered(cmd)
			if err != nil {
				return nil, err
			}
			if err := saveHistory(s, position); err != nil {
				return nil, err
			}
			cmd.Args = append(cmd.Args, "--wsrep-start-position="+position)
		}
		if i == 0 && !g.formed {
			cmd.Args = append(cmd.Args, "--wsrep-new-cluster")
		}
		return cmd, nil
	}
	r.Answers = func(ctx context.Context, s *testserver.Server) error { return isSynced(ctx, s, 0) }
	return r
}

// seed has the further nodes begin with the data of a stopped one.
func (g *Galera) seed(s *testserver.Server) error {
	g.data = os.DirFS(s.Data())
	return os.Remove(filepath.Join(s.Data(), "galera.cache"))
}

// galeraLibrary is in a package of its own.
func galeraLibrary() (string, error) {
	for _, dir := range []string{"/usr/lib/galera", "/usr/lib64/galera-4", "/usr/lib64/galera"} {
		path := filepath.Join(dir, "libgalera_smm.so")
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
	}
	return "", &testserver.MissingError{Program: "libgalera_smm.so", Remedy: "apt-get install galera-4"}
}

// saveHistory notes which cluster's data a killed node has, whose own note may say that
// it cannot be relied on: InnoDB has recovered it.
func saveHistory(s *testserver.Server, position string) error {
	history, _, _ := strings.Cut(position, ":")
	return os.WriteFile(filepath.Join(s.Data(), "grastate.dat"), fmt.Appendf(nil,
		"# GALERA saved state\nversion: 2.1\nuuid: %s\nseqno: -1\nsafe_to_bootstrap: 1\n", history), 0o600)
}

var recoveredPosition = regexp.MustCompile(`WSREP: Recovered position:? *([0-9a-f-]+:-?\d+)`)

// recovered asks a stopped node for the last transaction that its data has.
func recovered(start *exec.Cmd) (string, error) {
	out, err := exec.Command(start.Path, append(start.Args[1:len(start.Args):len(start.Args)], "--wsrep-recover")...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("wsrep-recover: %w\n%s", err, out)
	}
	found := recoveredPosition.FindSubmatch(out)
	if found == nil {
		return "", fmt.Errorf("wsrep-recover says no position:\n%s", out)
	}
	return string(found[1]), nil
}

// isSynced is nil once a node takes part and has what the others have, in a cluster of
// that many; 0 is any number.
func isSynced(ctx context.Context, s *testserver.Server, size int) error {
	db, err := sql.Open("mysql", s.DSN())
	if err != nil {
		return err
	}
	defer db.Close()
	wants := map[string]string{"wsrep_local_state_comment": "Synced", "wsrep_cluster_status": "Primary", "wsrep_ready": "ON"}
	if size > 0 {
		wants["wsrep_cluster_size"] = strconv.Itoa(size)
	}
	for variable, want := range wants {
		var name, have string
		if err := db.QueryRowContext(ctx, "SHOW STATUS LIKE '"+variable+"'").Scan(&name, &have); err != nil {
			return err
		}
		if have != want {
			return fmt.Errorf("%s is %s", variable, have)
		}
	}
	return nil
}
