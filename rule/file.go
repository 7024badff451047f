package rule

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
	"weak"
)

// maxFile is the maximum size of a rule, in bytes. It is enough for a million tables that are
// listed one by one.
const maxFile = 64 << 20

// readTime bounds the time to read a file that calls itself regular, but blocks, such as /proc/kmsg.
const readTime = 5 * time.Second

// Load reads a rule from a YAML file and checks it as [Parse] does. The error is an [*Error]. If
// the file can't be read, it wraps a *fs.PathError. While a rule of the same file with the same
// content and environment variables is in use, Load returns that rule.
func Load(path string) (*Rule, error) {
	data, mode, err := readFile(path)
	if err != nil {
		reason := strings.TrimPrefix(err.Error(), "open "+path+": ")
		if wd, wdErr := os.Getwd(); wdErr == nil && errors.Is(err, os.ErrNotExist) && !strings.HasPrefix(path, "/") {
			reason += " (in " + wd + ")"
		}
		return nil, &Error{File: path, Reason: "cannot read the rule: " + reason, Err: err}
	}
	full, err := filepath.Abs(path)
	if err != nil {
		full = path
	}
	from := source{path: full, text: sha256.Sum256(data)}
	key := fileKey{path, from, mode, sha256.Sum256([]byte(strings.Join(os.Environ(), "\x00")))}
	return loaded.get(key, func() (*Rule, error) { return parse(path, data, from, mode) })
}

// source identifies the file or content that a rule was read from.
type source struct {
	path string   // absolute path of the file; empty if the rule wasn't loaded from a file
	text [32]byte // SHA-256 of the content
}

// Source returns the absolute path of the rule's file and the SHA-256 of its content. The path is
// empty for a rule from [Parse] or [New], and the sum is zero for a rule from New.
func (r *Rule) Source() (file string, sum [sha256.Size]byte) {
	return r.source.path, r.source.text
}

// readFile reads a regular file. Other files can be endless, or block whoever opens or reads them.
func readFile(path string) (data []byte, mode fs.FileMode, err error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a named pipe would wait for its writer
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err == nil {
		err = checkRegular(path, info)
	}
	if err != nil {
		return nil, 0, err
	}
	_ = f.SetReadDeadline(time.Now().Add(readTime)) // an error for files on disks, which need none
	data, err = io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(data) > maxFile {
		err = fmt.Errorf("longer than %d bytes", maxFile)
	}
	return data, info.Mode(), err
}

func checkRegular(path string, info fs.FileInfo) error {
	found := "a device"
	switch mode := info.Mode(); {
	case mode.IsRegular():
		return nil
	case mode.IsDir():
		found = "a directory"
	case mode&fs.ModeNamedPipe != 0:
		found = "a named pipe"
	}
	return &fs.PathError{Op: "open", Path: path, Err: fmt.Errorf("expected a regular file, found %s", found)}
}

// writers returns who else than its owner can write a file, or "" if no one can. Windows has other
// permissions.
func writers(mode fs.FileMode) string {
	switch {
	case runtime.GOOS == "windows":
		return ""
	case mode&0o002 != 0:
		return "every user"
	case mode&0o020 != 0:
		return "the users of its group"
	}
	return ""
}

// loaded has the rules that were loaded from files and are in use, so that many connectors of one
// file need the memory and the time of one rule.
var loaded = files{rules: map[fileKey]weak.Pointer[Rule]{}}

type files struct {
	mu    sync.Mutex
	rules map[fileKey]weak.Pointer[Rule]
}

type fileKey struct {
	name        string
	source      source
	mode        fs.FileMode
	environment [sha256.Size]byte // of all variables, since properties may have any of them
}

// get returns the rule of a key. If it isn't in use, get calls parse. Of goroutines that do so at
// once, all get the rule of the first.
func (f *files) get(key fileKey, parse func() (*Rule, error)) (*Rule, error) {
	if r := f.shared(key, nil); r != nil {
		return r, nil
	}
	r, err := parse()
	if err != nil {
		return nil, err
	}
	return f.shared(key, r), nil
}

// shared returns the rule of a key that is in use. If there is none, it shares r, which may be nil,
// and returns it.
func (f *files) shared(key fileKey, r *Rule) *Rule {
	f.mu.Lock()
	defer f.mu.Unlock()
	if used := f.rules[key].Value(); used != nil || r == nil {
		return used
	}
	f.rules[key] = weak.Make(r)
	runtime.AddCleanup(r, f.forget, key)
	return r
}

// forget removes a key whose rule isn't in use any more.
func (f *files) forget(key fileKey) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.rules[key].Value() == nil {
		delete(f.rules, key)
	}
}
