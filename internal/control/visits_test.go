// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"bufio"
	"bytes"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/internal/control/locate"
	"github.com/gleam-rdma/gleam/rocev2"
	"github.com/gleam-rdma/gleam/test/labtest"
)

// visitedPackages are those whose blocks of code TestNothingWalksAllGroups counts. The two of the library are
// loops that others call.
const visitedPackages = "github.com/gleam-rdma/gleam/internal/control/...,github.com/gleam-rdma/gleam/envelope,github.com/gleam-rdma/gleam/mcast,github.com/gleam-rdma/gleam/dataplane,slices,maps"

// TestNothingWalksAllGroups: 1,000 events make no block of code run as often more with 10,000 groups, than with 1,000,
// as five walks of all groups would. The events are packets of data and ACKs, registrations, Renews, neighbours'
// changes and ends of groups. The counters are those of go test -cover, in a program that the test builds.
func TestNothingWalksAllGroups(t *testing.T) {
	if of := os.Getenv("GLEAM_VISITS"); of != "" {
		var groups, events int
		if _, err := fmt.Sscan(of, &groups, &events); err != nil {
			t.Fatal(err)
		}
		visit(t, groups, events)
		return
	}
	labtest.Part(t, "timing")
	program := filepath.Join(t.TempDir(), "covered")
	build := exec.Command("go", "test", "-c", "-covermode=atomic", "-coverpkg="+visitedPackages, "-o", program, ".")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	const few, many, events = 1000, 10_000, 200
	at := map[int]map[string]int{few: {}, many: {}}
	for groups, visits := range at {
		for block, n := range visitsOf(t, program, groups, events) {
			visits[block] += n
		}
		for block, n := range visitsOf(t, program, groups, 0) {
			visits[block] -= n
		}
	}
	most := ""
	for block, n := range at[many] {
		if more := n - at[few][block]; most == "" || more > at[many][most]-at[few][most] {
			most = block
		}
		if n-at[few][block] > 5*(many-few) {
			t.Errorf("%s: %d visits for %d events of each kind with %d groups, %d with %d", block, at[few][block], events, few, n, many)
		}
	}
	t.Logf("the block with most visits more, %s: %d with %d groups, %d with %d, for %d events of each kind", most, at[few][most], few, at[many][most], many, events)
}

// visitsOf returns how often each block ran in a program in which groups are made and events happen.
func visitsOf(t *testing.T, program string, groups, events int) map[string]int {
	profile := program + ".profile"
	c := exec.Command(program, "-test.run", "^TestNothingWalksAllGroups$", "-test.coverprofile", profile)
	c.Env = append(os.Environ(), fmt.Sprintf("GLEAM_VISITS=%d %d", groups, events))
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%d groups: %v\n%s", groups, err, out)
	}
	text, err := os.ReadFile(profile)
	if err != nil {
		t.Fatal(err)
	}
	visits := make(map[string]int)
	for s := bufio.NewScanner(bytes.NewReader(text)); s.Scan(); {
		block, counts, ok := strings.Cut(s.Text(), " ")
		var statements, n int
		if _, err := fmt.Sscan(counts, &statements, &n); ok && err == nil {
			visits[block] += n
		}
	}
	if len(visits) < 1000 {
		t.Fatalf("the profile has %d blocks", len(visits))
	}
	return visits
}

// visit registers groups, and then feeds the switch that number of events of each kind.
func visit(t *testing.T, groups, events int) {
	const hosts = 5
	f := newFakeSwitchWith(t, hosts, 1, "group_prefixes: [10.78.0.0/16, 10.77.254.0/24]\nlimits: {groups: 65536}\npsn_probe: 0s\nstate: "+t.TempDir()+"\nenvelope: {insecure: true}\n")
	f.control.do(func() {
		f.control.dir.hosts.FollowKernel(true)
		f.know(hosts)
	})
	f.registerMany(0, groups, 4)
	f.register(0, 3, 0x800100, api.PolicyStrict)
	if err := f.Register(&api.Register{Group: fakeGroup(1), QPN: 0x4711, PMTU: 1024, Policy: api.PolicyStrict, Members: []api.RegisterMember{f.record(3, 0x800200), f.record(4, 0x800200)}}); err != nil {
		t.Fatal(err)
	}
	f.registerMany(groups, events, 4)
	f.control.do(func() { *f.control.departures.announcer = *newAnnouncer() }) // how many of them leave meanwhile is a matter of time
	for n := range events {
		head := envelope.Header{Epoch: 1, Transaction: 2, Total: 1, Group: manyGroup(n), ReplyTo: netip.AddrPortFrom(fakeHost(0), 4797)}
		head.Instance, head.Epoch = f.challenge(head, &envelope.Renew{})
		f.give(head, &envelope.Renew{}, func() { f.left = nil })
		f.feed(0, send(0, rocev2.PSN(n)), answer(1, 1000+rocev2.PSN(n), rocev2.SyndromeACK), answer(2, 2000+rocev2.PSN(n), rocev2.SyndromeACK))
	}
	for n := range events / 20 { // the changes of a second are looked at together
		f.locator.set(4, 5, byte(0x80+n), nil)
		was := f.locator.questions(hosts)[4]
		f.changes.Neighbour(fakeHost(4), locate.Neighbour{MAC: locate.MAC(f.locator.place(fakeHost(4)).MAC), Usable: true})
		f.eventually("the neighbour is looked up", func() bool { return f.locator.questions(hosts)[4] > was })
	}
	for n := range events {
		if err := f.Delete(manyGroup(groups + n)); err != nil {
			t.Error(err)
		}
	}
	f.stop()
}
