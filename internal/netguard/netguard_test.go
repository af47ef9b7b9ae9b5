package netguard

import (
	"net/netip"
	"testing"
)

func TestInternal(t *testing.T) {
	for text, want := range map[string]bool{
		"127.0.0.1": true, "10.1.2.3": true, "172.16.0.1": true, "172.31.255.255": true, "172.32.0.1": false, "192.168.1.1": true,
		"169.254.169.254": true, "100.64.0.1": true, "0.0.0.0": true, "255.255.255.255": true, "224.0.0.1": true, "8.8.8.8": false, "203.0.113.80": false, "198.18.0.1": false,
		"::1": true, "::": true, "fe80::1": true, "fe80::1%eth0": true, "fd00::1": true, "ff02::1": true, "2606:4700::1": false,
		"::ffff:127.0.0.1": true, "::ffff:8.8.8.8": false, "::7f00:1": true, "64:ff9b::7f00:1": true, "64:ff9b::808:808": false,
		"64:ff9b::a9fe:a9fe": true, "2002:7f00:1::": true, "2002:a9fe:a9fe::1": true, "2002:808:808::": false,
	} {
		if got := Internal(netip.MustParseAddr(text)); got != want {
			t.Errorf("Internal(%s) = %v", text, got)
		}
	}
}

func TestNumeric(t *testing.T) {
	for host, want := range map[string]bool{
		"2130706433": true, "0x7f000001": true, "0177.0.0.1": true, "127.1": true, "0X7F.1": true, "x.0x": true,
		"example.cafe": false, "example.de": false, "r.ca": false, "10.example": false, "localhost": false, "a.0xg": false, "": false,
	} {
		if got := Numeric(host); got != want {
			t.Errorf("Numeric(%q) = %v", host, got)
		}
	}
}
