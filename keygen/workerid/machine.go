package workerid

import (
	"errors"
	"fmt"
	"net"
	"os"
	"regexp"
	"strconv"
)

// ipBits is how much of the address the IP assigner takes, as ShardingSphere's
// did.
const ipBits = 10

// ipWorkerID is the last 10 bits of the machine's first IPv4 address that
// others can reach. Two machines of one network whose addresses differ only
// further up have the same.
func ipWorkerID(addrs []net.Addr) (int64, error) {
	for _, a := range addrs {
		ipnet, ok := a.(*net.IPNet)
		if !ok {
			continue
		}
		if ip := ipnet.IP.To4(); ip != nil && ip.IsGlobalUnicast() {
			return (int64(ip[2])<<8 | int64(ip[3])) & (1<<ipBits - 1), nil
		}
	}
	return 0, errors.New("this machine has no IPv4 address but loopback's; use STATIC or an assigner that leases")
}

func machineIP() (int64, error) {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return 0, err
	}
	return ipWorkerID(addrs)
}

var ordinal = regexp.MustCompile(`-([0-9]{1,9})(\.|$)`)

// hostnameWorkerID is the ordinal of a StatefulSet's pod: "orders-12" is 12.
func hostnameWorkerID(name string) (int64, error) {
	m := ordinal.FindStringSubmatch(name)
	if m == nil {
		return 0, fmt.Errorf("host name %q has no ordinal, as orders-12 of a StatefulSet has; use STATIC or an assigner that leases", name)
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
