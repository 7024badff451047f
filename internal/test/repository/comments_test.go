package repository

import (
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/shardkey/shardkey/internal/test/must"
)

// camel matches a name of several words, such as readNames.
var camel = regexp.MustCompile(`\b[A-Za-z][a-z0-9]+[A-Z]\w*\b`)

// TestComments_nameWhatIsThere checks the names in comments: each is a name in the code of this
// repository, a word of a string in it, or one of namesElsewhere.
func TestComments_nameWhatIsThere(t *testing.T) {
	touchSources(t)
	known := map[string]bool{}
	for _, name := range strings.Fields(namesElsewhere) {
		known[name] = true
	}
	files := token.NewFileSet()
	comments := map[token.Pos]string{}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".go" || strings.Contains(path, "testdata") {
			return err
		}
		readNames(t, files, path, known, comments)
		return nil
	})
	must.Do(t, err)
	used := map[string]bool{}
	for at, text := range comments {
		for _, name := range camel.FindAllString(text, -1) {
			if used[name] = true; !known[name] {
				t.Errorf("%s: a comment names %s, which no code has", files.Position(at), name)
			}
		}
	}
	for _, name := range strings.Fields(namesElsewhere) {
		if !used[name] {
			t.Errorf("no comment names %s: remove it from namesElsewhere", name)
		}
	}
}

// readNames adds the names in a file's code to known, and its comments to comments.
func readNames(t *testing.T, files *token.FileSet, path string, known map[string]bool, comments map[token.Pos]string) {
	t.Helper()
	text := must.Get(os.ReadFile(path))(t)
	var s scanner.Scanner
	s.Init(files.AddFile(path, -1, len(text)), text, nil, scanner.ScanComments)
	for {
		at, tok, literal := s.Scan()
		switch tok {
		case token.EOF:
			return
		case token.COMMENT:
			comments[at] = literal
		case token.IDENT:
			known[literal] = true
		case token.STRING:
			for _, word := range camel.FindAllString(literal, -1) {
				known[word] = true
			}
		}
	}
}

// namesElsewhere are names in comments that belong to other projects, and names of examples.
const namesElsewhere = `
AddPreparedStmt BaseTime ChronoUnits CreateBulk DefaultUidGenerator ErrInsertDiffSuffix GitHub
IdGeneratorOptions IdWorker KiB LocalDateTime MaxScale OpenTelemetry ProxySQL RegisterTLSConfig
SegmentIDGenImpl SnowflakeIDGenImpl SnowflakeKeyGenerateAlgorithm SnowflakeZookeeperHolder
StripPrefix TaurusDB TestInsert TestName YitIdHelper mysqlRows newConsul
orderId parseBoolean readLengthEncodedString sqlOrArgs toUpperCase updateMaxId
updateSegmentFromDb zookeeperProgrammers`
