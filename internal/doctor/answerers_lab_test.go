// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"bytes"
	"net/netip"
	"strings"
	"testing"

	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/lab"
)

// Whoever answers for a group beside the switch is named with both MAC addresses, and what he
// answers as; the remedy ends it. The hosts are behind one port, as behind an access switch.
func TestStrangersAnswer(t *testing.T) {
	w := newWardOf(t, lab.StarConfig{Hosts: 3, Rack: 3}, "")
	const h2 = "at host 10.77.0.2"
	w.sh(t, h2, "ip link add v0 type veth peer name v1; ip link set v0 up; ip link set v1 up")
	port, stranger := w.mac(t, w.Switch, w.Ports[0]), w.Hosts[1].MAC.String()
	w.sh(t, "at host 10.77.0.1", "ip neighbour replace 10.77.0.2 lladdr "+stranger+" dev eth0 nud permanent")
	group6, elsewhere := netip.MustParseAddr("fd77::6c65:1"), netip.MustParseAddr("10.77.253.1")
	for _, c := range []struct {
		name  string
		group netip.Addr
		plant string
		text  string
		mends string
	}{
		{"the address of another host", labGroup, "ip address add 10.77.254.1/16 dev eth0", "answers as its own address", "16"},
		{"proxy ARP", labGroup, "ip route add 10.77.254.0/24 dev v0; sysctl -qw net.ipv4.conf.eth0.proxy_arp=1 net.ipv4.ip_forward=1 net.ipv4.neigh.eth0.proxy_delay=0", "answers for another host (proxy ARP)", ""},
		{"the IPv6 address of another host", group6, "ip address add fd77::6c65:1/64 dev eth0 nodad", "answers as its own address", "64"},
		{"proxy neighbour discovery", group6, "ip route add fd77::6c65:0/112 dev v0; sysctl -qw net.ipv6.conf.all.forwarding=1 net.ipv6.conf.eth0.proxy_ndp=1 net.ipv6.neigh.eth0.proxy_delay=0; ip neighbour add proxy fd77::6c65:1 dev eth0", "answers for another host (proxy neighbour discovery)", ""},
	} {
		t.Run(strings.ReplaceAll(c.name, " ", "_"), func(t *testing.T) {
			look := w.lookAtHost(HostOptions{Group: c.group})
			if r := look(t); r.Errors > 0 {
				t.Fatalf("before the fault there is: %+v", r.Findings)
			}
			w.sh(t, h2, c.plant)
			r := look(t)
			checked(t, r)
			found := findings(r, "group-address", c.text)
			if len(found) != 1 || found[0].Severity != Error || found[0].At != "at the host with MAC address "+stranger {
				t.Fatalf("%+v", r.Findings)
			}
			for _, want := range []string{port + " (the switch, as it says)", stranger + " (10.77.0.2), which is not the switch"} {
				if !strings.Contains(found[0].Text, want) {
					t.Errorf("it does not say %q: %s", want, found[0].Text)
				}
			}
			w.sh(t, h2, strings.NewReplacer("INTERFACE", "eth0", "LENGTH", c.mends).Replace(found[0].Command))
			remedied(t, look, "group-address", c.text)
			_, flush, _ := strings.Cut(found[0].Remedy, "then here: ")
			flush, _, _ = strings.Cut(flush, ". ")
			w.sh(t, "at host 10.77.0.1", flush)
			if r := look(t); r.Errors > 0 {
				t.Errorf("after the remedy there is: %+v", r.Findings)
			}
		})
	}
	t.Run("nobody_but_a_host", func(t *testing.T) {
		w.sh(t, h2, "ip address add 10.77.253.1/16 dev eth0")
		r := w.lookAtHost(HostOptions{Group: elsewhere})(t)
		if found := findings(r, "group-address", "and does not prove that it is the switch: either it is another host"); len(found) != 1 || !strings.Contains(found[0].Text, stranger) {
			t.Errorf("%+v", r.Findings)
		}
	})
	t.Run("the_neighbour_table", func(t *testing.T) {
		w.find(t, fault{
			at: "at host 10.77.0.1", plant: "ip neighbour replace 10.77.254.1 lladdr " + stranger + " dev eth0 nud reachable",
			check: "group-address", text: "the neighbour table has 10.77.254.1 at " + stranger + ", and its MAC address is " + port, severity: Error,
		}, w.lookAtHost(HostOptions{Group: labGroup}))
	})
}

// mac is the MAC address of an interface.
func (w *ward) mac(t *testing.T, ns *lab.Namespace, name string) string {
	t.Helper()
	link, err := ns.Handle().LinkByName(name)
	if err != nil {
		t.Fatal(err)
	}
	return link.Attrs().HardwareAddr.String()
}

// A switch proves itself by the group's key; another key, and none, prove nothing.
func TestSwitchProvesItself(t *testing.T) {
	w := newWard(t, "")
	look := func(key []byte) *Report {
		o := HostOptions{Group: labGroup}
		if key != nil {
			o.Auth = envelope.Auth{Keys: envelope.Keys{1: key}, Send: 1}
		}
		r := w.lookAtHost(o)(t)
		checked(t, r)
		return r
	}
	if r := look(w.key); r.Errors > 0 || r.result("switch-key").State != OK {
		t.Errorf("with the key: %+v, %+v", r.result("switch-key"), r.Findings)
	}
	if r := look(nil); r.Errors > 0 || r.result("switch-key").State != Skipped || !strings.Contains(r.result("switch-key").Reason, "nothing proves it") {
		t.Errorf("without a key: %+v, %+v", r.result("switch-key"), r.Findings)
	}
	if r := look(bytes.Repeat([]byte{1, 2, 3, 4, 5, 6, 7, 8}, 4)); len(findings(r, "switch-key", "")) != 1 || r.result("group-address").State != OK {
		t.Errorf("with another key: %+v", r.Findings)
	}
}
