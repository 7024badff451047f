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

	testserver "github.com/shardkey/shardkey/internal/test/server"
)

// Galera is a MariaDB cluster that accepts writes on each node, with haproxy in front.
type Galera struct {
	Cluster
	Nodes []*testserver.Server
	// Proxy sends each connection to the node with the fewest connections.
	Proxy     *HAProxy
	addresses []string // addresses for connections between nodes
	data      fs.FS    // initial data of nodes after the first one
	formed    bool     // there is a cluster to join
}

// StartGalera starts a cluster for one test.
func StartGalera(t testing.TB, nodes int) *Galera {
	t.Helper()
	g := new(Galera)
	g.openForTest(t, "galera", func() error { return g.start(nodes) })
	return g
}

func (ga *Galera) start(nodes int) error {
	var err error
	if ga.addresses, err = freeAddresses(nodes); err != nil {
		return err
	}
	// The first node starts alone. After it has stopped, the others start with a copy of its
	// data.
	for i := range nodes {
		if i == 1 {
			ga.Nodes[0].Stop()
			if err := ga.seed(ga.Nodes[0]); err != nil {
				return err
			}
			ga.Nodes[0].Start()
		}
		node, err := ga.startOne(ga.node(i))
		if err != nil {
			return err
		}
		ga.Nodes = append(ga.Nodes, node)
	}
	ga.formed = true
	if err := Run(ga.Nodes[0].DSN(), "CREATE USER haproxy"); err != nil {
		return err
	}
	ga.Proxy = &HAProxy{backends: ga.Nodes}
	ga.Proxy.Server, err = ga.startOne(ga.Proxy.recipe("option mysql-check user haproxy"))
	return err
}

// Isolate disconnects a node from the others, or connects it again. Connections of clients and
// haproxy stay.
func (ga *Galera) Isolate(node *testserver.Server, on bool) error {
	option := "gmcast.isolate=0"
	if on {
		option = "gmcast.isolate=1"
	}
	return Run(node.DSN(), "SET GLOBAL wsrep_provider_options = '"+option+"'")
}

// AwaitAll returns when all nodes are synced members of the cluster.
func (ga *Galera) AwaitAll() error { return ga.await(nil) }

// AwaitWithout returns when the other nodes work without the node away. They take some seconds to
// notice its absence. Don't start it again before, because they would treat it as a second node.
func (ga *Galera) AwaitWithout(away *testserver.Server) error { return ga.await(away) }

func (ga *Galera) await(away *testserver.Server) error {
	size := len(ga.Nodes)
	if away != nil {
		size--
	}
	for i, node := range ga.Nodes {
		if node == away {
			continue
		}
		if err := await(func(ctx context.Context) error { return isSynced(ctx, node, size) }); err != nil {
			return fmt.Errorf("node %d isn't together with %d others: %w; its log ends with\n%s", i, size-1, err, node.LogTail())
		}
	}
	return nil
}

// galeraTransfer is the state transfer method, a script that the server runs on both sides. The
// usual methods need programs and users that a test machine may not have. This one transfers no
// data, only the position that the server needs if another node's cache suffices. The joiner
// returns the address at which it listens, which is a file here. The donor writes its position to
// that file.
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

// node returns the recipe of a MariaDB server that joins the cluster. The first node begins it.
func (ga *Galera) node(i int) testserver.Recipe {
	r := testserver.KindMariaDB.Recipe()
	prepare, command := r.Prepare, r.Command
	r.Prepare = func(s *testserver.Server) error {
		err := os.WriteFile(filepath.Join(s.Dir(), "wsrep_sst_"+galeraTransfer), []byte(galeraTransferScript), 0o755)
		if err != nil || ga.data == nil {
			return errors.Join(err, prepare(s))
		}
		_, err = testserver.Certify(s.Dir())
		return errors.Join(err, os.CopyFS(s.Data(), ga.data))
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
			"--wsrep-cluster-address=gcomm://"+strings.Join(ga.addresses, ","),
			fmt.Sprintf("--wsrep-node-name=n%d", i), "--wsrep-node-address="+ga.addresses[i], "--wsrep-node-incoming-address="+s.Addr(),
			"--wsrep-provider-options=gmcast.listen_addr=tcp://"+ga.addresses[i]+fmt.Sprintf(";ist.recv_addr=tcp://127.0.0.1:%d", missed)+
				";gcache.size=256M;pc.recovery=false;evs.suspect_timeout=PT3S;evs.inactive_timeout=PT6S",
			"--wsrep-sst-method="+galeraTransfer, "--wsrep-slave-threads=2")
		cmd.Env = append(os.Environ(), "PATH="+s.Dir()+":"+os.Getenv("PATH")) // finds the script
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
		if i == 0 && !ga.formed {
			cmd.Args = append(cmd.Args, "--wsrep-new-cluster")
		}
		return cmd, nil
	}
	r.Answers = func(ctx context.Context, s *testserver.Server) error { return isSynced(ctx, s, 0) }
	return r
}

// seed copies the data of a stopped server for the other nodes.
func (ga *Galera) seed(s *testserver.Server) error {
	ga.data = os.DirFS(s.Data())
	return os.Remove(filepath.Join(s.Data(), "galera.cache"))
}

// galeraLibrary returns the path of Galera's library, which is in a separate package.
func galeraLibrary() (string, error) {
	for _, dir := range []string{"/usr/lib/galera", "/usr/lib64/galera-4", "/usr/lib64/galera"} {
		path := filepath.Join(dir, "libgalera_smm.so")
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
	}
	return "", &testserver.MissingError{Program: "libgalera_smm.so", Remedy: "apt-get install galera-4"}
}

// saveHistory writes the cluster's position into the state file of a killed node. InnoDB has
// recovered the position, but the node's own file may mark it as unreliable.
func saveHistory(s *testserver.Server, position string) error {
	history, _, _ := strings.Cut(position, ":")
	return os.WriteFile(filepath.Join(s.Data(), "grastate.dat"), fmt.Appendf(nil,
		"# GALERA saved state\nversion: 2.1\nuuid: %s\nseqno: -1\nsafe_to_bootstrap: 1\n", history), 0o600)
}

var recoveredPosition = regexp.MustCompile(`WSREP: Recovered position:? *([0-9a-f-]+:-?\d+)`)

// recovered returns the last transaction in the data of a stopped node.
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

// isSynced returns nil if a node is a synced member of a cluster of that size. Size 0 means any
// size.
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
