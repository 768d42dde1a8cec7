// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"sync"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/envelope/cm"
	"github.com/gleam-rdma/gleam/host/endpoint"
	"github.com/gleam-rdma/gleam/rocev2"
	"github.com/gleam-rdma/gleam/test/stranger"
)

const cmPort = 7471

// agent is what a host's kernel does for programs that connect, or listen, by RDMA-CM: it writes and reads the management
// datagrams.
type agent struct {
	h    *host
	w    *stranger.Wire
	path rocev2.Path // the path to the group

	mu     sync.Mutex
	listen func(*cm.Request) cm.Reply // nil: its program has dialled
	tid    uint64
	id     cm.CommID // the ID of the connection that it has, or wants
	remote cm.CommID
	reply  cm.Reply // the reply: as dialler, the switch's; as listener, its own
	qp     scriptedQP
	state  string // asking, connected, leaving, left, or why it was refused
}

// agents starts the agents of the three members.
func (s *scene) agents() {
	s.t.Helper()
	if s.cm != nil {
		return
	}
	s.cm = make(map[string]*agent)
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	for _, name := range []string{"a", "b", "c"} {
		h := s.open(name, nil, 0) // the device has the port of RoCEv2
		a := &agent{h: h, w: stranger.New(s.t, h.Host), path: s.pathToGroup(h)}
		s.cm[name] = a
		all.Go(func() {
			for ctx.Err() == nil {
				var f rocev2.Frame
				var m cm.Message
				switch {
				case !a.w.Next(&f):
				case f.Kind == rocev2.KindMAD && f.Dst() == h.ip && cm.Decode(f.MAD(), &m) == cm.OK:
					a.receive(&m)
				case f.Kind == rocev2.KindRoCE && f.Dst() == h.ip && f.BTH().Opcode().Is(rocev2.OpRequest):
					a.respond(f.BTH().DestQP())
				}
			}
		})
	}
	s.t.Cleanup(func() { cancel(); all.Wait() })
}

func (s *scene) pathToGroup(h *host) rocev2.Path {
	return rocev2.Path{SrcMAC: rocev2.MAC(h.MAC), DstMAC: h.gateway, Src: h.ip, Dst: s.address(), SrcPort: 0xC001}
}

func (a *agent) send(m *cm.Message) {
	b := make([]byte, 512)
	a.w.Send(b[:rocev2.BuildMAD(b, &a.path, 0, m.Append(nil))])
}

// scriptedQP is a queue pair that a requester sends from. It receives nothing but keepalive probes.
type scriptedQP struct {
	own, dest rocev2.QPN
	expects   rocev2.PSN
}

// respond acknowledges a probe to the scripted queue pair: a WRITE of nothing below the PSN that it expects.
func (a *agent) respond(to rocev2.QPN) {
	a.mu.Lock()
	q := a.qp
	a.mu.Unlock()
	if q.own == to {
		b := make([]byte, 256)
		a.w.Send(b[:rocev2.BuildAck(b, &a.path, q.dest, q.expects.Prev(), rocev2.SyndromeACK, 0, false)])
	}
}

// receive serves a message of the switch.
func (a *agent) receive(m *cm.Message) {
	a.mu.Lock()
	defer a.mu.Unlock()
	mine := m.RemoteID == a.id
	switch m.Attribute {
	case cm.ConnectRequest:
		if a.listen == nil {
			return
		}
		if m.LocalID != a.remote || a.state == "left" { // else it is repeated
			a.id, a.remote, a.tid, a.state = cm.CommID(rand.Uint32()), m.LocalID, m.TID, "asking"
			a.reply = a.listen(&m.Request)
		}
		a.send(&cm.Message{Attribute: cm.ConnectReply, TID: a.tid, LocalID: a.id, RemoteID: a.remote, Reply: a.reply})
	case cm.ConnectReply:
		if mine && a.listen == nil && (a.state == "asking" || a.state == "connected") {
			a.remote, a.reply, a.state = m.LocalID, m.Reply, "connected"
			a.send(&cm.Message{Attribute: cm.ReadyToUse, TID: m.TID, LocalID: a.id, RemoteID: a.remote})
		}
	case cm.ReadyToUse:
		if mine && a.listen != nil {
			a.state = "connected"
		}
	case cm.ConnectReject:
		if mine && a.state == "asking" {
			a.state = fmt.Sprintf("refused: %v %q", m.Reject.Reason, m.Data)
		}
	case cm.DisconnectRequest:
		a.send(&cm.Message{Attribute: cm.DisconnectReply, TID: m.TID, LocalID: m.RemoteID, RemoteID: m.LocalID})
		if mine {
			a.state = "left"
		}
	case cm.DisconnectReply:
		if mine {
			a.state = "left"
		}
	}
}

func (a *agent) is(state string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.state == state
}

// connect dials the group, again after each refusal, and returns the switch's answer.
func (a *agent) connect(number rocev2.QPN, psn rocev2.PSN) (cm.Reply, error) {
	s := a.h.s
	var last string
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		a.mu.Lock()
		if a.state != "asking" {
			a.id, a.tid, a.state, last = cm.CommID(rand.Uint32()), rand.Uint64(), "asking", a.state
		}
		a.send(&cm.Message{Attribute: cm.ConnectRequest, TID: a.tid, LocalID: a.id, Data: []byte("hello"), Request: cm.Request{
			ServiceID: 0x01060000 + cmPort, GUID: cm.GUID(a.h.MAC[5]) + 1, QPN: number, PSN: psn, RemoteTimeout: 20, LocalTimeout: 20, FlowControl: true, RetryCount: 7, RNRRetry: 7, PKey: 0xFFFF,
			MTU: 3, MaxRetries: 15, LocalGID: a.h.ip, RemoteGID: s.address(), HopLimit: 64, AckTimeout: 17, Src: a.h.ip, Dst: s.address(),
		}})
		a.mu.Unlock()
		s.within(300*time.Millisecond, func() bool { return !a.is("asking") })
		a.mu.Lock()
		reply, connected := a.reply, a.state == "connected"
		a.mu.Unlock()
		if connected {
			return reply, nil
		}
	}
	return cm.Reply{}, fmt.Errorf("%s is not connected within %v; before: %q", a.h.Name, patience, last)
}

// disconnect says that the program has ended, again and again until the switch has heard it, or for a time.
func (a *agent) disconnect(d time.Duration) (heard bool) {
	a.mu.Lock()
	if a.state == "connected" {
		a.state = "leaving"
	}
	m := cm.Message{Attribute: cm.DisconnectRequest, TID: a.tid + 1, LocalID: a.id, RemoteID: a.remote, DREQ: cm.DREQ{QPN: a.reply.QPN}}
	a.mu.Unlock()
	for end := time.Now().Add(d); !heard && time.Now().Before(end); {
		a.send(&m)
		heard = a.h.s.within(200*time.Millisecond, func() bool { return a.is("left") })
	}
	return heard
}

// requester is the send queue of a member whose first PSN the switch chooses: one packet at a time, repeated until it is
// acknowledged.
type requester struct {
	w      *stranger.Wire
	own    rocev2.QPN
	dest   rocev2.QPN
	psn    rocev2.PSN // the PSN of the next packet
	path   rocev2.Path
	packet []byte
	sent   time.Time
}

func (q *requester) depth() int { return 1 }

func (q *requester) post(_ *group, _ int, payload []byte) error {
	q.packet = make([]byte, 1500)
	n := rocev2.BuildPacket(q.packet, &q.path, &rocev2.Packet{Op: rocev2.SendOnly, DestQP: q.dest, PSN: q.psn, AckReq: true}, payload)
	if q.packet = q.packet[:n]; n == 0 {
		return errors.New("no such packet")
	}
	q.again()
	return nil
}

func (q *requester) again() { q.w.Send(q.packet); q.sent = time.Now() }

func (q *requester) wait(ctx context.Context) (int, error) {
	for ctx.Err() == nil {
		if time.Since(q.sent) > 200*time.Millisecond {
			q.again()
		}
		var f rocev2.Frame
		if !q.w.Next(&f) || f.Kind != rocev2.KindRoCE || f.Src() != q.path.Dst || f.BTH().DestQP() != q.own || f.BTH().Opcode() != rocev2.Acknowledge {
			continue
		}
		switch s := f.AETH().Syndrome(); s.Kind() {
		case rocev2.KindACK:
			if f.BTH().PSN() == q.psn {
				q.psn = (q.psn + 1) & rocev2.PSNMask
				return 1, nil
			}
		case rocev2.KindFatal:
			return 0, fmt.Errorf("NAK 0x%02x", uint8(s))
		}
	}
	return 0, context.Cause(ctx)
}

// byCM makes the members of a group that is created: a is a scripted source, b and c have queue pairs that take its SENDs.
func (s *scene) byCM() *group {
	s.t.Helper()
	g := s.newGroup(1)
	for _, name := range []string{"a", "b", "c"} {
		m, _ := g.equip(s.open(name, nil, 0))
		g.members = append(g.members, m)
	}
	return g
}

// receiver gives a member a queue pair with buffers.
func (g *group) receiver(m *member, first rocev2.PSN) error {
	c := queuePair(m.host)
	c.SQPSN = first
	qp, err := m.dev.CreateQP(c)
	for slot := 0; slot < slots && err == nil; slot++ {
		_, err = qp.PostRecv(endpoint.RecvWR{Local: endpoint.Segment{MR: m.mr, Offset: slot * pathMTU, Len: pathMTU}})
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if err == nil {
		m.recv, m.info = qp, qp.Info()
	}
	return err
}

func (g *group) connectReceiver(m *member, number rocev2.QPN) error {
	return m.recv.Connect(g.s.ctx, endpoint.Remote{IP: g.ip, QPN: number, PathMTU: pathMTU, RQPSN: m.info.RQPSN})
}

// dial has the program of a connect, as the source of the group.
func (g *group) dial() error {
	m, s := g.member("a"), g.s
	own, first := rocev2.QPN(0x100+rand.Uint32N(1<<20)), endpoint.RandomPSN()
	a := s.cm["a"]
	reply, err := a.connect(own, first)
	a.mu.Lock()
	a.qp = scriptedQP{own, reply.QPN, first}
	a.mu.Unlock()
	g.mu.Lock()
	defer g.mu.Unlock()
	m.info = endpoint.QPInfo{IP: m.ip, QPN: own, SQPSN: reply.PSN, RQPSN: first}
	m.source = &requester{w: stranger.New(s.t, m.Host), own: own, dest: reply.QPN, psn: reply.PSN, path: s.pathToGroup(m.host)}
	g.qpn = reply.QPN
	return err
}

// all waits for what was begun for each member.
func all(fs ...func() error) error {
	errs := make([]error, len(fs))
	var w sync.WaitGroup
	for i, f := range fs {
		w.Go(func() { errs[i] = f() })
	}
	w.Wait()
	return errors.Join(errs...)
}

// byCMJoined creates a group to which all members connect.
func byCMJoined(s *scene) *group {
	s.t.Helper()
	s.agents()
	s.must(s.client().CreateGroup(s.ctx, &api.CreateGroup{
		Group: s.address(), Port: cmPort, Expect: 3, PMTU: pathMTU, Policy: api.PolicyStrict, WaitMS: 60_000, From: []netip.Prefix{netip.PrefixFrom(s.hosts["a"].ip, s.address().BitLen()/2)},
	}))
	g := s.byCM()
	joins := []func() error{g.dial}
	for _, name := range []string{"b", "c"} {
		m := g.member(name)
		joins = append(joins, func() error {
			if err := g.receiver(m, 0); err != nil {
				return err
			}
			reply, err := s.cm[name].connect(m.info.QPN, m.info.RQPSN)
			return errors.Join(err, g.connectReceiver(m, reply.QPN))
		})
	}
	s.must(all(joins...))
	return g
}

// byCMDialled creates a group whose listeners are dialled, and has a dial.
func byCMDialled(s *scene) *group {
	s.t.Helper()
	s.agents()
	c := &api.CreateGroup{
		Group: s.address(), Port: cmPort, Policy: api.PolicyStrict, WaitMS: 60_000, Sessions: 1, Replies: api.RepliesLeader, From: []netip.Prefix{netip.PrefixFrom(s.hosts["a"].ip, s.address().BitLen())},
	}
	for _, name := range []string{"b", "c"} {
		c.Listeners = append(c.Listeners, netip.AddrPortFrom(s.hosts[name].ip, 9))
	}
	s.must(s.client().CreateGroup(s.ctx, c))
	return dialled(s)
}

// dialled is one session.
func dialled(s *scene) *group {
	s.t.Helper()
	g := s.byCM()
	for _, name := range []string{"b", "c"} {
		m, a := g.member(name), s.cm[name]
		a.mu.Lock()
		a.listen = func(r *cm.Request) cm.Reply {
			err := g.receiver(m, r.PSN)
			if err == nil {
				err = g.connectReceiver(m, r.QPN)
			}
			if err != nil {
				s.t.Errorf("listener %s: %v", name, err)
			}
			return cm.Reply{QPN: m.info.QPN, PSN: m.info.RQPSN, GUID: cm.GUID(m.MAC[5]) + 1, FlowControl: true, RNRRetry: 7}
		}
		a.mu.Unlock()
	}
	s.must(g.dial())
	s.until("the listeners are connected", func() bool { return s.cm["b"].is("connected") && s.cm["c"].is("connected") })
	return g
}

// disconnects has c's program end: its kernel says so until it is answered.
func disconnects(s *scene) {
	s.t.Helper()
	s.group.out("c")
	s.told = s.cm["c"].disconnect(time.Second)
}

// hasDisconnected has c's kernel say it again if nobody has answered, and then closes its queue pair.
func hasDisconnected(s *scene) {
	s.t.Helper()
	s.mend() // else nobody is told that a member has left
	if !s.told && !s.cm["c"].disconnect(patience) {
		s.t.Errorf("nobody answers the DREQ of c")
	}
	s.check(s.group.member("c").recv.Close())
}

// dialsAgain waits until both sides know that the session has ended, and has a dial the next one.
func dialsAgain(s *scene) {
	s.t.Helper()
	s.mend() // else nobody is told of the end, and no members are taken
	s.quiet()
	for name, a := range s.cm {
		s.until(name+" is disconnected", func() bool { a.h.announce(a.w); return a.is("left") })
	}
	s.group = dialled(s)
	s.attacked.Store(s.group)
}
