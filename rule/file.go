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
	info, err := os.Stat(path)
	if err != nil {
		if e, ok := errors.AsType[*fs.PathError](err); ok {
			e.Op = "open" // whose name users know
		}
		return nil, 0, err
	}
	if err := checkRegular(path, info); err != nil {
		return nil, 0, err
	}
	// Another file may have replaced it in the meantime.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	if info, err = f.Stat(); err == nil {
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
	case mode&fs.ModeSocket != 0:
		found = "a socket"
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

// loaded has the rules that were loaded from files and are in use.
var loaded = files{rules: map[fileKey]*sharedRule{}}

// files shares rules, so that many connectors of one file need the memory and the time of one rule.
type files struct {
	mu    sync.Mutex
	rules map[fileKey]*sharedRule
}

type fileKey struct {
	name        string
	source      source
	mode        fs.FileMode
	environment [sha256.Size]byte // of all variables, since properties may have any of them
}

// sharedRule is a rule that lives as long as something outside of files uses it.
type sharedRule struct {
	parsing sync.Mutex
	rule    weak.Pointer[Rule] // guarded by parsing, and changed under files.mu
}

// get returns the rule of a key. If it isn't in use, get calls parse.
func (fs *files) get(key fileKey, parse func() (*Rule, error)) (*Rule, error) {
	fs.mu.Lock()
	s := fs.rules[key]
	if s == nil {
		s = new(sharedRule)
		fs.rules[key] = s
	}
	fs.mu.Unlock()
	s.parsing.Lock()
	defer s.parsing.Unlock()
	if r := s.rule.Value(); r != nil {
		return r, nil
	}
	r, err := parse()
	if err != nil {
		fs.remove(key, s)
		return nil, err
	}
	fs.mu.Lock()
	s.rule = weak.Make(r)
	fs.mu.Unlock()
	runtime.AddCleanup(r, func(s *sharedRule) { fs.remove(key, s) }, s)
	return r, nil
}

func (fs *files) remove(key fileKey, s *sharedRule) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if fs.rules[key] == s && s.rule.Value() == nil {
		delete(fs.rules, key)
	}
}
