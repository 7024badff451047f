// Package machine finds the address by which others know this machine, and what tells
// whether this process is still the one that it was.
package machine

import "net"

// IPv4 returns the machine's first IPv4 address that others can reach, nil when
// there is none.
func IPv4() (net.IP, error) {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return nil, err
	}
	return FirstIPv4(addrs), nil
}

// FirstIPv4 returns the first of the addresses that is an IPv4 one and not
// loopback's or another of local use; nil when there is none.
func FirstIPv4(addrs []net.Addr) net.IP {
	for _, a := range addrs {
		if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil && n.IP.IsGlobalUnicast() {
			return n.IP.To4()
		}
	}
	return nil
}
