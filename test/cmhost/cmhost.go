// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package cmhost gives tests hosts whose programs join groups by RDMA-CM, without the kernel's communication manager.
package cmhost

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/envelope/cm"
	"github.com/gleam-rdma/gleam/lab/fabric"
	"github.com/gleam-rdma/gleam/rocev2"
	"github.com/gleam-rdma/gleam/test/stranger"
)

// Port is the port that programs pass to rdma_connect.
const Port = 7471

// Agent is what a host's kernel does for programs that connect, or listen, by RDMA-CM: it writes and reads the management
// datagrams.
type Agent struct {
	*stranger.Wire
	Path rocev2.Path // the path to the group
	h    *fabric.Host

	mu     sync.Mutex
	listen func(*cm.Request) cm.Reply // nil: its program has dialled
	tid    uint64
	id     cm.CommID // the ID of the connection that it has, or wants
	remote cm.CommID
	reply  cm.Reply // the reply: as dialler, the switch's; as listener, its own
	qp     scriptedQP
	state  string // asking, connected, leaving, left, or why it was refused
}

// New starts the agent of a host, by one of its addresses, for a group. It ends with the test.
func New(t testing.TB, h *fabric.Host, ip, group netip.Addr) *Agent {
	t.Helper()
	a := &Agent{Wire: stranger.New(t, h), h: h}
	a.Path = rocev2.Path{SrcMAC: a.Own, DstMAC: a.Gateway, Src: ip, Dst: group, SrcPort: 0xC001}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			var f rocev2.Frame
			var m cm.Message
			switch {
			case !a.Next(&f) || f.Src() != group:
			case f.Kind == rocev2.KindMAD && f.Dst() == ip && cm.Decode(f.MAD(), &m) == cm.OK:
				a.receive(&m)
			case f.Kind == rocev2.KindRoCE && f.Dst() == ip && f.BTH().Opcode().Is(rocev2.OpRequest):
				a.respond(f.BTH().DestQP())
			}
		}
	}()
	t.Cleanup(func() { cancel(); <-ended })
	return a
}

// Listen has the host's program listen: f is called for a connection.
func (a *Agent) Listen(f func(*cm.Request) cm.Reply) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.listen = f
}

func (a *Agent) write(m *cm.Message) {
	b := make([]byte, 512)
	a.Send(b[:rocev2.BuildMAD(b, &a.Path, 0, m.Append(nil))])
}

// scriptedQP is a queue pair that a requester sends from. It receives nothing but keepalive probes.
type scriptedQP struct {
	own, dest rocev2.QPN
	expects   rocev2.PSN
}

// respond acknowledges a probe to the scripted queue pair: a WRITE of nothing below the PSN that it expects.
func (a *Agent) respond(to rocev2.QPN) {
	a.mu.Lock()
	q := a.qp
	a.mu.Unlock()
	if q.own == to {
		b := make([]byte, 256)
		a.Send(b[:rocev2.BuildAck(b, &a.Path, q.dest, q.expects.Prev(), rocev2.SyndromeACK, 0, false)])
	}
}

// receive serves a message of the switch.
func (a *Agent) receive(m *cm.Message) {
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
		a.write(&cm.Message{Attribute: cm.ConnectReply, TID: a.tid, LocalID: a.id, RemoteID: a.remote, Reply: a.reply})
	case cm.ConnectReply:
		if mine && a.listen == nil && (a.state == "asking" || a.state == "connected") {
			a.remote, a.reply, a.state = m.LocalID, m.Reply, "connected"
			a.write(&cm.Message{Attribute: cm.ReadyToUse, TID: m.TID, LocalID: a.id, RemoteID: a.remote})
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
		a.write(&cm.Message{Attribute: cm.DisconnectReply, TID: m.TID, LocalID: m.RemoteID, RemoteID: m.LocalID})
		if mine {
			a.state = "left"
		}
	case cm.DisconnectReply:
		if mine {
			a.state = "left"
		}
	}
}

// Is reports whether the connection is in a state.
func (a *Agent) Is(state string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.state == state
}

// Connect dials the group, again after each refusal, and returns the switch's answer.
func (a *Agent) Connect(number rocev2.QPN, psn rocev2.PSN, patience time.Duration) (cm.Reply, error) {
	var last string
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		a.mu.Lock()
		if a.state != "asking" {
			a.id, a.tid, a.state, last = cm.CommID(rand.Uint32()), rand.Uint64(), "asking", a.state
		}
		a.write(&cm.Message{Attribute: cm.ConnectRequest, TID: a.tid, LocalID: a.id, Data: []byte("hello"), Request: cm.Request{
			ServiceID: 0x01060000 + Port, GUID: cm.GUID(a.h.MAC[5]) + 1, QPN: number, PSN: psn, RemoteTimeout: 20, LocalTimeout: 20, FlowControl: true, RetryCount: 7, RNRRetry: 7, PKey: 0xFFFF,
			MTU: 3, MaxRetries: 15, LocalGID: a.Path.Src, RemoteGID: a.Path.Dst, HopLimit: 64, AckTimeout: 17, Src: a.Path.Src, Dst: a.Path.Dst,
		}})
		a.mu.Unlock()
		within(300*time.Millisecond, func() bool { return !a.Is("asking") })
		a.mu.Lock()
		reply, connected := a.reply, a.state == "connected"
		a.mu.Unlock()
		if connected {
			return reply, nil
		}
	}
	return cm.Reply{}, fmt.Errorf("%s is not connected within %v; before: %q", a.h.Name, patience, last)
}

// Disconnect says that the program has ended, again and again until the switch has heard it, or for a time.
func (a *Agent) Disconnect(d time.Duration) (heard bool) {
	a.mu.Lock()
	if a.state == "connected" {
		a.state = "leaving"
	}
	m := cm.Message{Attribute: cm.DisconnectRequest, TID: a.tid + 1, LocalID: a.id, RemoteID: a.remote, DREQ: cm.DREQ{QPN: a.reply.QPN}}
	a.mu.Unlock()
	for end := time.Now().Add(d); !heard && time.Now().Before(end); {
		a.write(&m)
		heard = within(200*time.Millisecond, func() bool { return a.Is("left") })
	}
	return heard
}

// Requester is the send queue of a member whose first PSN the switch chooses: one packet at a time, repeated until it is
// acknowledged.
type Requester struct {
	*stranger.Wire
	Own    rocev2.QPN
	Dest   rocev2.QPN
	PSN    rocev2.PSN // the PSN of the next packet
	First  rocev2.PSN // the PSN that its receive queue expects
	path   rocev2.Path
	packet []byte
	sent   time.Time
}

// Dial connects as a source.
func (a *Agent) Dial(t testing.TB, patience time.Duration) (*Requester, error) {
	t.Helper()
	q := &Requester{Own: rocev2.QPN(0x100 + rand.Uint32N(1<<20)), First: rocev2.PSN(rand.Uint32()) & rocev2.PSNMask, path: a.Path}
	reply, err := a.Connect(q.Own, q.First, patience)
	if err != nil {
		return nil, err
	}
	q.Dest, q.PSN = reply.QPN, reply.PSN
	a.mu.Lock()
	a.qp = scriptedQP{q.Own, q.Dest, q.First}
	a.mu.Unlock()
	q.Wire = stranger.New(t, a.h)
	return q, nil
}

// Post sends a message of one packet.
func (q *Requester) Post(payload []byte) error {
	q.packet = make([]byte, 1500)
	n := rocev2.BuildPacket(q.packet, &q.path, &rocev2.Packet{Op: rocev2.SendOnly, DestQP: q.Dest, PSN: q.PSN, AckReq: true}, payload)
	if q.packet = q.packet[:n]; n == 0 {
		return errors.New("no such packet")
	}
	q.again()
	return nil
}

func (q *Requester) again() { q.Send(q.packet); q.sent = time.Now() }

// Wait returns when the message is complete, with an error if it has failed.
func (q *Requester) Wait(ctx context.Context) error {
	for ctx.Err() == nil {
		if time.Since(q.sent) > 200*time.Millisecond {
			q.again()
		}
		var f rocev2.Frame
		if !q.Next(&f) || f.Kind != rocev2.KindRoCE || f.Src() != q.path.Dst || f.BTH().DestQP() != q.Own || f.BTH().Opcode() != rocev2.Acknowledge {
			continue
		}
		switch s := f.AETH().Syndrome(); s.Kind() {
		case rocev2.KindACK:
			if f.BTH().PSN() == q.PSN {
				q.PSN = (q.PSN + 1) & rocev2.PSNMask
				return nil
			}
		case rocev2.KindFatal:
			return fmt.Errorf("NAK 0x%02x", uint8(s))
		}
	}
	return context.Cause(ctx)
}

// within waits for a condition, and reports whether it has come.
func within(d time.Duration, holds func() bool) bool {
	for end := time.Now().Add(d); !holds(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}
