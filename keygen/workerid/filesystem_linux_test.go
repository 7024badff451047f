package workerid

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/shardkey/shardkey/internal/test/must"
)

// A directory on a file system that machines share, or that a container loses, is a warning, also
// before it exists.
func TestFileStore_warnings(t *testing.T) {
	for name, kind := range map[string]uint32{"overlayfs": 0x794c7630, "NFS": 0x6969, "CIFS": 0xff534d42, "SMB2": 0xfe534d42} {
		must.Contain(t, fileSystemRisks[kind], name)
	}
	dir := t.TempDir()
	var here syscall.Statfs_t
	must.Do(t, syscall.Statfs(dir, &here))
	before := fileSystemRisks
	defer func() { fileSystemRisks = before }()
	for kind, want := range map[uint32]bool{uint32(here.Type): true, uint32(here.Type) + 1: false} {
		fileSystemRisks = map[uint32]string{kind: "a test"}
		for _, path := range []string{dir, filepath.Join(dir, "not", "yet")} {
			have, err := newFileStore(path, "orders").warnings(t.Context())
			if err != nil || (len(have) > 0) != want || want && !strings.Contains(have[0], "a test") {
				t.Errorf("%s\nhave: %q, %v\nwant: a warning: %v", path, have, err, want)
			}
		}
	}
}
