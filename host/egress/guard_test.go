package egress

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/outbound"
)

func TestKindOf(t *testing.T) {
	for address, want := range map[string]string{
		"8.8.8.8": "", "1.1.1.1": "", "9.255.255.255": "", "11.0.0.0": "", "100.63.255.255": "", "100.128.0.0": "",
		"126.255.255.255": "", "128.0.0.0": "",
		"169.253.255.255": "", "169.255.0.0": "", "172.15.255.255": "", "172.32.0.0": "", "192.167.255.255": "",
		"192.169.0.0": "", "198.17.255.255": "",
		"198.20.0.0": "", "223.255.255.255": "",

		"0.0.0.0": "unspecified", "0.1.2.3": "this network", "10.0.0.0": "private", "10.255.255.255": "private",
		"100.64.0.0":      "shared by carriers",
		"100.127.255.255": "shared by carriers", "100.100.100.200": "cloud metadata", "127.0.0.1": "loopback",
		"127.255.255.255": "loopback",
		"168.63.129.16":   "cloud metadata", "169.254.0.1": "link-local", "169.254.169.254": "cloud metadata",
		"169.254.170.2": "link-local",
		"172.16.0.0":    "private", "172.31.255.255": "private", "192.0.0.192": "reserved for protocols",
		"192.0.2.1": "documentation", "192.88.99.1": "relays of 6to4",
		"192.168.0.0": "private", "192.168.255.255": "private", "198.18.0.0": "benchmarks", "198.19.255.255": "benchmarks",
		"198.51.100.1": "documentation",
		"203.0.113.1":  "documentation", "224.0.0.1": "multicast", "239.255.255.255": "multicast", "240.0.0.1": "reserved",
		"255.255.255.255": "broadcast",

		"2606:4700:4700::1111": "", "2a00::1": "", "2001:200::1": "", "2001:4860:4860::8888": "", "2003::1": "",
		"3ffe::1": "",

		"::": "unspecified", "::1": "loopback", "::2": "not allocated in IPv6",
		"::7f00:1":        "not allocated in IPv6",
		"::ffff:0:7f00:1": "not allocated in IPv6", "100::1": "not allocated in IPv6",
		"5f00::1": "not allocated in IPv6",
		"4000::1": "not allocated in IPv6", "2001:db8::1": "documentation", "3fff::1": "documentation",
		"2001::7f00:1": "Teredo",
		"2001:10::1":   "reserved for protocols", "2001:2::1": "reserved for protocols", "fc00::1": "unique-local",
		"fdff::1":       "unique-local",
		"fd00:ec2::254": "cloud metadata", "fd20:ce::254": "cloud metadata", "fe80::1": "link-local", "febf::1": "link-local",
		"fec0::1": "site-local",
		"ff02::1": "multicast",

		"64:ff9b::808:808": "", "64:ff9b::7f00:1": "127.0.0.1 within IPv6, loopback",
		"64:ff9b::a9fe:a9fe": "169.254.169.254 within IPv6, cloud metadata",
		"64:ff9b::a00:1":     "10.0.0.1 within IPv6, private", "64:ff9b:1::808:808": "NAT64 of a local network",
		"64:ff9b:0:1::808:808": "not allocated in IPv6",
		"2002:808:808::1":      "", "2002:7f00:1::1": "127.0.0.1 within IPv6, loopback",
		"2002:c0a8:1::": "192.168.0.1 within IPv6, private",
	} {
		if got := addressKind(netip.MustParseAddr(address)); got != want {
			t.Errorf("%s: %q, want %q", address, got, want)
		}
	}
}

// TestSpecialNetworks has its own copy of the list, so that it notices a row that is lost or narrowed. Both ends
// of each network are refused, and the addresses next to it only where another network begins.
func TestSpecialNetworks(t *testing.T) {
	for _, tt := range []struct {
		first, last   string
		before, after bool // the address next to it is refused, too
	}{
		{"0.0.0.0", "0.255.255.255", true, false},
		{"10.0.0.0", "10.255.255.255", false, false},
		{"100.64.0.0", "100.127.255.255", false, false},
		{"127.0.0.0", "127.255.255.255", false, false},
		{"168.63.129.16", "168.63.129.16", false, false},
		{"169.254.0.0", "169.254.255.255", false, false},
		{"172.16.0.0", "172.31.255.255", false, false},
		{"192.0.0.0", "192.0.0.255", false, false},
		{"192.0.2.0", "192.0.2.255", false, false},
		{"192.88.99.0", "192.88.99.255", false, false},
		{"192.168.0.0", "192.168.255.255", false, false},
		{"198.18.0.0", "198.19.255.255", false, false},
		{"198.51.100.0", "198.51.100.255", false, false},
		{"203.0.113.0", "203.0.113.255", false, false},
		{"224.0.0.0", "239.255.255.255", false, true},
		{"240.0.0.0", "255.255.255.255", true, false},

		{"::", "64:ff9a:ffff:ffff:ffff:ffff:ffff:ffff", false, true},
		{"64:ff9b::1:0:0", "1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", true, false},
		{"2001::", "2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff", false, false},
		{"2001:db8::", "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff", false, false},
		{"3fff::", "3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff", false, false},
		{"4000::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", false, false},
		{"64:ff9b::a00:0", "64:ff9b::aff:ffff", false, false},                    // 10.0.0.0/8 by NAT64
		{"2002:ac10::", "2002:ac1f:ffff:ffff:ffff:ffff:ffff:ffff", false, false}, // 172.16.0.0/12 by 6to4
	} {
		first, last := netip.MustParseAddr(tt.first), netip.MustParseAddr(tt.last)
		for _, row := range []struct {
			address netip.Addr
			refused bool
		}{{first.Prev(), tt.before}, {first, true}, {last, true}, {last.Next(), tt.after}} {
			if row.address.IsValid() && (addressKind(row.address) != "") != row.refused {
				t.Errorf("%s to %s: %s is %q", tt.first, tt.last, row.address, addressKind(row.address))
			}
		}
	}
}

// TestAddresses checks which addresses of a name or URL may be dialled.
func TestAddresses(t *testing.T) {
	for _, tt := range []struct {
		host     string
		found    string // what the name resolves to
		networks string
		granted  bool
		want     string // the dialled address, or "denied: ..."
	}{
		{"a.test", "8.8.8.8", "", true, "8.8.8.8"},
		{"a.test", "8.8.8.8", "", false, "8.8.8.8"},
		{"a.test", "8.8.8.8 2606:4700::1", "", true, "8.8.8.8 2606:4700::1"},
		{"a.test", "10.0.0.1 8.8.8.8 127.0.0.1", "", true, "8.8.8.8"},
		{"a.test", "10.0.0.1", "", true, "denied: 10.0.0.1 (private)"},
		{"a.test", "10.0.0.1 ::1", "", true, "denied: 10.0.0.1 (private), ::1 (loopback)"},
		{"a.test", "10.0.0.1 10.0.0.2 10.0.0.3 10.0.0.4", "", true, "denied: 10.0.0.3 (private) and 1 more"},
		{"a.test", "::ffff:127.0.0.1", "", true, "denied: 127.0.0.1 (loopback)"},
		{"a.test", "::ffff:169.254.169.254", "", true, "denied: 169.254.169.254 (cloud metadata)"},
		{"a.test", "::ffff:8.8.8.8", "", true, "8.8.8.8"},
		{"a.test", "64:ff9b::a00:1", "", true, "denied: 64:ff9b::a00:1 (10.0.0.1 within IPv6, private)"},
		{"a.test", "fe80::1%lo", "", true, "denied: (link-local)"},
		{"a.test", "", "", true, "no address"},

		// This machine has the addresses 9.9.9.1/24 and 2606:9::1/64.
		{"a.test", "9.9.9.1", "", true, "denied: 9.9.9.1 (an address of this machine)"},
		{"a.test", "::ffff:9.9.9.1 9.9.9.2", "", true, "9.9.9.2"},
		{"a.test", "2606:9::1", "", true, "denied: 2606:9::1 (an address of this machine)"},
		{"a.test", "2606:9::ffff:2", "", true, "denied: 2606:9::ffff:2 (in a network of this machine)"},
		{"a.test", "2606:9:0:1::1", "", true, "2606:9:0:1::1"},
		{"a.test", "64:ff9b::909:901", "", true, "denied: 64:ff9b::909:901 (an address of this machine)"},
		{"a.test", "9.9.9.1", "9.9.9.1/32", true, "9.9.9.1"},
		{"a.test", "9.9.9.1", "9.9.9.1/32", false, "denied: 9.9.9.1 (an address of this machine)"},
		{"9.9.9.1", "", "", true, "9.9.9.1"},
		{"9.9.9.1", "", "", false, "denied: 9.9.9.1 (an address of this machine)"},

		{"a.test", "10.0.0.1 10.1.0.1", "10.1.0.0/16", true, "10.1.0.1"},
		{"a.test", "10.1.0.1", "10.1.0.0/16", false, "denied: for hosts that are granted"},
		{"a.test", "::ffff:10.1.0.1", "10.1.0.0/16", true, "10.1.0.1"},
		{"a.test", "64:ff9b::a01:1", "10.1.0.0/16", true, "64:ff9b::a01:1"},
		{"a.test", "64:ff9b:1::1", "64:ff9b:1::/48", true, "64:ff9b:1::1"},
		{"a.test", "fe80::1%lo", "fe80::/10", true, "fe80::1%lo"},
		{"a.test", "169.254.169.254", "169.254.169.254/32", true, "169.254.169.254"},

		{"10.0.0.1", "", "", true, "10.0.0.1"},
		{"10.0.0.1", "", "", false, "denied: connections to 10.0.0.1 (private) require a grant that names 10.0.0.1"},
		{"169.254.169.254", "", "", true, "169.254.169.254"},
		{"::1", "", "", true, "::1"},
		{"::1", "", "", false, "denied: ::1 (loopback)"},
		{"64:ff9b::7f00:1", "", "", true, "64:ff9b::7f00:1"},

		{"localhost", "127.0.0.1 ::1", "", true, "127.0.0.1 ::1"},
		{"localhost", "127.0.0.1", "", false,
			"denied: connections to 127.0.0.1 (loopback) require a grant that names localhost"},
		{"localhost", "8.8.8.8 127.9.9.9", "", true, "127.9.9.9"},
		{"localhost", "8.8.8.8", "", true, "denied: 8.8.8.8 (not loopback, as localhost must be)"},
		{"localhost", "10.0.0.1", "10.0.0.0/8", true, "denied: 10.0.0.1 (not loopback"},
		{"a.localhost", "127.0.0.1", "", true, "denied: 127.0.0.1 (loopback)"},
	} {
		g := guard{resolve: func(context.Context, string) ([]netip.Addr, error) {
			var all []netip.Addr
			for _, s := range strings.Fields(tt.found) {
				all = append(all, netip.MustParseAddr(s))
			}
			return all, nil
		}, local: func() []netip.Prefix {
			return []netip.Prefix{netip.MustParsePrefix("9.9.9.1/24"), netip.MustParsePrefix("2606:9::1/64")}
		}}
		for _, n := range strings.Fields(tt.networks) {
			g.networks = append(g.networks, netip.MustParsePrefix(n))
		}
		found, err := g.addresses(context.Background(), target{tt.host, 80, tt.granted, "http:GET:http://x"})
		words, wantDenied := strings.CutPrefix(tt.want, "denied: ")
		switch {
		case wantDenied:
			wantError(t, err, host.Denied, "http:GET:http://x", words)
		case tt.want == "no address":
			if err == nil || classify(err).text != "its name has no address" {
				t.Errorf("%s: %v", tt.host, err)
			}
		default:
			var got []string
			for _, a := range found {
				got = append(got, a.String())
			}
			if err != nil || strings.Join(got, " ") != tt.want {
				t.Errorf("%s at %s: got %q, %v, want %s", tt.host, tt.found, got, err, tt.want)
			}
		}
	}
}

// If the address of a name changes between look-ups, the checked address is the one that is dialled, at each hop.
func TestRebinding(t *testing.T) {
	inner := 0
	secret := serve(t, "127.0.0.3", func(http.ResponseWriter, *http.Request) { inner++ })
	port := portOf(secret)
	var lookups []string
	answers := [][]netip.Addr{{netip.MustParseAddr("127.0.0.2")}, {netip.MustParseAddr("127.0.0.3")}}
	w := newTestClient(t, Config{Resolve: func(_ context.Context, name string) ([]netip.Addr, error) {
		lookups = append(lookups, name)
		return answers[min(len(lookups), len(answers))-1], nil
	}})
	w.networks("127.0.0.2/32")
	l, err := net.Listen("tcp", "127.0.0.2:"+port)
	if err != nil {
		t.Skip("the port is taken on the other address")
	}
	t.Cleanup(func() { l.Close() })
	go http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/again" {
			http.Redirect(w, r, "/x", http.StatusFound)
			return
		}
		io.WriteString(w, "public")
	}))
	url := "http://a.test:" + port
	answer, err := w.send(outbound.Request{URL: url}, "GET "+url)
	wantBody(t, answer, err, "public")
	if len(lookups) != 1 {
		t.Errorf("%d look-ups for one hop", len(lookups))
	}
	lookups = nil
	_, err = w.send(outbound.Request{URL: url + "/again"}, "GET "+url)
	wantError(t, err, host.Denied, "127.0.0.3 (loopback)")
	if len(lookups) != 2 || inner != 0 {
		t.Errorf("%d look-ups, %d requests to the forbidden server", len(lookups), inner)
	}
}

// If an address does not respond, the next one is tried; each gets a share of the time.
func TestSeveralAddresses(t *testing.T) {
	s := serve(t, "127.0.0.2", hello)
	w := newTestClient(t, Config{})
	w.networks("127.0.0.0/8")
	w.names["a.test"] = []string{"127.0.0.9", "127.0.0.2"}
	url := "http://a.test:" + portOf(s)
	answer, err := w.send(outbound.Request{URL: url + "/x"}, "GET "+url)
	wantBody(t, answer, err, "hello /x")
	w.names["a.test"] = []string{"127.0.0.9", "127.0.0.8"}
	_, err = w.send(outbound.Request{URL: url + "/x?secret"}, "GET "+url)
	wantError(t, err, host.Unavailable, url+": connection refused")
	w.names["a.test"] = nil
	_, err = w.send(outbound.Request{URL: url + "/x?secret"}, "GET "+url)
	wantError(t, err, host.Unavailable, url+": its name has no address")
}

func TestLocalhost(t *testing.T) {
	s := serve(t, "127.0.0.1", hello)
	w := newTestClient(t, Config{})
	w.names["localhost"] = []string{"127.0.0.1"}
	url := "http://localhost:" + portOf(s)
	answer, err := w.send(outbound.Request{URL: url + "/x"}, "GET "+url)
	wantBody(t, answer, err, "hello /x")
	// A grant for the name does not cover the address, and vice versa.
	_, err = w.send(outbound.Request{URL: s.URL}, "GET "+url)
	wantError(t, err, host.Denied, "http:GET:"+s.URL)
	_, err = w.send(outbound.Request{URL: url}, "GET "+s.URL)
	wantError(t, err, host.Denied, "http:GET:"+url)
	six := serve(t, "::1", hello)
	answer, err = w.send(outbound.Request{URL: six.URL + "/six"}, "GET "+six.URL)
	wantBody(t, answer, err, "hello /six")
}

func TestDial(t *testing.T) {
	l := listen(t, "127.0.0.2")
	_, port, _ := net.SplitHostPort(l.Addr().String())
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			conn.Close()
		}
	}()
	w := newTestClient(t, Config{})
	w.names["a.test"] = []string{"127.0.0.2"}
	for _, tt := range []struct {
		address  string
		grants   string
		networks string
		code     host.Code
		words    string
	}{
		{"127.0.0.2:P", "GET http://127.0.0.2:P", "", host.OK, ""},
		{"127.0.0.2:P", "GET https://127.0.0.2:P", "", host.OK, ""}, // schemes are not visible to Dial
		{"127.0.0.2:P", "", "", host.Denied, "http:GET:http://127.0.0.2:P"},
		{"127.0.0.2:P", "GET http://127.0.0.2", "", host.Denied, "http:GET:http://127.0.0.2:P"},
		{"127.0.0.2:P", "GET http://a.test:P", "", host.Denied, "http:GET:http://127.0.0.2:P"},
		{"127.0.0.2:P", "", "127.0.0.0/8", host.Denied, "loopback"},
		{"127.0.0.2:443", "", "", host.Denied, "http:GET:https://127.0.0.2"},
		{"a.test:P", "GET http://a.test:P", "127.0.0.0/8", host.OK, ""},
		{"A.TEST:P", "GET http://*.test.test:P;GET http://a.test:P", "127.0.0.0/8", host.OK, ""},
		{"a.test:P", "GET http://a.test", "127.0.0.0/8", host.Denied, "loopback"},
		{"a.test:P", "GET http://a.test:P", "", host.Denied, "loopback"},
		{"[::ffff:127.0.0.2]:P", "GET http://127.0.0.2:P", "", host.InvalidURL, "contains an IPv4 address"},
		{"2130706434:P", "GET http://127.0.0.2:P", "", host.InvalidURL, "odd spelling"},
		{"127.0.0.2.:P", "GET http://127.0.0.2:P", "", host.InvalidURL, "dot"},
		{"user@127.0.0.2:P", "GET http://127.0.0.2:P", "", host.InvalidURL, "user name"},
		{"127.0.0.2:P/x", "GET http://127.0.0.2:P", "", host.InvalidURL, "path"},
		{"*.test.test:P", "GET http://*.test.test:P", "", host.InvalidURL, "does not name a host"},
		{"127.0.0.2", "GET http://127.0.0.2:P", "", host.InvalidURL, "the form HOST"},
		{":P", "", "", host.InvalidURL, "empty"},
		{"", "", "", host.InvalidURL, "the form HOST"},
		{"b.test:P", "", "", host.Unavailable, "no address"},
		{"127.0.0.2:1", "GET http://127.0.0.2:1", "", host.Unavailable, "refused"},
	} {
		at := func(s string) string { return strings.ReplaceAll(s, ":P", ":"+port) }
		w.networks(strings.Fields(tt.networks)...)
		grants := slices.DeleteFunc(strings.Split(at(tt.grants), ";"), func(s string) bool { return s == "" })
		conn, err := w.Dial(context.Background(), at(tt.address), granted(grants...))
		if tt.code != host.OK {
			wantError(t, err, tt.code, at(tt.words))
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", tt.address, err)
			continue
		}
		// The connection outlives the call that made it.
		conn.SetReadDeadline(time.Now().Add(10 * time.Second))
		if _, err := conn.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("%s: %v", tt.address, err)
		}
		conn.Close()
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := w.Dial(ctx, "127.0.0.2:"+port, granted("GET http://127.0.0.2:"+port))
	wantError(t, err, host.Interrupted)
}
