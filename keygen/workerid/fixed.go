package workerid

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"regexp"
	"strconv"

	"github.com/shardkey/shardkey/keygen/internal/stats"
	"github.com/shardkey/shardkey/spi"
)

// fixed returns one worker ID that isn't leased. Nothing prevents other processes from using it
// too. It implements STATIC, IP and HOSTNAME.
type fixed struct {
	kind string
	// find returns the worker ID from the configuration or the machine.
	find func() (int64, error)
}

var (
	_ spi.WorkerIDAssigner = (*fixed)(nil)
	_ spi.Describer        = (*fixed)(nil)
	_ spi.HealthReporter   = (*fixed)(nil)
	_ spi.WorkerIDLister   = (*fixed)(nil)
)

// AcquireWorkerID returns the worker ID. The error wraps spi.ErrNoWorkerID, for example if the
// worker ID is too high for the generator's layout.
func (fx *fixed) AcquireWorkerID(ctx context.Context, maxWorkerID int64) (spi.WorkerIDLease, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	id, err := fx.find()
	if err != nil {
		return nil, fmt.Errorf("%w: assigner %s: %w", spi.ErrNoWorkerID, fx.kind, err)
	}
	if id < 0 || id > maxWorkerID {
		return nil, fmt.Errorf("%w: %s is %d, but the generator's layout has 0..%d: "+
			"use another layout, or an assigner that leases (FILE, SQL, …)",
			spi.ErrNoWorkerID, fx.kind, id, maxWorkerID)
	}
	return unlimited(id), nil
}

func (fx *fixed) Describe() string {
	id, err := fx.find()
	if err != nil {
		return fx.kind
	}
	return fmt.Sprintf("%s worker-id=%d", fx.kind, id)
}

// Health warns about the risks of a worker ID without a lease.
func (fx *fixed) Health() spi.Health {
	h := spi.Health{Warnings: []string{stats.Unleased(fx.kind)}}
	id, err := fx.find()
	if err != nil {
		h.Err = err
		return h
	}
	h.WorkerID = &id
	return h
}

// ListWorkerIDs returns the one worker ID.
func (fx *fixed) ListWorkerIDs(context.Context) (spi.WorkerIDs, error) {
	id, err := fx.find()
	if err != nil {
		return spi.WorkerIDs{}, err
	}
	return spi.WorkerIDs{Store: fx.Describe(), Max: -1, List: []spi.WorkerID{{ID: id, State: "fixed"}}}, nil
}

// unlimited is a worker ID without a time interval.
type unlimited int64

func (u unlimited) WorkerID() int64                      { return int64(u) }
func (u unlimited) Floor() int64                         { return 0 }
func (u unlimited) Limit() int64                         { return math.MaxInt64 }
func (u unlimited) Renew(context.Context, int64) error   { return nil }
func (u unlimited) Release(context.Context, int64) error { return nil }

// ipBits is the number of bits of the address that the IP assigner uses, as IPKeyGenerator of
// Sharding-JDBC did.
const ipBits = 10

// ipWorkerID returns the last 10 bits of an IPv4 address. Two machines of a network have the same
// worker ID if their addresses differ only in higher bits.
func ipWorkerID(ip net.IP) (int64, error) {
	if ip == nil {
		return 0, errors.New("this machine has no IPv4 address but loopback's; use STATIC or an assigner that leases")
	}
	return (int64(ip[2])<<8 | int64(ip[3])) & (1<<ipBits - 1), nil
}

func machineIP() (int64, error) {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return 0, err
	}
	return ipWorkerID(firstIPv4(addrs))
}

// firstIPv4 returns the first address that other machines can reach, or nil if there is none.
func firstIPv4(addrs []net.Addr) net.IP {
	for _, a := range addrs {
		if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil && n.IP.IsGlobalUnicast() {
			return n.IP.To4()
		}
	}
	return nil
}

var (
	ordinal = regexp.MustCompile(`-([0-9]{1,9})(\.|$)`)
	// addressName matches a name that contains an address, as on EC2. Its last number isn't an
	// ordinal, and many machines have the same one.
	addressName = regexp.MustCompile(`(^|-)[0-9]{1,3}-[0-9]{1,3}-[0-9]{1,3}-[0-9]{1,3}(\.|$)`)
)

// hostnameWorkerID returns the ordinal of a StatefulSet's pod: 12 for "orders-12".
func hostnameWorkerID(name string) (int64, error) {
	m := ordinal.FindStringSubmatch(name)
	if m == nil || addressName.MatchString(name) {
		return 0, fmt.Errorf("host name %q has no ordinal, as orders-12 of a StatefulSet has "+
			"(the last number of an address is none); use STATIC or an assigner that leases", name)
	}
	return strconv.ParseInt(m[1], 10, 64)
}

func machineHostname() (int64, error) {
	name, err := os.Hostname()
	if err != nil {
		return 0, err
	}
	return hostnameWorkerID(name)
}
