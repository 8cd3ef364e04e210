package serve

import "testing"

func TestListenAddress(t *testing.T) {
	for given, want := range map[string]string{
		"8931": "127.0.0.1:8931 true", ":8931": "127.0.0.1:8931 true", "127.0.0.1:0": "127.0.0.1:0 true",
		"localhost:1": "localhost:1 true", "[::1]:1": "[::1]:1 true", "0.0.0.0:1": "0.0.0.0:1 false",
		"10.0.0.1:1": "10.0.0.1:1 false", "example.com:1": "example.com:1 false",
		"127.0.0.1": "", "a:b:c": "", "x:": "",
	} {
		address, loopback, err := listenAddress(given)
		got := ""
		if err == nil {
			got = address + map[bool]string{true: " true", false: " false"}[loopback]
		}
		if got != want {
			t.Errorf("%s is %q, expected %q", given, got, want)
		}
	}
}
