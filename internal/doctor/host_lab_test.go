// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"net/netip"
	"strings"
	"testing"
)

// lookAtHost examines the first host.
func (w *ward) lookAtHost(o HostOptions) func(t *testing.T) *Report {
	return func(t *testing.T) (r *Report) {
		t.Helper()
		if o.PathMTU = max(o.PathMTU, 1024); o.Timeout == 0 {
			o.Timeout, o.Retries, o.RNRRetry = 14, 7, 7
		}
		if err := w.Hosts[0].NS.Do(func() (err error) { r, err = Host(t.Context(), o); return err }); err != nil {
			t.Fatal(err)
		}
		return r
	}
}

// Each fault of a host is found, and its remedy ends it.
func TestFaultsOfAHost(t *testing.T) {
	w := newWard(t, "")
	const h1 = "at host 10.77.0.1"
	look := w.lookAtHost
	usual := HostOptions{Group: labGroup}
	if r := look(usual)(t); r.Errors > 0 || r.Warnings > 0 {
		t.Fatalf("findings without a fault: %+v", r.Findings)
	}
	if r := look(HostOptions{Group: netip.MustParseAddr("fd77::6c65:1")})(t); r.Errors > 0 {
		t.Fatalf("findings without a fault, by IPv6: %+v", r.Findings)
	}
	t.Run("nobody_answers", func(t *testing.T) {
		o := HostOptions{Group: netip.MustParseAddr("10.77.253.1")}
		found := findings(look(o)(t), "group-address", "nobody answers ARP requests for 10.77.253.1 at eth0")
		if len(found) != 1 || found[0].Cost == "" || found[0].Remedy == "" {
			t.Fatalf("%+v", found)
		}
	})
	named := HostOptions{Group: labGroup, Interface: "eth0"}
	for _, f := range []struct {
		fault
		o HostOptions
	}{
		{fault{name: "the interface is down", plant: "ip link set eth0 down", check: "interface", text: "eth0 is down", severity: Error}, HostOptions{Interface: "eth0"}},
		{fault{name: "the loopback is down", plant: "ip link set lo down", check: "loopback", text: "lo is down", severity: Error}, usual},
		{fault{name: "its MTU", plant: "ip link set eth0 mtu 1000", check: "mtu", text: "the MTU of eth0 is 1000; path MTU 1024 needs 1088", severity: Error}, usual},
		{fault{name: "no route", plant: "ip route del 10.77.0.0/16 dev eth0", check: "route", text: "there is no route to its address", severity: Error}, named},
		{fault{name: "another route", plant: "ip link add other type veth peer name other1; ip link set other up; ip link set other1 up; ip route replace 10.77.254.0/24 dev other", check: "route", text: "leads by other, not by eth0", severity: Error}, named},
		{fault{name: "the address is its own", plant: "ip address add 10.77.254.1/16 dev eth0", check: "route", text: "one of this host's own", severity: Error}, usual},
		{fault{name: "an entry by hand", plant: "ip neighbour replace 10.77.254.1 lladdr 02:00:00:00:00:99 dev eth0 nud permanent", check: "group-address", text: "entry by hand", severity: Warning}, usual},
		{fault{name: "GRO of UDP", plant: "ethtool -K eth0 rx-udp-gro-forwarding on", check: "offloads", text: "GRO of UDP packets is on", severity: Error}, usual},
		{fault{name: "GRO lists", plant: "ethtool -K eth0 rx-gro-list on", check: "offloads", text: "into lists is on", severity: Error}, usual},
	} {
		f.at = h1
		t.Run(strings.ReplaceAll(f.name, " ", "_"), func(t *testing.T) { w.find(t, f.fault, look(f.o)) })
	}
	t.Run("the_port's_MTU", func(t *testing.T) {
		w.find(t, fault{plant: "ip link set p1 mtu 1000", check: "path-mtu", text: "do not get to the switch and back", severity: Error, mends: "PORT=p1"}, look(usual))
	})
}
