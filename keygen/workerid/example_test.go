//go:build !windows

package workerid_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	_ "github.com/shardkey/shardkey/keygen/workerid"
	"github.com/shardkey/shardkey/spi"
)

// Two processes on a machine share a directory and have different worker IDs. A released worker
// ID can be leased again, from after its last ID.
func Example() {
	dir, err := os.MkdirTemp("", "workers")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()

	var processes [2]spi.WorkerIDAssigner
	for i := range processes {
		props, _ := spi.NewProps(map[string]any{"path": dir, "namespace": "orders"}, spi.Host{})
		processes[i], err = spi.NewWorkerIDAssigner("FILE", props)
		if err != nil {
			fmt.Println(err)
			return
		}
		defer processes[i].(io.Closer).Close()
	}
	first, err := processes[0].AcquireWorkerID(ctx, 1023)
	if err != nil {
		fmt.Println(err)
		return
	}
	second, err := processes[1].AcquireWorkerID(ctx, 1023)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("worker IDs", first.WorkerID(), second.WorkerID())
	fmt.Println("reserved for", time.Until(time.UnixMilli(first.Limit())).Round(time.Second))

	lastUsed := first.Floor() + 5
	if err := first.Release(ctx, lastUsed); err != nil {
		fmt.Println(err)
		return
	}
	again, err := processes[1].AcquireWorkerID(ctx, 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("worker ID", again.WorkerID(), "begins", again.Floor()-lastUsed, "ms after the last id")
	// Output:
	// worker IDs 0 1
	// reserved for 10s
	// worker ID 0 begins 1 ms after the last id
}
