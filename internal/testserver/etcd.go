package testserver

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"testing"
)

// StartEtcd starts an etcd server for one test. The arguments are added to
// etcd's.
func StartEtcd(t testing.TB, args ...string) *Server {
	t.Helper()
	return forTest(t, etcd, args)
}

var etcd = Recipe{Name: "etcd", Prepare: makeData, Command: etcdCommand, Answers: etcdAnswers}

func etcdCommand(s *Server) (*exec.Cmd, error) {
	server, err := Program("etcd", "etcd-server", envEtcd)
	if err != nil {
		return nil, err
	}
	// A cluster of one has nobody to talk to; port 0 is any port.
	client, peer := "http://"+s.Addr(), "http://127.0.0.1:0"
	args := []string{"--data-dir", s.Data(),
		"--listen-client-urls", client, "--advertise-client-urls", client,
		"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", "default=" + peer,
		"--logger", "zap", "--log-level", "warn"}
	if s.fast {
		args = append(args, "--unsafe-no-fsync")
	}
	return exec.Command(server, append(args, s.args...)...), nil
}

func etcdAnswers(ctx context.Context, s *Server) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.Addr()+"/health", nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("health: %s", resp.Status)
	}
	return nil
}

func makeData(s *Server) error { return os.Mkdir(s.Data(), 0o700) }
