package main

import (
	"bytes"
	"io"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shardkey/shardkey/spi"
)

// TestDSN_forms parses values of --dsn: with names, with references, and with passwords that
// look like these.
func TestDSN_forms(t *testing.T) {
	const plainDSN = "u:p@tcp(h:1)/d"
	t.Setenv("SOME_DSN", " "+plainDSN+"\n")
	file := write(t, plainDSN+"\n")
	for _, test := range []struct{ given, name, user, password, dsn string }{
		{plainDSN, "", "u", "p", plainDSN},
		{"ds_0=" + plainDSN, "ds_0", "u", "p", plainDSN},
		{"ds.0-a=" + plainDSN, "ds.0-a", "u", "p", plainDSN},
		{"库0=" + plainDSN, "库0", "u", "p", plainDSN},
		{"env:SOME_DSN", "", "u", "p", plainDSN},
		{"@" + file, "", "u", "p", plainDSN},
		{"ds_0=env:SOME_DSN", "ds_0", "u", "p", plainDSN},
		{"ds_0=@" + file, "ds_0", "u", "p", plainDSN},
		{"/d", "", "", "", "/d"},
		{"ds_0=/d?x=y", "ds_0", "", "", "/d?x=y"},
		{"/d?x=y", "", "", "", "/d?x=y"},
		// The = and the @ of passwords and parameters.
		{"u:p@ss=w@tcp(h:1)/d?x=y", "", "u", "p@ss=w", "u:p@ss=w@tcp(h:1)/d?x=y"},
		{"ds_0=u:p@ss=w@tcp(h:1)/d?x=y", "ds_0", "u", "p@ss=w", "u:p@ss=w@tcp(h:1)/d?x=y"},
		{"ds_0=u:a=b=c@tcp(h:1)/d", "ds_0", "u", "a=b=c", "u:a=b=c@tcp(h:1)/d"},
		{"u:=@tcp(h:1)/d", "", "u", "=", "u:=@tcp(h:1)/d"},
		{"u@tcp(h:1)/d?x=env:SOME_DSN", "", "u", "", "u@tcp(h:1)/d?x=env:SOME_DSN"},
		{"u=v:p@tcp(h:1)/d", "u", "v", "p", "v:p@tcp(h:1)/d"}, // a user u=v needs a name or a reference
		{"x=u=v:p@tcp(h:1)/d", "x", "u=v", "p", "u=v:p@tcp(h:1)/d"},
		{"env:p@tcp(h:1)/d", "", "env", "p", "env:p@tcp(h:1)/d"}, // no variable has such a name
		{"u:env:X@tcp(h:1)/d", "", "u", "env:X", "u:env:X@tcp(h:1)/d"},
		{"u:\na=b@tcp(h:1)/d", "", "u", "\na=b", "u:\na=b@tcp(h:1)/d"},
		// Parameters of shardkey.
		{plainDSN + "?shardkeyRule=/etc/rule.yaml&x=y&ShardkeyServer=auto", "", "u", "p", plainDSN + "?x=y"},
		{plainDSN + "?shardkeyRule=a?b", "", "u", "p", plainDSN},
		{"u:p?shardkeyX=1&@tcp(h:1)/d?shardkeyRule=a/b", "", "u", "p?shardkeyX=1&", "u:p?shardkeyX=1&@tcp(h:1)/d"},
	} {
		d, err := newProgram(nil, io.Discard, io.Discard, spi.SystemClock).database(test.given)
		if err != nil || d.name != test.name || d.dsn != test.dsn ||
			d.config.User != test.user || d.config.Passwd != test.password {
			t.Errorf("%q\nhave: %q %q %v\nwant: %q %q", test.given, d.name, d.dsn, err, test.name, test.dsn)
		}
	}
	for _, wrong := range []string{
		"", "x", canary, "ds_0=", canary + "=x", "ds_0=" + canary, "u:" + canary + "@h:3306", "ds_0=u:" + canary + "@h/d",
		"env:", "env:NOT_SET", "ds_0=env:NOT_SET", "@", "@absent",
		"u:" + canary + "@tcp(h:1)/d?strict=true", "u:" + canary + "@tcp(h:1)/d?parseTime=" + canary,
	} {
		_, err := newProgram(nil, io.Discard, io.Discard, spi.SystemClock).database(wrong)
		if err == nil || strings.Contains(err.Error(), canary) {
			t.Errorf("%q\nhave: %v\nwant: an error without the password", wrong, err)
		}
	}
}

// TestDSN_standardInput reads a DSN from standard input, for one --dsn.
func TestDSN_standardInput(t *testing.T) {
	p := newProgram(bytes.NewBufferString("u@tcp(h:1)/d\n"), io.Discard, io.Discard, spi.SystemClock)
	list, err := p.databases([]string{"ds_0=@-"}, 1, 1)
	if err != nil || list[0].name != "ds_0" || list[0].config.User != "u" {
		t.Errorf("have: %+v, %v", list, err)
	}
	if _, err := p.databases([]string{"ds_1=@-"}, 1, 1); err == nil {
		t.Error("standard input was read twice")
	}
}

// TestRun_showsNoPassword runs valid and invalid command lines that contain a password.
func TestRun_showsNoPassword(t *testing.T) {
	const dsn = "app:" + canary + "@tcp(127.0.0.1:1)/app"
	args := func(line string) []string { return strings.Fields(strings.ReplaceAll(line, "$DSN", dsn)) }
	t.Setenv(ruleVariable, filepath.Join("testdata", "mixed.yaml"))
	for _, line := range []string{
		"$DSN", "decode $DSN", "decode --tick $DSN 1", "decode --epoch $DSN 1", "decode --epoch=$DSN 1", "decode --tz=$DSN 1",
		"decode -o $DSN 1", "range $DSN", "version $DSN", "check $DSN", "check $DSN -o json",
		"plan --rule $DSN x", "lint $DSN", "workers $DSN", "workers --dsn $DSN", "workers --dsn $DSN -o json", "workers --dns $DSN", "workers --dns=$DSN",
		"workers --timeout=$DSN", "workers --timeout $DSN", "generate --type $DSN", "generate --table t_ring -v $DSN",
		"generate --table $DSN --dsn $DSN", "generate --table t_order --dsn $DSN --timeout 1s -o json",
		"generate --table t_ring --timeout 1s --dsn $DSN", "doctor --dsn $DSN", "doctor --dsn ds_0=$DSN -o json",
		"init --dsn $DSN", "migrate --dsn $DSN", "migrate --dsn $DSN --dsn $DSN", "--dsn=$DSN doctor",
		"generate --type REDIS --prop addr=127.0.0.1:1 --prop password=" + canary + " --prop shard=1",
		"generate --type REDIS --prop addr=u:" + canary + "@127.0.0.1:1", "generate --type REDIS --prop password:" + canary,
		"generate --type LEAF_SEGMENT --prop leaf.key=k --prop dsn=app:" + canary + "@127.0.0.1/app",
	} {
		t.Run(line, func(t *testing.T) {
			if status, stdout, stderr := runTool(t, args(line)...); status == 0 || strings.Contains(stdout+stderr, canary) {
				t.Errorf("have: status %d, %s%s\nwant: an error without the password", status, stdout, stderr)
			}
		})
	}
	t.Setenv(dsnVariable, dsn)
	for _, line := range []string{
		"doctor --help", "generate --help", "check testdata/mixed.yaml", "__complete doctor --dsn ",
		"generate --table t_ring --timeout 1s",
	} {
		if _, stdout, stderr := runTool(t, args(line)...); strings.Contains(stdout+stderr, canary) || stdout+stderr == "" {
			t.Errorf("%s\nhave: %s%s\nwant: output without the password", line, stdout, stderr)
		}
	}
}

// TestDSN_wrongUse runs the commands that connect, with invalid values of --dsn.
func TestDSN_wrongUse(t *testing.T) {
	t.Setenv(dsnVariable, "")
	t.Setenv(ruleVariable, filepath.Join("testdata", "rule.yaml"))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	dsn := "app:" + canary + "@tcp(" + l.Addr().String() + ")/shop" // no server listens there
	for _, test := range []struct {
		args   string
		status int
		want   string
	}{
		{"doctor", 2, "no database: use --dsn"},
		{"doctor x", 2, "expected no arguments, found 1"},
		{"doctor --dsn ds_9=$DSN", 2, `no data source "ds_9"; it has ds_0, ds_1; did you mean ds_0?`},
		{"doctor --dsn ds_0=$DSN --dsn ds_0=$DSN", 2, "--dsn ds_0=… is given twice"},
		{"doctor --dsn $DSN --dsn $DSN", 2, "such as --dsn ds_0=…"},
		{"doctor --dsn env:NOT_SET_HERE", 2, "--dsn env:NOT_SET_HERE: the environment variable is not set"},
		{"doctor --timeout 0s --dsn $DSN", 2, "above 0"},
		{"generate --table t_order --dsn ds_9=$DSN", 2, `no data source "ds_9"`},
		{"migrate", 2, "no database: use --dsn"},
		{"migrate --dsn a=$DSN --dsn b=$DSN", 2, "expected one --dsn"},
		{"migrate --dsn $DSN", 1, "cannot connect to tcp("},
		{"init", 2, "no database: use --dsn"},
		{"init --dsn $DSN", 1, "cannot connect to tcp("},
	} {
		status, stdout, stderr := runTool(t, strings.Fields(strings.ReplaceAll(test.args, "$DSN", dsn))...)
		if status != test.status || stdout != "" || !strings.Contains(stderr, test.want) || strings.Contains(stderr, canary) {
			t.Errorf("%s\nhave: status %d\n%s%s\nwant: status %d, %s", test.args, status, stdout, stderr, test.status, test.want)
		}
	}
}
