//go:build linux

package chaos

import (
	"bytes"
	"database/sql"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/shardkey/shardkey/internal/test/must"
)

// removers remove all records of a store, as an operator may do by mistake.
var removers = map[string]func(where string) error{
	"FILE": func(dir string) error {
		namespaces, err := os.ReadDir(dir)
		for _, n := range namespaces {
			for os.RemoveAll(path.Join(dir, n.Name())) != nil { // a process has written a file meanwhile
			}
		}
		return err
	},
	"SQL": func(addr string) error {
		db, err := sql.Open("mysql", "root@tcp("+addr+")/chaos")
		if err != nil {
			return err
		}
		defer db.Close()
		_, err = db.Exec("TRUNCATE TABLE shardkey_worker")
		return err
	},
	"REDIS": func(addr string) error {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			return err
		}
		defer c.Close()
		answer := make([]byte, 5)
		if _, err := fmt.Fprint(c, "FLUSHALL\r\n"); err != nil {
			return err
		}
		if _, err := io.ReadFull(c, answer); err != nil || string(answer) != "+OK\r\n" {
			return fmt.Errorf("FLUSHALL: %q, %w", answer, err)
		}
		return nil
	},
	"ETCD": func(addr string) error {
		// "AA==" is a zero byte, which as key and end means all keys.
		res, err := http.Post("http://"+strings.TrimPrefix(addr, "http://")+"/v3/kv/deleterange", "application/json",
			bytes.NewReader([]byte(`{"key": "AA==", "range_end": "AA=="}`)))
		if err != nil {
			return err
		}
		defer res.Body.Close()
		if res.StatusCode != http.StatusOK {
			return fmt.Errorf("deleterange: %s", res.Status)
		}
		return nil
	},
	"ZOOKEEPER": func(addr string) error {
		c, _, err := zk.Connect([]string{addr}, 5*time.Second, zk.WithLogInfo(false))
		if err != nil {
			return err
		}
		defer c.Close()
		return removeNodes(c, "/shardkey")
	},
}

// removeNodes removes a node and all below it.
func removeNodes(c *zk.Conn, node string) error {
	for {
		names, _, err := c.Children(node)
		if err == zk.ErrNoNode {
			return nil
		}
		if err != nil {
			return err
		}
		for _, name := range names {
			if err := removeNodes(c, path.Join(node, name)); err != nil {
				return err
			}
		}
		if err := c.Delete(node, -1); err != zk.ErrNotEmpty && err != zk.ErrBadVersion {
			return err
		}
	}
}

// All records are removed again and again, also of leases that are a moment old. Processes that
// start then lease the worker IDs of live ones. No key repeats.
func TestRemovedRecords(t *testing.T) {
	for _, s := range subjects {
		remove := removers[s.name]
		if remove == nil || *only != "" && !slices.Contains(strings.Split(*only, ","), s.name) {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			r := newRun(t, s)
			r.agents = nil
			for _, one := range r.slots {
				must.Do(t, one.start(0))
				t.Cleanup(func() { _ = one.cmd.Process.Kill() })
			}
			a := newAgent(r, *seed, r.slots)
			a.recover("start", a.slots...)
			for end := time.Now().Add(*duration / 2); time.Now().Before(end) && a.stuck == nil; {
				wait(rand.N(2 * lease))
				must.Do(t, remove(r.where))
				one := a.slots[a.rng.IntN(len(a.slots))]
				a.restart(one, "records removed", one.kill, 0)
			}
			r.agents = []*agent{a}
			for _, one := range r.slots {
				one.quit()
			}
			r.check()
		})
	}
}
