// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/host/endpoint"
	"github.com/gleam-rdma/gleam/host/endpoint/session"
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

const (
	slots   = 32 // messages that a region has room for, one after the other
	pathMTU = 1024
	base    = 0x5000_0000_0000 // the base of a group's window
	rkey    = 0x00C0FFEE
	qpn     = 0x4711
	// The timeout of the sources' queue pairs is 537 ms. Those of rxe repeat for ever, others for 4.3 s: more than a restart
	// and a dead member take together.
	qpTimeout = 17
)

// group is a group whose completions are held against the bytes at each member.
type group struct {
	s       *scene
	ip      netip.Addr
	qpn     rocev2.QPN
	window  mcast.Window      // the window for WRITEs
	packets int               // packets of a message
	end     func() error      // its master, or the operator, deletes it
	masters []*endpoint.Group // each member's group, by envelopes

	mu      sync.Mutex // a lock of the members' states, and posted
	members []*member
	posted  int // messages
	done    atomic.Int64
}

// member is a member of a group.
type member struct {
	*host
	source source
	mr     endpoint.MR
	info   endpoint.QPInfo
	recv   endpoint.QP // the queue pair that takes SENDs into the slots in turn; nil: messages are WRITEs
	live   bool        // completions promise that it has the bytes
	first  int         // the first message that they promise
	taken  int         // SENDs
	due    atomic.Int64
	change *outcome // the outcome of its joining or leaving
}

// source sends a member's messages.
type source interface {
	depth() int
	post(g *group, seq int, payload []byte) error
	wait(ctx context.Context) (completions int, err error) // completions without error; err is of the next one
}

// soft queue pairs post WRITEs.
type writer struct {
	qp endpoint.QP
	mr endpoint.MR
	wc [8]endpoint.Completion
}

func (w *writer) depth() int { return len(w.wc) }

func (w *writer) post(g *group, seq int, payload []byte) error {
	off := seq % slots * len(payload)
	copy(w.mr.Bytes()[off:], payload)
	_, err := w.qp.PostSend(endpoint.SendWR{
		ID: uint64(seq), Op: endpoint.Write, Local: endpoint.Segment{MR: w.mr, Offset: off, Len: len(payload)},
		RemoteAddr: g.window.Base + uint64(off), RKey: g.window.RKey,
	})
	return err
}

func (w *writer) wait(ctx context.Context) (int, error) {
	n, err := w.qp.Poll(ctx, w.wc[:])
	for i, c := range w.wc[:max(n, 0)] {
		if c.Err() != nil {
			return i, c.Err()
		}
	}
	return n, err
}

// isOver reports whether the group's master, or the operator who has registered it, is told that the group has ended.
func (g *group) isOver() bool {
	if len(g.masters) == 0 {
		x, err := g.s.client().Group(g.s.ctx, g.ip)
		return err == nil && x.State == "failed"
	}
	select {
	case <-g.masters[0].Over():
		return true
	default:
		return false
	}
}

// message is the content of message seq.
func (g *group) message(seq int) []byte {
	b := make([]byte, g.packets*pathMTU)
	for i := range b {
		b[i] = byte(i>>8) ^ byte(i*13) ^ byte(seq*31+1)
	}
	binary.BigEndian.PutUint64(b, uint64(seq))
	return b
}

func (g *group) member(name string) *member {
	for _, m := range g.members {
		if m.Name == name {
			return m
		}
	}
	return nil
}

// out takes a member out of what completions promise.
func (g *group) out(name string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.member(name).live = false
}

// errNoCompletion is that of a source that waits in vain.
var errNoCompletion = fmt.Errorf("no completion in %v", patience)

// transfer sends messages of a member until enough, and checks each completion.
func (g *group) transfer(from string, enough func(sent int) bool) error {
	g.mu.Lock()
	m := g.member(from)
	first := g.posted
	g.mu.Unlock()
	for sent, done, last := 0, 0, false; !last || done < sent; {
		for !last && sent-done < m.source.depth() {
			if last = enough(sent); last {
				break
			}
			g.mu.Lock()
			for _, o := range g.members {
				if o != m && g.posted >= o.first {
					o.due.Add(int64(g.packets))
				}
			}
			g.posted++
			g.mu.Unlock()
			if err := m.source.post(g, first+sent, g.message(first+sent)); err != nil {
				return fmt.Errorf("%s: %w", from, err)
			}
			sent++
		}
		if done == sent {
			continue
		}
		ctx, cancel := context.WithTimeoutCause(g.s.ctx, patience, errNoCompletion)
		n, err := m.source.wait(ctx)
		cancel()
		for range n {
			g.complete(m, first+done)
			done++
		}
		if err != nil {
			return fmt.Errorf("%s: %d of %d messages: %w", from, done, sent, err)
		}
	}
	return nil
}

// complete checks a completion: each live member has the bytes now.
func (g *group) complete(from *member, seq int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	want := g.message(seq)
	for _, m := range g.members {
		if m == from || !m.live || seq < m.first {
			continue
		}
		slot := seq
		if m.recv != nil {
			slot = m.taken
			m.taken++
		}
		off := slot % slots * len(want)
		if !same(m.mr.Bytes()[off:off+len(want)], want) {
			g.s.t.Errorf("FALSE COMPLETION: message %d is complete at %s, and %s does not have it", seq, from.Name, m.Name)
			m.live = false // once is enough
		} else if m.recv != nil {
			if err := m.again(off, len(want)); err != nil {
				g.s.t.Errorf("%s: %v", m.Name, err)
			}
		}
	}
	g.done.Add(1)
}

// same compares a member's memory. The network has ordered the member's device before the completion, which the race detector
// does not know of a scripted source.
//
//go:norace
func same(memory, want []byte) bool {
	for i := range want {
		if memory[i] != want[i] {
			return false
		}
	}
	return true
}

// again posts the buffer of a SEND that has come.
func (m *member) again(off, n int) error {
	var wc [1]endpoint.Completion
	ctx, cancel := context.WithTimeout(m.s.ctx, patience)
	defer cancel()
	if _, err := m.recv.Poll(ctx, wc[:]); err != nil {
		return fmt.Errorf("the completion of a receive: %w", err)
	}
	_, err := m.recv.PostRecv(endpoint.RecvWR{Local: endpoint.Segment{MR: m.mr, Offset: off, Len: n}})
	return errors.Join(wc[0].Err(), err)
}

// pass sends so many messages of a member, which must succeed.
func (g *group) pass(when, from string, messages int) {
	g.s.t.Helper()
	if err := g.transfer(from, func(sent int) bool { return sent >= messages }); err != nil {
		g.s.t.Fatalf("%s, the group cannot be used: %v\n%s", when, err, g.s.describe())
	}
}

// flow is a transfer in the background.
type flow struct {
	stop  chan struct{}
	ended chan struct{}
	err   error // an error; valid after ended
}

// flow sends messages of a member until the flow's end is called.
func (g *group) flow(from string) *flow {
	f := &flow{stop: make(chan struct{}), ended: make(chan struct{})}
	go func() {
		defer close(f.ended)
		f.err = g.transfer(from, func(int) bool {
			select {
			case <-f.stop:
				return true
			case <-time.After(5 * time.Millisecond): // the machine is shared
				return false
			}
		})
	}()
	return f
}

// end returns when all that was sent is complete, or an error has ended the flow.
func (f *flow) end() error {
	close(f.stop)
	<-f.ended
	return f.err
}

// goesOn waits for a few completions more of a flow, or for its error.
func (g *group) goesOn(when string, f *flow) {
	g.s.t.Helper()
	n := g.done.Load()
	g.s.until("completions "+when, func() bool {
		select {
		case <-f.ended:
			return true
		default:
			return g.done.Load() > n+3
		}
	})
}

// equip gives a host a region, and a queue pair that is a source of WRITEs.
func (g *group) equip(h *host) (*member, *writer) {
	g.s.t.Helper()
	m := &member{host: h, live: true}
	mr, err := h.dev.RegisterMemory(make([]byte, slots*g.packets*pathMTU), 0x7000_0000_0000+uint64(len(g.members))<<32, endpoint.LocalWrite|endpoint.RemoteWrite)
	g.s.must(err)
	m.mr = mr
	return m, &writer{mr: mr}
}

func queuePair(h *host) endpoint.QPConfig {
	return endpoint.QPConfig{LocalIP: h.ip, SQPSN: endpoint.RandomPSN(), RQPSN: endpoint.RandomPSN(), MaxSend: 16, MaxRecv: slots, Timeout: qpTimeout, RetryCount: 7, RNRRetry: 7}
}

func (s *scene) newGroup(packets int) *group {
	return &group{s: s, ip: s.address(), qpn: qpn, packets: packets, end: func() error { return s.client().Delete(s.ctx, s.address()) }}
}

// byHand has an operator register a group. Its hosts answer no envelopes.
func byHand(policy string) func(*scene) *group {
	return func(s *scene) *group {
		s.t.Helper()
		g := s.newGroup(4)
		g.window = mcast.Window{Base: base, Len: uint64(slots * g.packets * pathMTU), RKey: rkey}
		reg := &api.Register{Group: g.ip, QPN: qpn, PMTU: pathMTU, Policy: policy, Window: &api.Window{VA: base, Len: g.window.Len, RKey: rkey}}
		if policy == api.PolicyEvict {
			reg.DeadAfterMS = 1500
		}
		for _, name := range []string{"a", "b", "c"} {
			h := s.open(name, nil, 0)
			m, w := g.equip(h)
			var err error
			w.qp, err = h.dev.CreateQP(queuePair(h))
			s.must(err)
			m.source, m.info = w, w.qp.Info()
			s.must(w.qp.Connect(s.ctx, endpoint.Remote{IP: g.ip, QPN: qpn, PathMTU: pathMTU, RQPSN: m.info.RQPSN}))
			reg.Members = append(reg.Members, api.RegisterMember{
				IP: h.ip, QPN: api.QPN(m.info.QPN), SQPSN: api.PSN(m.info.SQPSN), RQPSN: api.PSN(m.info.RQPSN), Window: &api.Window{VA: m.mr.Addr(), Len: uint64(m.mr.Len()), RKey: m.mr.RKey()},
			})
			g.members = append(g.members, m)
		}
		s.must(s.client().Register(s.ctx, reg))
		return g
	}
}

// byEnvelopes has the hosts register a group, a as its master.
func byEnvelopes(s *scene) *group { return byEnvelopesUnder(s, s.bed.Key, 1) }

func byEnvelopesUnder(s *scene, key []byte, id envelope.KeyID) *group {
	s.t.Helper()
	g := s.newGroup(4)
	var all []session.Participant
	for _, name := range []string{"a", "b", "c"} {
		p := g.participant(name, key, id)
		all = append(all, p)
	}
	ctx, cancel := context.WithTimeout(s.ctx, patience)
	defer cancel()
	groups, err := session.Join(ctx, netip.AddrPortFrom(g.members[0].ip, 0), endpoint.MasterConfig{GroupIP: g.ip, PathMTU: pathMTU, WindowBase: base}, all)
	if err != nil {
		s.t.Fatalf("%v\n%s", err, s.describe())
	}
	g.masters, g.window, g.qpn = groups, groups[0].Info().Window, groups[0].Info().QPN
	for i, m := range g.members {
		m.joined(groups[i])
	}
	g.end = func() error {
		err := g.masters[0].Close()
		for i, m := range g.masters[1:] {
			if err := m.Close(); err != nil {
				s.t.Logf("member %d leaves: %v", i+1, err) // the master has ended the group
			}
		}
		return err
	}
	return g
}

// participant is a host that joins by envelopes. It becomes the last member.
func (g *group) participant(name string, key []byte, id envelope.KeyID) session.Participant {
	g.s.t.Helper()
	h := g.s.open(name, envelope.Keys{id: key}, id)
	m, w := g.equip(h)
	m.source = w
	g.mu.Lock()
	g.members = append(g.members, m)
	g.mu.Unlock()
	return session.Participant{Name: name, Do: h.NS.Do, Local: endpoint.Local{
		Device: h.dev, Memory: m.mr, Host: h.envs, HostConfig: endpoint.HostConfig{Auth: envelope.Auth{Keys: envelope.Keys{id: key}, Send: id}}, QPConfig: queuePair(h),
	}}
}

// joined sets the queue pair of a member that has joined by envelopes.
func (m *member) joined(g *endpoint.Group) {
	qp := g.QP()
	m.source.(*writer).qp, m.info = qp, qp.Info()
}

// ended deletes the group: no switch has it then.
func (g *group) ended(when string) {
	s := g.s
	s.t.Helper()
	if err := g.end(); err != nil {
		s.t.Logf("%s, the group is deleted: %v", when, err) // it may have ended before, or the answer is lost
	}
	for name, x := range s.bed.Gleamds {
		s.until(when+", "+name+" has no group any more", func() bool {
			all, err := x.Client.Groups(s.ctx)
			return err == nil && !slices.ContainsFunc(all, func(x api.Group) bool { return x.IP == g.ip })
		})
	}
}
