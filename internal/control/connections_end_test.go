// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/envelope/cm"
	"github.com/gleam-rdma/gleam/internal/control/statefile"
	"github.com/gleam-rdma/gleam/rocev2"
)

// A dialled group whose registration was refused once can be deleted, and its address is free then:
// for a group that members connect to, for one by hand, and that one is kept over a restart.
func TestRefusedSessionIsForgotten(t *testing.T) {
	f := newFakeSwitchWith(t, 4, 1, "state: "+t.TempDir()+"\n")
	other := f.register(5, 2, 0x100, api.PolicyStrict) // has the dialler's queue pair already
	if err := f.CreateGroup(dialled(0, 2, 1)); err != nil {
		t.Fatal(err)
	}
	f.request(0, 0, 0, rocev2.QPN(other.Members[0].QPN))
	f.answerREQs(0, 2, 0x200)
	f.eventually("the registration is refused", func() bool { return len(f.events(0, api.EventRejected)) > 0 })
	if err := f.Delete(fakeGroup(0)); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		err := f.CreateGroup(f.create(0, 3))
		if err == nil {
			break
		}
		t.Errorf("created again after its end: %v", err)
		if err := f.Delete(fakeGroup(0)); err != nil {
			t.Errorf("and deleted, as that says: %v", err)
		}
	}
	f.control.do(func() {
		if len(f.control.connections.groups) == 0 && len(f.control.connections.reserved) > 0 {
			t.Errorf("no group is left that members connect to, and reserved are %v", f.control.connections.reserved)
		}
		if f.control.dir.isSession(fakeGroup(0)) {
			t.Error("no session is left, and the directory has one")
		}
	})
	f.end()
}

// sessionTest is a switch with a group that members connect to, and the REQs that it has sent.
type sessionTest struct {
	*fakeSwitch
	dir   string
	qpn   rocev2.QPN // the QPN of the next connection
	first rocev2.QPN // the QPN of host 0's connection
}

// connected has all connect to a group of a dialler and two listeners, or of three members, until the given
// stage: 0 nobody has, 1 one has, 2 the kernel is asked where the members are, 3 the group is registered. With
// refused the first one's queue pair is in another group, and the registration is refused.
func (s *sessionTest) connected(dials, refused bool, stage int) {
	s.t.Helper()
	s.qpn += 0x100
	s.first = s.qpn
	if refused {
		s.first = 0x7f0
	}
	if stage == 0 {
		return
	}
	s.request(0, 0, 0, s.first)
	s.eventually("the first one has connected", func() (some bool) {
		s.control.do(func() { some = s.control.connections.manager.IsConnected(fakeHost(0)) })
		return some
	})
	if stage == 1 {
		return
	}
	if stage == 2 {
		s.stick()
	}
	if !dials {
		s.request(1, 1, 0, s.qpn+1)
		s.request(2, 2, 0, s.qpn+2)
	}
	if refused {
		s.eventually("the registration is refused, which ends the connection", func() (ended bool) {
			s.listen()
			s.control.do(func() { ended = !s.control.connections.manager.IsConnected(fakeHost(0)) })
			return ended
		})
		return
	}
	if stage == 2 {
		s.eventually("the registration waits, or was faster", func() (waits bool) {
			s.listen()
			s.control.do(func() {
				waits = s.control.dir.pending[fakeGroup(0)] != nil || s.control.dir.groups[fakeGroup(0)] != nil
			})
			return waits
		})
	}
	if stage == 3 {
		s.eventually("the group is registered", func() bool { s.listen(); return len(s.members(0)) == 3 })
	}
}

// listen has the listeners answer the REQs that have left.
func (s *sessionTest) listen() {
	for _, m := range s.sent(cm.ConnectRequest) {
		for i := range 3 {
			if fakeHost(i) == m.Request.Dst {
				s.deliver(i, 0, &cm.Message{Attribute: cm.ConnectReply, TID: m.TID, LocalID: cm.CommID(i), RemoteID: m.LocalID, Reply: cm.Reply{QPN: s.qpn + rocev2.QPN(0x10+i), PSN: 5, GUID: cm.GUID(i)}})
			}
		}
	}
}

// stick has the kernel give no answer about host 0 any more, so that a registration with it waits.
func (s *sessionTest) stick() {
	s.control.do(func() {
		s.know(3)
		s.control.dir.hosts.Of(fakeHost(0)).DropAnswer()
	})
	s.locator.mu.Lock()
	defer s.locator.mu.Unlock()
	s.locator.stuck = make(chan struct{})
}

// unstick has the kernel answer again.
func (s *sessionTest) unstick() {
	s.locator.mu.Lock()
	defer s.locator.mu.Unlock()
	if s.locator.stuck != nil {
		close(s.locator.stuck)
		s.locator.stuck = nil
	}
}

// ends are the ways in which a session, or all of a group, may end. None of them waits until it has.
var ends = map[string]func(s *sessionTest, dials bool){
	"deleted": func(s *sessionTest, _ bool) { _ = s.Delete(fakeGroup(0)) },
	"deleted twice": func(s *sessionTest, _ bool) {
		_ = s.Delete(fakeGroup(0))
		var e *api.Error
		if err := s.Delete(fakeGroup(0)); !errors.As(err, &e) || e.Reason != api.ReasonUnknownGroup {
			s.t.Errorf("deleted twice: %v", err)
		}
	},
	"restart": func(s *sessionTest, _ bool) {
		s.unstick()
		s.fakeSwitch = s.restart(5, s.dir)
	},
	"the host says that it has given up": func(s *sessionTest, _ bool) {
		s.deliver(0, 0, &cm.Message{Attribute: cm.ConnectReject, TID: 1, LocalID: cm.CommID(s.first), Reject: cm.Reject{Of: cm.RejectedOther, Reason: cm.TimedOut, ARI: make([]byte, 8)}})
	},
	"all members are removed": func(s *sessionTest, _ bool) {
		for i := range 3 {
			_ = s.RemoveMember(fakeGroup(0), fakeHost(i))
		}
	},
	"a listener rejects": func(s *sessionTest, _ bool) {
		for _, m := range s.sent(cm.ConnectRequest) {
			for i := range 3 {
				if fakeHost(i) == m.Request.Dst {
					s.deliver(i, 0, &cm.Message{Attribute: cm.ConnectReject, TID: m.TID, LocalID: 9, RemoteID: m.LocalID, Reject: cm.Reject{Of: cm.RejectedREQ, Reason: cm.ConsumerReject}})
				}
			}
		}
	},
	"the next one": func(s *sessionTest, dials bool) { s.request(0, 0, 0, s.qpn+0x40) },
	"it waits in vain": func(s *sessionTest, _ bool) {
		s.control.do(func() {
			x := &s.control.connections
			if at, ok := x.manager.NextDeadline(); ok {
				x.manager.Advance(at, &x.out)
				s.control.sendConnections()
			}
		})
	},
}

// Whatever ends a session, at whatever stage, and in whatever order: with the group nothing of it is left, and its
// addresses are free at once for every kind of group.
func TestSessionHasOneEnd(t *testing.T) {
	for seed := range uint64(24) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			s := &sessionTest{dir: t.TempDir()}
			s.fakeSwitch = newFakeSwitchWith(t, 5, 1, "state: "+s.dir+"\n")
			s.register(5, 2, 0x7f0, api.PolicyStrict) // has a queue pair that a member may come with
			r := rand.New(rand.NewPCG(seed, 3))
			for range 3 {
				s.endAtRandom(r)
			}
			s.end()
		})
	}
}

// endAtRandom makes a group, ends what there is of it in some ways, and deletes it.
func (s *sessionTest) endAtRandom(r *rand.Rand) {
	names := slices.Sorted(maps.Keys(ends))
	var path []string
	for range r.IntN(4) {
		path = append(path, names[r.IntN(len(names))])
	}
	s.endBy(r.IntN(2) == 0, r.IntN(3) == 0, r.IntN(4), path)
}

// endBy is one life of a group: made, ended in the ways of path, and deleted.
func (s *sessionTest) endBy(dials, refused bool, stage int, path []string) {
	s.t.Helper()
	what := []string{map[bool]string{true: "dialled", false: "all connect"}[dials], []string{"created", "one has connected", "being located", "registered"}[stage]}
	g := s.create(0, 3)
	if dials {
		g = dialled(0, 2, 2)
	}
	if err := s.CreateGroup(g); err != nil {
		s.t.Fatal(err)
	}
	if refused {
		what = append(what, "refused")
	}
	s.connected(dials, refused, stage)
	for _, name := range path {
		ends[name](s, dials)
	}
	_ = s.Delete(fakeGroup(0))
	s.unstick()
	s.free(strings.Join(append(what, path...), ", "))
}

// TestModelOfSessions is TestSessionHasOneEnd of every stage, with GLEAM_MODEL=quick in every way that ends
// a session, with full in every two of them one after the other.
func TestModelOfSessions(t *testing.T) {
	names := slices.Sorted(maps.Keys(ends))
	paths := [][]string{nil}
	switch os.Getenv("GLEAM_MODEL") {
	case "full":
		for _, first := range names {
			for _, second := range names {
				paths = append(paths, []string{first, second})
			}
		}
		fallthrough
	case "quick":
		for _, name := range names {
			paths = append(paths, []string{name})
		}
	}
	for _, path := range paths {
		t.Run(strings.Join(path, ", then "), func(t *testing.T) {
			t.Parallel() // each waits for its disk
			s := &sessionTest{dir: t.TempDir()}
			s.fakeSwitch = newFakeSwitchWith(t, 5, 1, "state: "+s.dir+"\n")
			s.register(5, 2, 0x7f0, api.PolicyStrict)
			for life := range 16 {
				s.endBy(life&1 != 0, life&2 != 0, life>>2, path)
			}
			s.end()
		})
	}
}

// free checks that nothing is left of the group, and that its addresses can be used for groups of each kind.
func (s *sessionTest) free(path string) {
	s.t.Helper()
	s.control.do(func() {
		c := s.control
		x := &c.connections
		if len(x.groups)+len(x.reserved)+len(x.outcomes)+len(x.byREQ) > 0 {
			s.t.Errorf("%s: left are %d groups, %d addresses, %d outcomes", path, len(x.groups), len(x.reserved), len(x.outcomes))
		}
		for n := range 2 {
			_, registered := c.registrar.Key(fakeGroup(n))
			_, waits := x.manager.Status(fakeGroup(n))
			if registered || waits || c.dir.groups[fakeGroup(n)] != nil || c.dir.isSession(fakeGroup(n)) {
				s.t.Errorf("%s: group %d: registered %v, members connect %v", path, n, registered, waits)
			}
		}
	})
	if n := s.kept(); n > 0 {
		s.t.Errorf("%s: the state file has %d groups that members connect to", path, n)
	}
	for n := range 2 {
		if err := s.CreateGroup(s.create(n, 3)); err != nil {
			s.t.Errorf("%s: created again: %v", path, err)
		}
		if err := s.Delete(fakeGroup(n)); err != nil {
			s.t.Errorf("%s: deleted again: %v", path, err)
		}
		byHand := &api.Register{Group: fakeGroup(n), QPN: api.DefaultQPN, PMTU: 1024, Policy: api.PolicyStrict, Members: []api.RegisterMember{s.record(3, 0x500), s.record(4, 0x501)}}
		if err := s.Register(byHand); err != nil {
			s.t.Errorf("%s: registered by hand: %v", path, err)
		}
		if err := s.Delete(fakeGroup(n)); err != nil {
			s.t.Errorf("%s: deleted: %v", path, err)
		}
	}
}

// kept returns the number of groups that members connect to in the state file.
func (s *sessionTest) kept() (n int) {
	s.eventually("all is durable", func() bool { return !s.waits() })
	copied := filepath.Join(s.t.TempDir(), "groups")
	b, err := os.ReadFile(filepath.Join(s.dir, "groups"))
	if err == nil {
		err = os.WriteFile(copied, b, 0o600)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	file, found, err := statefile.Open(copied, statefile.Options{Owner: os.Getuid()})
	if err != nil {
		s.t.Fatal(err)
	}
	defer file.Close()
	return len(found.State.Created)
}

// A master cannot register the address of a group that members connect to.
func TestMasterTakesNoConnectedGroup(t *testing.T) {
	f := newFakeSwitch(t, 3, 1)
	if err := f.CreateGroup(f.create(0, 2)); err != nil {
		t.Fatal(err)
	}
	f.enroll(0, 2, 0x300)
	f.eventually("it is refused", func() bool {
		es := f.events(0, api.EventRejected)
		return len(es) == 1 && strings.Contains(es[0].Reason, "not allowed")
	})
	f.request(0, 0, 0, 0x100)
	f.request(1, 1, 0, 0x101)
	f.eventually("the group is registered", func() bool { return f.members(0)[netip.Addr(fakeHost(1))] == 0x101 })
}

// A host that had connections alone is where it was pinned after a restart, whatever the kernel's tables have
// been made to say: so it hears that its connection has ended.
func TestConnectedHostsPlaceAfterRestart(t *testing.T) {
	dir := t.TempDir()
	f := newBridgedSwitch(t, 5, "state: "+dir+"\n")
	if err := f.CreateGroup(dialled(0, 2, 1)); err != nil {
		t.Fatal(err)
	}
	f.request(0, 0, 0, 0x100)
	f.answerREQs(0, 2, 0x200)
	f.eventually("the group is registered", func() bool { return len(f.members(0)) == 3 })
	f.eventually("all is durable", func() bool { return !f.waits() })
	f.end()
	f = newFakeSwitchWith(t, 5, 1, "state: "+dir+"\n", bridgePorts(5), func(f *fakeSwitch) { f.spoof(0, 4, 66) })
	f.looked(0)
	f.control.do(func() {
		if h := f.control.dir.hosts.Of(fakeHost(0)); h.At().Ifindex != 1 || h.Pinned().Ifindex != 1 {
			t.Errorf("the host is at %+v, and pinned at %+v", h.At(), h.Pinned())
		}
	})
	f.end()
}
