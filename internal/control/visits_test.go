// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"net/netip"
	"runtime/debug"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/internal/control/locate"
	"github.com/gleam-rdma/gleam/rocev2"
	"github.com/gleam-rdma/gleam/test/labtest"
)

// TestNothingWalksAllGroups: the CPU time of a packet, a registration, a Renew, a neighbour's change, a group's end and
// the mere passing of time is about the same with 40 times the groups.
func TestNothingWalksAllGroups(t *testing.T) {
	labtest.Part(t, "timing")
	const few, many, hosts, rounds, batch = 500, 20_000, 5, 6, 20
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // a collection takes time by the memory in use
	var names []string
	least := map[string][2]time.Duration{}
	for i, groups := range []int{few, many} {
		f := newFakeSwitchWith(t, hosts, 1, "group_prefixes: [10.78.0.0/16, 10.77.254.0/24]\nlimits: {groups: 65536}\npsn_probe: 0s\nstate: "+t.TempDir()+"\nenvelope: {insecure: true}\n")
		f.control.do(func() {
			f.control.dir.hosts.FollowKernel(true)
			f.know(hosts)
		})
		f.registerMany(0, groups, 4)
		f.register(0, 3, 0x800100, api.PolicyStrict) // host 4 is a member of no group
		// What is to be announced is spread over time.
		quiet := func() { f.control.do(func() { *f.control.departures.announcer = *newAnnouncer() }) }
		quiet()
		at, psn, transaction := groups, rocev2.PSN(0), uint32(1)
		measure := func(name string, events func()) {
			if i == 0 {
				names = append(names, name)
			}
			for range rounds {
				begin := cpuTime(t)
				events()
				time.Sleep(50 * time.Millisecond) // the time of work that events leave to later turns of the loop
				took, l := cpuTime(t)-begin, least[name]
				if l[i] == 0 || took < l[i] {
					l[i] = took
				}
				least[name] = l
			}
			quiet()
		}
		measure("time", func() { time.Sleep(100 * time.Millisecond) })
		measure("registrations", func() {
			f.registerMany(at, batch, 4)
			at += batch
		})
		measure("Renews", func() {
			transaction++
			for n := range batch {
				head := envelope.Header{Epoch: 1, Transaction: transaction, Total: 1, Group: manyGroup(n), ReplyTo: netip.AddrPortFrom(fakeHost(0), 4797)}
				head.Instance, head.Epoch = f.challenge(head, &envelope.Renew{})
				f.give(head, &envelope.Renew{}, func() { f.left = nil })
			}
		})
		measure("data and ACKs", func() {
			for range batch {
				f.feed(0, send(0, psn), answer(1, 1000+psn, rocev2.SyndromeACK), answer(2, 2000+psn, rocev2.SyndromeACK))
				psn++
			}
		})
		measure("neighbours", func() {
			for n := range batch {
				f.locator.set(4, 5, byte(0x70+n), nil)
				f.changes.Neighbour(fakeHost(4), locate.Neighbour{})
				time.Sleep(time.Millisecond)
			}
		})
		measure("ends of groups", func() {
			for range batch {
				at--
				if err := f.Delete(manyGroup(at)); err != nil {
					t.Error(err)
				}
			}
		})
		f.stop()
	}
	for _, name := range names {
		l := least[name]
		t.Logf("%s: %v with %d groups, %v with %d", name, l[0], few, l[1], many)
		if l[1] > 2*l[0]+batch*(many-few)*time.Nanosecond {
			t.Errorf("%s take %v with %d groups, %v with %d", name, l[0], few, l[1], many)
		}
	}
}
