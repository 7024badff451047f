package workerid_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/shardkey/shardkey/keygen/workerid"
	"github.com/shardkey/shardkey/keygen/workerid/workeridtest"
	"github.com/shardkey/shardkey/spi"
)

// httpStore stores records in a key-value server with HTTP, and compares ETags, as object stores
// do. Each worker ID has one value. A GET of "" returns the names as JSON.
type httpStore struct {
	url    string // ends with the namespace and a slash
	closed atomic.Bool
}

func (s *httpStore) List(ctx context.Context) ([]workerid.Entry, error) {
	body, _, err := s.do(ctx, "GET", "", "", "")
	if err != nil {
		return nil, err
	}
	var ids []int64
	if err := json.Unmarshal([]byte(body), &ids); err != nil {
		return nil, err
	}
	var entries []workerid.Entry
	for _, id := range ids {
		record, _, err := s.get(ctx, id)
		var foreign *workerid.ForeignRecordError
		if err != nil && !errors.As(err, &foreign) {
			return nil, err
		}
		entries = append(entries, workerid.Entry{WorkerID: id, Record: record, Err: err})
	}
	return entries, nil
}

func (s *httpStore) Get(ctx context.Context, workerID int64) (workerid.Record, error) {
	record, _, err := s.get(ctx, workerID)
	return record, err
}

// get returns a record and its ETag, or "" if there is none.
func (s *httpStore) get(ctx context.Context, workerID int64) (workerid.Record, string, error) {
	body, etag, err := s.do(ctx, "GET", strconv.FormatInt(workerID, 10), "", "")
	if err != nil || etag == "" {
		return workerid.Record{}, "", err
	}
	record, err := workerid.ParseRecord(workerID, body)
	return record, etag, err
}

// CompareAndSet lets the server compare the ETag of the record with that of prev. Package
// net/http doesn't repeat a PUT that may have been applied.
func (s *httpStore) CompareAndSet(ctx context.Context, workerID int64, prev, next workerid.Record) (bool, error) {
	found, etag, err := s.get(ctx, workerID)
	if err != nil || !found.Same(prev) {
		return false, err
	}
	_, _, err = s.do(ctx, "PUT", strconv.FormatInt(workerID, 10), etag, next.Text())
	if errors.Is(err, errOtherETag) {
		return false, nil
	}
	return err == nil, err
}

var errOtherETag = errors.New("the value has another ETag")

// do returns the body and ETag of a response, or "" if there is no value. A PUT replaces the
// value with this ETag, or creates it if etag is "".
func (s *httpStore) do(ctx context.Context, method, name, etag, body string) (string, string, error) {
	if s.closed.Load() {
		return "", "", spi.ErrClosed
	}
	request, err := http.NewRequestWithContext(ctx, method, s.url+name, strings.NewReader(body))
	if err != nil {
		return "", "", err
	}
	switch {
	case method == "PUT" && etag == "":
		request.Header.Set("If-None-Match", "*")
	case method == "PUT":
		request.Header.Set("If-Match", etag)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", "", err
	}
	defer answer.Body.Close()
	switch {
	case method == "GET" && answer.StatusCode == http.StatusNotFound:
		return "", "", nil
	case method == "PUT" && answer.StatusCode == http.StatusPreconditionFailed:
		return "", "", errOtherETag
	case answer.StatusCode != http.StatusOK:
		return "", "", fmt.Errorf("%s: %s", method, answer.Status)
	}
	content, err := io.ReadAll(answer.Body)
	return string(content), answer.Header.Get("ETag"), err
}

func (s *httpStore) Close() error {
	s.closed.Store(true)
	return nil
}

// A program can register an assigner type with its own store. Rules then use it as {type: HTTP,
// props: {url: …, namespace: orders}}.
func Example_store() {
	spi.RegisterWorkerIDAssigner("HTTP", func(p spi.Props) (spi.WorkerIDAssigner, error) {
		url := p.String("url", "")
		if url == "" {
			return nil, p.Wrong("url", "the address of the server, for example http://10.0.0.7:8000/workers")
		}
		return workerid.NewAssigner(p, func(namespace string) (workerid.Store, workerid.Info, error) {
			return &httpStore{url: url + "/" + namespace + "/"}, workerid.Info{Name: "HTTP " + url}, nil
		})
	})

	server := httptest.NewServer(newHTTPServer())
	defer server.Close()
	props, err := spi.NewProps(map[string]any{"url": server.URL, "namespace": "orders"},
		spi.Host{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		fmt.Println(err)
		return
	}
	assigner, err := spi.NewWorkerIDAssigner("HTTP", props)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer assigner.(io.Closer).Close()
	for range 2 {
		lease, err := assigner.AcquireWorkerID(context.Background(), 1023)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println("worker ID", lease.WorkerID())
	}
	// Output:
	// worker ID 0
	// worker ID 1
}

func TestHTTPStore(t *testing.T) {
	workeridtest.TestStore(t, func(t testing.TB) workeridtest.Namespace {
		values := newHTTPServer()
		server := httptest.NewServer(values)
		t.Cleanup(server.Close)
		return workeridtest.Namespace{
			Open: func() (workerid.Store, workerid.Info) {
				return &httpStore{url: server.URL + "/orders/"}, workerid.Info{Name: "HTTP " + server.URL}
			},
			PutForeign: func(id int64) { values.put(fmt.Sprintf("/orders/%d", id), "not a record") },
			LoseAnswer: func() { values.loseNext.Store(true) },
		}
	})
}

// httpServer is the server of an [httpStore], in memory.
type httpServer struct {
	loseNext atomic.Bool // the next PUT is applied but not answered
	mu       sync.Mutex
	values   map[string]string // values by path
}

func newHTTPServer() *httpServer { return &httpServer{values: map[string]string{}} }

func (s *httpServer) put(path, value string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.values[path] = value
}

func etagOf(value string) string {
	sum := sha256.Sum256([]byte(value))
	return fmt.Sprintf("%q", hex.EncodeToString(sum[:]))
}

func (s *httpServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	value, found := s.values[r.URL.Path]
	switch {
	case r.Method == "GET" && strings.HasSuffix(r.URL.Path, "/"):
		_, _ = io.WriteString(w, s.list(r.URL.Path))
	case r.Method == "GET" && !found:
		http.NotFound(w, r)
	case r.Method == "GET":
		w.Header().Set("ETag", etagOf(value))
		_, _ = io.WriteString(w, value)
	case found && r.Header.Get("If-Match") != etagOf(value), !found && r.Header.Get("If-None-Match") != "*":
		w.WriteHeader(http.StatusPreconditionFailed)
	default:
		s.values[r.URL.Path] = string(body)
		if s.loseNext.CompareAndSwap(true, false) {
			panic(http.ErrAbortHandler) // closes the connection
		}
	}
}

// list returns the worker IDs below a path as JSON.
func (s *httpServer) list(path string) string {
	ids := []string{}
	for name := range s.values {
		if id, ok := strings.CutPrefix(name, path); ok {
			ids = append(ids, id)
		}
	}
	return "[" + strings.Join(ids, ",") + "]"
}
