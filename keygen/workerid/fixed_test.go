package workerid

import (
	"net"
	"testing"
)

func TestIPWorkerID_lastBits(t *testing.T) {
	for _, c := range []struct {
		addrs []string
		want  int64 // -1 for an error
	}{
		{[]string{"127.0.0.1/8", "10.0.3.17/16"}, 3*256 + 17},
		{[]string{"10.0.4.17/16"}, 17}, // only two bits of the third byte
		{[]string{"fe80::1/64", "192.168.255.255/16"}, 1023},
		{[]string{"10.0.0.1/8", "10.0.0.2/8"}, 1},
		{[]string{"2001:db8::9/64", "10.0.0.2/8"}, 2},
		{[]string{"127.0.0.1/8", "169.254.0.9/16", "::1/128"}, -1},
		{nil, -1},
	} {
		var addrs []net.Addr
		for _, a := range c.addrs {
			ip, n, err := net.ParseCIDR(a)
			if err != nil {
				t.Fatal(err)
			}
			addrs = append(addrs, &net.IPAddr{IP: ip}, &net.IPNet{IP: ip, Mask: n.Mask})
		}
		have, err := ipWorkerID(firstIPv4(addrs))
		if err != nil {
			have = -1
		}
		if have != c.want {
			t.Errorf("%v\nhave: %d, %v\nwant: %d", c.addrs, have, err, c.want)
		}
	}
}

func TestHostnameWorkerID_ordinal(t *testing.T) {
	for name, want := range map[string]int64{
		"orders-0": 0, "orders-12": 12, "a-b-1023": 1023, "orders-3.orders.default.svc": 3,
		"orders": -1, "orders12": -1, "orders-": -1, "orders-x": -1, "": -1, "orders-99999999999": -1,
		"ip-10-0-1-12": -1, "ip-10-0-1-12.eu-west-1.compute.internal": -1, "10-0-1-12": -1, "v1-2-3": 3,
	} {
		have, err := hostnameWorkerID(name)
		if err != nil {
			have = -1
		}
		if have != want {
			t.Errorf("%q\nhave: %d, %v\nwant: %d", name, have, err, want)
		}
	}
}
