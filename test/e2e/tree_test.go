// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/host/endpoint"
	"github.com/gleam-rdma/gleam/host/endpoint/session"
	"github.com/gleam-rdma/gleam/lab/fabric"
	"github.com/gleam-rdma/gleam/test/labtest"
)

const (
	treeMemory  = 1 << 20
	treeMessage = 32 << 10
	treePackets = treeMemory / 1024
)

// twoSwitches are two switches with two hosts each.
func twoSwitches(t *testing.T) *fabric.Topology {
	t.Helper()
	top, err := fabric.Parse([]byte(`
switches: [l1, l2]
hosts: [h1, h2, h3, h4]
links:
  - {a: l1, b: l2}
  - {a: l1, b: h1}
  - {a: l1, b: h2}
  - {a: l2, b: h3}
  - {a: l2, b: h4}
`))
	if err != nil {
		t.Fatal(err)
	}
	return top
}

// carries checks the traffic of one transfer without losses: each link has each packet at
// most once, and the smallest tree of that many links is used.
func (r *fabricRig) carries(t *testing.T, c carried, links int) {
	t.Helper()
	all, most := r.inner(c)
	if most > treePackets+treePackets/100 { // the source may have sent a packet again
		t.Errorf("a link between switches carries %d frames with data of %d packets", most, treePackets)
	}
	if want := float64(links * treePackets); float64(all) < want || float64(all) > 1.02*want {
		t.Errorf("links between switches carry %d frames with data, want %.0f", all, want)
	}
}

// TestTreeOfTwoSwitches: members of two switches are a group, over IPv4 and IPv6; and when it
// has ended, no switch has any of it.
func TestTreeOfTwoSwitches(t *testing.T) {
	for name, v6 := range map[string]bool{"IPv4": false, "IPv6": true} {
		t.Run(name, func(t *testing.T) {
			r := newFabricRig(t, fabric.Config{Topology: twoSwitches(t)}, patient, v6)
			begin := time.Now()
			m := r.join(r.fabricGroup(0), treeMemory, r.hosts...)
			t.Logf("registered after %v", time.Since(begin))
			before := r.carried()
			m.mustSend(0, treeMessage)
			r.carries(t, r.carried().since(before), 1)
			m.leave()
			until(t, "no switch has the group", func() bool {
				for _, e := range r.engines {
					if list, err := e.Groups(nil); err != nil || len(list) > 0 {
						return false
					}
				}
				return true
			})
		})
	}
}

// TestTreeSources: every member is the source, one after the other, without any action at the
// hosts, wherever in the tree it is.
func TestTreeSources(t *testing.T) {
	r := newFabricRig(t, fabric.Config{Topology: fabric.LeafSpine(3, 1, 2)}, "", false)
	m := r.join(r.fabricGroup(0), treeMemory/8, r.hosts...)
	for _, from := range []int{0, 2, 1, 4, 5, 3, 0} {
		m.mustSend(from, treeMessage/4)
	}
	m.leave()
}

// TestTreeOfLeafSpine: groups of 12 and of 4 members at four leaves, with static routes and with
// those of BGP, use one spine and each link once; their source gets no more feedback than from a
// unicast.
func TestTreeOfLeafSpine(t *testing.T) {
	for _, routing := range []fabric.Routing{fabric.Static, fabric.BGP} {
		t.Run(string(routing), func(t *testing.T) {
			r := newFabricRig(t, fabric.Config{Topology: fabric.LeafSpine(4, 2, 3), Routing: routing}, patient, false)
			unicast := r.unicast(r.hosts[0], r.hosts[len(r.hosts)-1], treeMemory, treeMessage)
			of := []*fabricHost{r.hosts[0], r.hosts[3], r.hosts[6], r.hosts[9]} // one at each leaf
			for i, hosts := range [][]*fabricHost{r.hosts, of} {
				m := r.join(r.fabricGroup(i), treeMemory, hosts...)
				before := r.carried()
				m.mustSend(0, treeMessage)
				c := r.carried().since(before)
				r.carries(t, c, 4)
				group := c[[2]string{"l1", "h1"}].GroupFeedback.Frames
				t.Logf("feedback at the source: %d packets of %d receivers, %d of one unicast receiver", group, len(hosts)-1, unicast)
				if float64(group) > 1.1*float64(unicast) {
					t.Errorf("the source got %d packets of feedback of %d receivers, and %d of one unicast receiver", group, len(hosts)-1, unicast)
				}
				m.leave()
			}
		})
	}
}

// TestTreeLoses: with 1 % loss on every link, all receivers get all bytes.
func TestTreeLoses(t *testing.T) {
	top := fabric.LeafSpine(4, 2, 3)
	for i := range top.Links {
		top.Links[i].Loss = 0.01
	}
	r := newFabricRig(t, fabric.Config{Topology: top}, "", false)
	m := r.join(r.fabricGroup(0), treeMemory, r.hosts...)
	before := r.carried()
	begin := time.Now()
	m.mustSend(0, treeMessage)
	all, most := r.inner(r.carried().since(before))
	t.Logf("%v; links between switches carried %d frames with data, one %d, of %d packets", time.Since(begin), all, most, treePackets)
	m.leave()
}

// TestTreesShareSpines: eight groups that send at once are spread over both spines.
func TestTreesShareSpines(t *testing.T) {
	const groups = 8
	r := newFabricRig(t, fabric.Config{Topology: fabric.LeafSpine(4, 2, 2)}, patient, false)
	var all []*fabricMembers
	for i := range groups {
		// Groups have their sources at all leaves.
		hosts := append(append([]*fabricHost{}, r.hosts[i:]...), r.hosts[:i]...)
		all = append(all, r.join(r.fabricGroup(i), treeMemory/4, hosts...))
	}
	before := r.carried()
	if err := session.Each(groups, func(i int) error { return all[i].send(0, treeMessage) }); err != nil {
		t.Fatal(err)
	}
	c := r.carried().since(before)
	by := make(map[string]uint64)
	for d, x := range c {
		if s := r.fab.Switch(d[1]); s != nil && len(s.Hosts) == 0 {
			by[d[1]] += x.GroupData.Frames
		}
	}
	t.Logf("frames with data up to each spine: %v", by)
	low, high := min(by["s1"], by["s2"]), max(by["s1"], by["s2"])
	if low == 0 || float64(high)/float64(low) > 1.5 {
		t.Errorf("spines carry %d and %d frames, want a ratio of at most 1.5", high, low)
	}
	for _, m := range all {
		m.leave()
	}
}

// TestTreeIsCut: the only link between two switches goes down in mid-transfer. The source gets
// no completion without the bytes at all receivers, and an error within 10 s. All members, the
// logs and the journals of both switches know which switch was lost.
func TestTreeIsCut(t *testing.T) {
	r := newFabricRig(t, fabric.Config{Topology: twoSwitches(t)}, "", false)
	m := r.join(r.fabricGroup(0), treeMemory, r.hosts...)
	m.fill(0)
	mr, w, last := m.regions[0], m.groups[0].Info().Window, 0
	var begin time.Time
	err := r.writeAll(m.groups[0].QP(), mr, w.Base, w.RKey, treeMessage, func(done int) {
		last = done
		if done == treeMemory/treeMessage/2 {
			if err := r.fab.SetLink("l1", "l2", false); err != nil {
				t.Error(err)
			}
			begin = time.Now()
		}
	})
	if err == nil { // all messages were under way, and there before the link was down
		m.fill(1)
		last = 0
		err = r.writeAll(m.groups[0].QP(), mr, w.Base, w.RKey, treeMessage, func(done int) { last = done })
	}
	took := time.Since(begin)
	t.Logf("after %d messages, %v after the cut: %v", last, took, err)
	if err == nil {
		t.Error("all messages are complete, without a way to half of the receivers")
	}
	for i, other := range m.regions {
		if n := last * treeMessage; !bytes.Equal(other.Bytes()[:n], mr.Bytes()[:n]) {
			t.Errorf("%s does not have the %d messages that are complete", m.hosts[i].Name, last)
		}
	}
	if took > 10*time.Second {
		t.Errorf("the source got its error after %v", took)
	}
	for i, g := range m.groups {
		m.lostSwitch(i, g)
	}
	for name, e := range r.engines {
		until(t, name+" has a journal entry with the switch that was lost", func() bool {
			list, err := e.Events(r.ctx, 0)
			return err == nil && slices.ContainsFunc(list.Events, func(x api.Event) bool {
				return x.Kind == api.EventEnded && strings.HasPrefix(x.Reason, envelope.SwitchLost.String()+": switch ")
			})
		})
	}
}

// lostSwitch waits for member i's last event, which says that a switch was lost, and which.
func (m *fabricMembers) lostSwitch(i int, g *endpoint.Group) {
	t := m.r.t
	t.Helper()
	for {
		select {
		case e, ok := <-g.Events():
			var lost *envelope.LostLink
			switch {
			case !ok:
				t.Errorf("%s was not told that a switch was lost", m.hosts[i].Name)
			case e.Kind != endpoint.Failed:
				continue
			case e.Reason != envelope.SwitchLost || !errors.As(e.Err, &lost) || lost.At == 0 || lost.To == 0 || lost.Port == "":
				t.Errorf("%s: %v, %v, %v", m.hosts[i].Name, e.Kind, e.Reason, e.Err)
			}
			return
		case <-m.r.ctx.Done():
			t.Errorf("%s was told nothing", m.hosts[i].Name)
			return
		}
	}
}

// TestTreesAtLength is what takes longer (make test-trees): a fat-tree of 20 switches with 16
// members, with static routes and those of BGP, with losses and without.
func TestTreesAtLength(t *testing.T) {
	labtest.Part(t, "trees")
	for _, routing := range []fabric.Routing{fabric.Static, fabric.BGP} {
		for _, loss := range []float64{0, 0.01} {
			t.Run(fmt.Sprintf("%s, loss %v", routing, loss), func(t *testing.T) {
				top, err := fabric.FatTree(4)
				if err != nil {
					t.Fatal(err)
				}
				for i := range top.Links {
					top.Links[i].Loss = loss
				}
				more := patient
				if loss > 0 {
					more = ""
				}
				r := newFabricRig(t, fabric.Config{Topology: top, Routing: routing}, more, false)
				m := r.join(r.fabricGroup(0), treeMemory, r.hosts...)
				before := r.carried()
				m.mustSend(0, treeMessage)
				if c := r.carried().since(before); loss == 0 {
					r.carries(t, c, 12)
				}
				for _, from := range []int{15, 7, 3} {
					m.mustSend(from, treeMessage)
				}
				m.leave()
			})
		}
	}
}
