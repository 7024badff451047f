package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestRender(t *testing.T) {
	page := render("server\tmysql\tMySQL 9.7\nran\ttests of driver\tmysql\tall\nneeds\tRETURNING\tMariaDB\tTestB\n" +
		"needs\tRETURNING\tMariaDB\tTestA\nran\tours\t\t3 of 3\nneeds\tRETURNING\tMariaDB\tTestB\n")
	for _, want := range []string{
		"| | MySQL 9.7 |  |  |  | without a server |",
		"| tests of driver | all |  |  |  |  |",
		"| ours |  |  |  |  | 3 of 3 |",
		"| RETURNING | MariaDB | TestA, TestB |",
	} {
		if !strings.Contains(page, want+"\n") {
			t.Errorf("have: %s\nwant: %s", page, want)
		}
	}
}

func TestRun_holdsTheFileToWhatRan(t *testing.T) {
	record, file := filepath.Join(t.TempDir(), "record"), filepath.Join(t.TempDir(), "page.md")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(record, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("server\tmysql\tMySQL 9.7\n")
	if err := run(true, record, file); err != nil {
		t.Fatal(err)
	}
	if err := run(false, record, file); err != nil {
		t.Errorf("the file that was written: %v", err)
	}
	write("server\tmysql\tMySQL 9.7\nran\tmore\tmysql\tall\n")
	if err := run(false, record, file); err == nil || !strings.Contains(err.Error(), "+ | more | all |") {
		t.Errorf("have: %v\nwant: the line that is missing", err)
	}
}
