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

	"github.com/shardkey/shardkey/spi"
)

// unleased hands out one worker ID that is not leased: nothing keeps others from
// using it as well. It serves STATIC, IP and HOSTNAME.
type unleased struct {
	kind string
	// find reads the worker ID off the configuration or the machine.
	find func() (int64, error)
}

var (
	_ spi.WorkerIDAssigner = (*unleased)(nil)
	_ spi.Describer        = (*unleased)(nil)
	_ spi.HealthReporter   = (*unleased)(nil)
)

// AcquireWorkerID returns the worker ID, or an error that is
// spi.ErrNoWorkerID, as when the generator's layout has no such one.
func (u *unleased) AcquireWorkerID(ctx context.Context, maxWorkerID int64) (spi.WorkerIDLease, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	id, err := u.find()
	if err != nil {
		return nil, fmt.Errorf("%w: assigner %s: %w", spi.ErrNoWorkerID, u.kind, err)
	}
	if id < 0 || id > maxWorkerID {
		return nil, fmt.Errorf("%w: %s is %d, but the generator's layout has 0..%d: "+
			"use another layout, or an assigner that leases (FILE, SQL, …)",
			spi.ErrNoWorkerID, u.kind, id, maxWorkerID)
	}
	return unlimited(id), nil
}

func (u *unleased) Describe() string {
	id, err := u.find()
	if err != nil {
		return u.kind
	}
	return fmt.Sprintf("%s worker-id=%d", u.kind, id)
}

// Health warns of what a worker ID without a lease risks.
func (u *unleased) Health() spi.Health {
	h := spi.Health{Warnings: []string{
		u.kind + ": nothing checks that no other process has this worker ID, or had it with a clock ahead",
	}}
	id, err := u.find()
	if err != nil {
		h.Err = err
		return h
	}
	h.WorkerID = &id
	return h
}

// unlimited is a worker ID without an interval.
type unlimited int64

func (u unlimited) WorkerID() int64                      { return int64(u) }
func (u unlimited) Floor() int64                         { return 0 }
func (u unlimited) Limit() int64                         { return math.MaxInt64 }
func (u unlimited) Renew(context.Context, int64) error   { return nil }
func (u unlimited) Release(context.Context, int64) error { return nil }

// ipBits is how much of the address the IP assigner takes, as IPKeyGenerator of
// Sharding-JDBC did.
const ipBits = 10

// ipWorkerID is the last 10 bits of an IPv4 address. Two machines of one network
// whose addresses differ only further up have the same.
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

// firstIPv4 returns the first address that other machines can reach, nil if there is none.
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
	// addressName is a name made of an address, as EC2 gives them. Its last number is
	// no ordinal: many machines have it.
	addressName = regexp.MustCompile(`(^|-)[0-9]{1,3}-[0-9]{1,3}-[0-9]{1,3}-[0-9]{1,3}(\.|$)`)
)

// hostnameWorkerID is the ordinal of a StatefulSet's pod: "orders-12" is 12.
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
