package testserver

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// StartZooKeeper starts a ZooKeeper server for one test. The arguments are lines
// of zoo.cfg, as "maxSessionTimeout=60000". A tick has 500 ms: sessions may be
// as short as a second.
func StartZooKeeper(t testing.TB, args ...string) *Server {
	t.Helper()
	return forTest(t, zooKeeper, args)
}

var zooKeeper = Recipe{Name: "zookeeper", Prepare: makeData, Command: zooKeeperCommand, Answers: zooKeeperAnswers}

// zooKeeperJar names the jars that it depends on in its manifest.
const zooKeeperJar = "/usr/share/java/zookeeper.jar"

func zooKeeperCommand(s *Server) (*exec.Cmd, error) {
	java, err := Program("java", "zookeeper", envZooKeeper)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(zooKeeperJar); err != nil {
		return nil, &MissingError{Program: zooKeeperJar, Remedy: "apt-get install zookeeper", Env: envZooKeeper}
	}
	files := map[string]string{"zoo.cfg": s.zooConfig(), "log4j.properties": log4jConfig}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o600); err != nil {
			return nil, err
		}
	}
	// A small machine that starts fast.
	args := []string{"-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto"}
	if s.fast {
		args = append(args, "-Dzookeeper.forceSync=no")
	}
	args = append(args, "-cp", s.dir+":"+zooKeeperJar,
		"org.apache.zookeeper.server.ZooKeeperServerMain", filepath.Join(s.dir, "zoo.cfg"))
	return exec.Command(java, args...), nil
}

const log4jConfig = `log4j.rootLogger=WARN, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=%d %p %c: %m%n
`

func (s *Server) zooConfig() string {
	lines := []string{
		"dataDir=" + s.Data(),
		"clientPortAddress=127.0.0.1",
		fmt.Sprintf("clientPort=%d", s.port),
		"tickTime=500",
		"maxClientCnxns=0",
		"admin.enableServer=false",
		"4lw.commands.whitelist=*",
	}
	return strings.Join(append(lines, s.args...), "\n") + "\n"
}

func zooKeeperAnswers(ctx context.Context, s *Server) error {
	conn, err := dial(ctx, s.Addr())
	if err != nil {
		return err
	}
	defer conn.Close()
	answer, err := ask(conn, "srvr")
	if err == nil && !strings.HasPrefix(answer, "Zookeeper version") {
		err = fmt.Errorf("answered %q", answer) // as that it is not serving yet
	}
	return err
}
