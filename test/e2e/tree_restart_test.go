// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/host/endpoint"
	"github.com/gleam-rdma/gleam/lab"
	"github.com/gleam-rdma/gleam/lab/fabric"
)

// A transfer in a tree, in the middle of which something happens: to a switch, a link, or the
// members.

// disturbed sends a member's region again and again, while disturb runs once, in the middle of a
// round, and then for one round more. At each completion all receivers have the bytes. It
// returns the longest time between two completions since the disturbance began.
func (m *fabricMembers) disturbed(from int, disturb func() error) (gap time.Duration) {
	t := m.r.t
	t.Helper()
	mr, w := m.regions[from], m.groups[from].Info().Window
	var began, last time.Time
	ended := make(chan error, 1)
	after := 0 // rounds that have begun after the end of the disturbance
	for round := 0; after < 2; round++ {
		m.fillRound(from, round)
		messages := mr.Len() / treeMessage
		err := m.r.writeAll(m.groups[from].QP(), mr, w.Base, w.RKey, treeMessage, func(done int) {
			now := time.Now()
			if !began.IsZero() {
				gap = max(gap, now.Sub(last))
			}
			last = now
			for i, other := range m.regions {
				if n := done * treeMessage; !bytes.Equal(other.Bytes()[:n], mr.Bytes()[:n]) {
					t.Fatalf("round %d: %d messages are complete, and %s does not have their bytes", round, done, m.hosts[i].Name)
				}
			}
			if began.IsZero() && round == 1 && done == messages/3 {
				began = now
				go func() { ended <- disturb() }()
			}
		})
		if err != nil {
			t.Fatalf("round %d, %v after the disturbance began: %v\n%s", round, time.Since(began), err, m.r.describe(m.ip))
		}
		select {
		case err := <-ended:
			if err != nil {
				t.Fatal(err)
			}
			ended <- nil
			after++
		default:
		}
	}
	return gap
}

// fillRound puts other bytes into a member's region in each round.
func (m *fabricMembers) fillRound(from, round int) {
	b := m.regions[from].Bytes()
	for i := range b {
		b[i] = byte(i>>8) ^ byte(i*13) ^ byte(round*31+from+1)
	}
}

// restart ends the gleamd of a switch by a signal, and starts it again.
func (r *fabricRig) restart(name string, how syscall.Signal) error {
	g := r.gleamds[name]
	if how == syscall.SIGKILL {
		if err := g.Kill(); err != nil {
			return err
		}
		return g.Start(r.ctx)
	}
	return g.Restart(r.ctx)
}

// TestTreeGoesOnAfterRestarts: every switch of a tree is restarted during transfers, by SIGTERM
// and by kill -9: the leaf of the source, a leaf with receivers, the spine. All bytes arrive, none
// is complete before, and no queue pair is reset.
func TestTreeGoesOnAfterRestarts(t *testing.T) {
	r := newProcessRig(t, fabric.Config{Topology: fabric.LeafSpine(2, 1, 2)})
	m := r.join(r.fabricGroup(0), treeMemory, r.hosts...)
	m.mustSend(0, treeMessage)
	m.mustSend(3, treeMessage)
	for _, name := range []string{"l2", "s1", "l1"} {
		for _, how := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
			gap := m.disturbed(0, func() error { return r.restart(name, how) })
			t.Logf("%s, %v: longest time between two completions %v", name, how, gap)
			if gap > 10*time.Second {
				t.Errorf("the transfer has stood still for %v", gap)
			}
			m.mustSend(2, treeMessage) // another source finds its turn
		}
	}
	m.leave()
	for _, s := range r.fab.Switches {
		until(t, fmt.Sprintf("%s has forgotten the group", s.Name), func() bool {
			list, err := r.gleamds[s.Name].Client.Groups(r.ctx)
			return err == nil && len(list) == 0
		})
	}
}

// TestTreeMembersJoinAfterARestart: the switch of the source starts again during a transfer, with all
// receivers behind another switch. A host joins there in the same turn, and gets what follows.
func TestTreeMembersJoinAfterARestart(t *testing.T) {
	for _, how := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		t.Run(how.String(), func(t *testing.T) {
			r := newProcessRig(t, fabric.Config{Topology: twoSwitches(t)})
			m := r.join(r.fabricGroup(0), treeMemory, r.hosts[0], r.hosts[2], r.hosts[3])
			m.mustSend(0, treeMessage)
			gap := m.disturbed(0, func() error {
				if err := r.restart("l1", how); err != nil {
					return err
				}
				return m.add(r.hosts[1], treeMemory)
			})
			t.Logf("longest time between two completions %v", gap)
			if gap > 10*time.Second {
				t.Errorf("the transfer has stood still for %v", gap)
			}
			m.takeIn()
			m.mustSend(0, treeMessage)
			m.mustSend(3, treeMessage)
			m.leave()
		})
	}
}

// servedBy returns the spine whose switch has the group.
func (m *fabricMembers) servedBy(spines ...string) string {
	m.r.t.Helper()
	for _, name := range spines {
		if _, _, err := m.r.groupAt(name, m.ip); err == nil {
			return name
		}
	}
	m.r.t.Fatalf("no spine serves group %v", m.ip)
	return ""
}

// TestTreeGoesOnByAnotherSpine: the spine that carries a group fails in mid-transfer, and the
// transfer goes on by the other one. With its links down the kernel takes it out of the routes;
// one whose gleamd is killed is still in them, and is not used.
func TestTreeGoesOnByAnotherSpine(t *testing.T) {
	for name, fail := range map[string]func(r *fabricRig, spine string) error{
		"links down": func(r *fabricRig, spine string) error {
			return errors.Join(r.fab.SetLink("l1", spine, false), r.fab.SetLink("l2", spine, false))
		},
		"gleamd killed": func(r *fabricRig, spine string) error { return r.gleamds[spine].Kill() },
	} {
		t.Run(name, func(t *testing.T) {
			r := newProcessRig(t, fabric.Config{Topology: fabric.LeafSpine(2, 2, 2)})
			m := r.join(r.fabricGroup(0), treeMemory, r.hosts...)
			m.mustSend(0, treeMessage)
			spine := m.servedBy("s1", "s2")
			gap := m.disturbed(0, func() error { return fail(r, spine) })
			t.Logf("longest time between two completions %v", gap)
			if now := m.servedBy("s2", "s1"); now == spine {
				t.Errorf("the group is served by %s, which has failed", spine)
			}
			m.mustSend(2, treeMessage)
			m.leave()
		})
	}
}

// add lets a host join the group, from the next message on.
func (m *fabricMembers) add(h *fabricHost, memory int) error {
	r := m.r
	x, err := h.with(memory, 0x7100_0000_0000)
	if err != nil {
		return err
	}
	ln, err := lab.In(h.NS, func() (net.Listener, error) { return net.Listen("tcp", netip.AddrPortFrom(h.IP, 0).String()) })
	if err != nil {
		return err
	}
	defer ln.Close()
	joined := make(chan error, 1)
	var g *endpoint.Group
	go func() {
		joined <- h.NS.Do(func() (err error) {
			g, err = endpoint.Member(r.ctx, endpoint.MemberConfig{Listener: ln, Local: x.Local()})
			return err
		})
	}()
	err = m.hosts[0].NS.Do(func() error { return m.groups[0].Add(r.ctx, ln.Addr().String()) })
	if err := errors.Join(err, <-joined); err != nil {
		return err
	}
	m.joined = append(m.joined, fabricJoiner{h, g, x.Memory})
	return nil
}

// takeIn makes those that have joined members like the others.
func (m *fabricMembers) takeIn() {
	for _, j := range m.joined {
		m.hosts, m.groups, m.regions = append(m.hosts, j.host), append(m.groups, j.group), append(m.regions, j.region)
	}
	m.joined = nil
}

// TestTreeMembersComeAndGo: during a transfer a host joins at a leaf that has had no part in the
// group, and later the last member of a leaf leaves. Data goes to the leaf then, and no more to the
// other one, until a host joins there again. The source and its receivers are not affected.
func TestTreeMembersComeAndGo(t *testing.T) {
	r := newFabricRig(t, fabric.Config{Topology: fabric.LeafSpine(3, 2, 2)}, "", false)
	h := r.hosts // two at each leaf
	m := r.join(r.fabricGroup(0), treeMemory, h[0], h[1], h[2])
	m.mustSend(0, treeMessage)
	gap := m.disturbed(0, func() error { return m.add(h[4], treeMemory) })
	t.Logf("a host joins: longest time between two completions %v", gap)
	m.takeIn()
	m.mustSend(0, treeMessage)
	m.mustSend(3, treeMessage)
	m.mustSend(2, treeMessage)
	last := m.groups[2]
	m.hosts, m.groups, m.regions = slices.Delete(m.hosts, 2, 3), slices.Delete(m.groups, 2, 3), slices.Delete(m.regions, 2, 3)
	gap = m.disturbed(0, func() error {
		return m.hosts[0].NS.Do(func() error { return m.groups[0].Remove(r.ctx, h[2].IP) })
	})
	t.Logf("a host leaves: longest time between two completions %v", gap)
	last.Close()
	m.mustSend(2, treeMessage)
	before := r.carried()
	m.mustSend(0, treeMessage)
	c := r.carried().since(before)
	for _, spine := range []string{"s1", "s2"} {
		if n := c[[2]string{spine, "l2"}].GroupData.Frames; n > 0 {
			t.Errorf("%d frames with data go from %s to the leaf without members", n, spine)
		}
	}
	gap = m.disturbed(0, func() error { return m.add(h[3], treeMemory) })
	t.Logf("a host joins at the leaf that had none: longest time between two completions %v", gap)
	m.takeIn()
	m.mustSend(0, treeMessage)
	m.mustSend(3, treeMessage)
	m.mustSend(2, treeMessage)
	m.leave()
}

// TestTreeTwoSourcesAndAFailure: two members send in turn, each many messages, while the spine
// fails under them.
func TestTreeTwoSourcesAndAFailure(t *testing.T) {
	r := newProcessRig(t, fabric.Config{Topology: fabric.LeafSpine(2, 2, 2)})
	m := r.join(r.fabricGroup(0), treeMemory, r.hosts...)
	m.mustSend(0, treeMessage)
	m.mustSend(2, treeMessage)
	spine := m.servedBy("s1", "s2")
	// Each of the two writes half of the window.
	half := treeMemory / 2
	m.fill(0)
	ended := make(chan error, 2)
	disturb := make(chan struct{})
	for k, from := range []int{0, 2} {
		go func() {
			w := m.groups[from].Info().Window
			mr := m.regions[from]
			ended <- r.writePart(m.groups[from].QP(), mr, k*half, half, w.Base, w.RKey, treeMessage, func(done int) {
				if k == 0 && done == 4 {
					close(disturb)
				}
			})
		}()
	}
	<-disturb
	if err := r.gleamds[spine].Kill(); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	for range 2 {
		if err := <-ended; err != nil {
			t.Fatalf("%v\n%s", err, r.describe(m.ip))
		}
	}
	t.Logf("both are complete %v after the failure", time.Since(begin))
	for i, mr := range m.regions {
		if b := mr.Bytes(); !bytes.Equal(b[:half], m.regions[0].Bytes()[:half]) || !bytes.Equal(b[half:], m.regions[2].Bytes()[half:]) {
			t.Errorf("%s has other bytes", m.hosts[i].Name)
		}
	}
	m.leave()
}
