// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"net/netip"
	"testing"

	"github.com/gleam-rdma/gleam/dataplane"
	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/rocev2"
)

// sentEnvelope is an envelope that has left, and where to.
type sentEnvelope struct {
	envelope.Message
	dst netip.Addr
	to  dataplane.Origin
}

// asking is a switch whose envelopes are recorded as they leave.
type asking struct {
	*fakeSwitch
	sent []sentEnvelope // the envelopes that the control loop has sent
	tx   uint32         // the transaction of the last request
}

func newAsking(f *fakeSwitch) *asking {
	a := &asking{fakeSwitch: f, tx: 1000}
	f.control.do(func() {
		c := f.control
		leave := c.departures.onLeave
		c.departures.onLeave = func(m *message) {
			n := len(c.departures.datagrams)
			leave(m)
			if msg, err := envelope.Open(m.Body.packet.Data, tenants, false); err == nil && len(c.departures.datagrams) == n+1 {
				a.sent = append(a.sent, sentEnvelope{msg, m.Body.packet.Dst.Addr(), c.departures.datagrams[n].To})
			}
		}
	})
	return a
}

// bring delivers a request of a host under a key, from an origin.
func (a *asking) bring(key envelope.KeyID, from dataplane.Origin, head envelope.Header, body envelope.Body) {
	a.t.Helper()
	b, err := envelope.Append(nil, &envelope.Message{Header: head, Body: body}, tenants, key)
	if err != nil {
		a.t.Fatal(err)
	}
	path := rocev2.Path{Src: head.ReplyTo.Addr(), Dst: head.Group, SrcMAC: from.MAC, SrcPort: head.ReplyTo.Port()}
	frame := make([]byte, 128+len(b))
	if err := a.plane.Deliver(dataplane.Frame{Port: from.Port, Bytes: frame[:rocev2.BuildUDP(frame, &path, head.ReplyTo.Port(), b)]}); err != nil {
		a.t.Fatal(err)
	}
}

// ask delivers a request, and returns its answer.
func (a *asking) ask(key envelope.KeyID, from dataplane.Origin, head envelope.Header, body envelope.Body) (s sentEnvelope) {
	a.t.Helper()
	a.tx++
	head.Transaction, head.Total = a.tx, 1
	a.bring(key, from, head, body)
	a.await("an answer", func(x *sentEnvelope) bool { s = *x; return x.dst == head.ReplyTo.Addr() && x.Transaction == a.tx })
	return s
}

// await waits for an envelope that has left.
func (a *asking) await(what string, is func(*sentEnvelope) bool) {
	a.t.Helper()
	a.eventually(what, func() (found bool) {
		a.control.do(func() {
			for i := range a.sent {
				found = found || is(&a.sent[i])
				if found {
					return
				}
			}
		})
		return found
	})
}

// goes checks the kind and the receiver of an answer.
func (a *asking) goes(what string, s sentEnvelope, kind envelope.Type, to dataplane.Origin) {
	a.t.Helper()
	if s.Type != kind || s.to != to {
		a.t.Errorf("%s: %v goes to port %d, %v; want %v to port %d, %v", what, s.Type, s.to.Port, s.to.MAC, kind, to.Port, to.MAC)
	}
}

func originAt(port int, mac byte) dataplane.Origin {
	return dataplane.Origin{Port: port, MAC: rocev2.MAC{2, 0, 0, 0, 0, mac}}
}

// apart is a switch with group 0 of key 1, whose holder claims that host 2 is at its port, and group 1 of
// key 2, of hosts 1, its master, and 2, which are at home.
func apart(t *testing.T) (a *asking, home dataplane.Origin) {
	f := newBridgedSwitch(t, 4, tenantsConfig())
	home = f.claim(t)
	f.enrollUnder(2, 1, 1, 2)
	q := f.asked(2, 2, 0)
	f.proves(1, 2, q, home)
	q = f.asked(2, 2, 1)
	f.proves(1, 2, q, home)
	q = f.asked(1, 2, 0)
	f.proves(1, 1, q, q.Origin)
	f.eventually("the second group is there", func() bool { return f.installed(1) })
	return newAsking(f), home
}

func requestOf(host, group int) envelope.Header {
	return envelope.Header{Group: fakeGroup(group), ReplyTo: netip.AddrPortFrom(fakeHost(host), 4797)}
}

// challenged has a host challenged, and puts into head what it has learnt by that.
func (a *asking) challenged(key envelope.KeyID, from, to dataplane.Origin, head *envelope.Header, body envelope.Body) {
	a.t.Helper()
	s := a.ask(key, from, *head, body)
	a.goes("a Challenge", s, envelope.TypeChallenge, to)
	head.Instance, head.Epoch = s.Instance, s.Body.(*envelope.Challenge).EpochKnown
}

// The answer to a member's Leave goes to its place in the groups of the key, although it is in none any
// more, and the holder of another key claims it elsewhere; so does the answer to the Leave that the
// member repeats because it has lost the first.
func TestAnswerToALeaveGoesBack(t *testing.T) {
	a, home := apart(t)
	head, leave := requestOf(2, 1), &envelope.Leave{Member: envelope.MemberKey{IP: fakeHost(2), QPN: 0x202}}
	a.challenged(2, home, home, &head, leave)
	a.goes("a Leave", a.ask(2, home, head, leave), envelope.TypeAccept, home)
	a.goes("a Leave once more", a.ask(2, home, head, leave), envelope.TypeAccept, home)
	// Without the cookie it has proved nothing. It is pinned where it is in the groups of key 1.
	head.Instance++
	a.goes("a Leave that proves nothing", a.ask(2, home, head, leave), envelope.TypeChallenge, originAt(0, 66))
}

// The answer to a Delete goes to where the master was, and comes from, whatever the kernel's tables have by
// now, and the members hear of the end where they were in the group, and acknowledge it from there.
func TestAnswerToADeleteGoesBack(t *testing.T) {
	a, home := apart(t)
	master := originAt(1, 1)
	head := requestOf(1, 1)
	a.challenged(2, master, master, &head, &envelope.Delete{})
	a.goes("a Delete", a.ask(2, master, head, &envelope.Delete{}), envelope.TypeAccept, master)
	var gone sentEnvelope
	a.await("the member is told", func(s *sentEnvelope) bool {
		gone = *s
		return s.dst == fakeHost(2) && s.Type == envelope.TypeGone
	})
	a.goes("the end of the group", gone, envelope.TypeGone, home)
	a.spoof(1, 0, 66)
	a.looked(1)
	a.goes("a Delete once more", a.ask(2, master, head, &envelope.Delete{}), envelope.TypeAccept, master)
	head.Instance++
	a.goes("a Delete that proves nothing", a.ask(2, master, head, &envelope.Delete{}), envelope.TypeChallenge, originAt(0, 66))

	refused := func() (n uint64) {
		a.control.do(func() { n = a.control.count.envelope[envelope.WrongLocation] })
		return n
	}
	ack := requestOf(2, 1)
	ack.Epoch, ack.Transaction, ack.Instance, ack.Total = gone.Epoch, gone.Transaction, gone.Instance, 1
	a.bring(2, originAt(3, 3), ack, &envelope.Ack{})
	a.eventually("the Ack of a stranger is refused", func() bool { return refused() == 1 })
	a.bring(2, home, ack, &envelope.Ack{})
	a.control.do(func() { a.sent = nil })
	a.await("the Gone of the master's host, which acknowledges none, is repeated", func(s *sentEnvelope) bool { return s.dst == fakeHost(1) && s.Type == envelope.TypeGone })
	a.control.do(func() {
		for _, s := range a.sent {
			if s.dst == fakeHost(2) && s.Type == envelope.TypeGone {
				t.Errorf("the member is told again, at port %d", s.to.Port)
			}
			if s.dst == fakeHost(1) && s.Type == envelope.TypeGone && s.to != master {
				t.Errorf("the master's host is told at port %d, where the kernel has it", s.to.Port)
			}
		}
	})
	if n := refused(); n != 1 {
		t.Errorf("%d envelopes are refused", n)
	}
}

// A host without a place has its answers where it asks, once it has proved its address, and whatever the
// kernel's tables have by then. Who claims its address from elsewhere is challenged, and hears nothing of
// that.
func TestAnswersToHostsWithoutAPlace(t *testing.T) {
	a := newAsking(newBridgedSwitch(t, 4, tenantsConfig()))
	know := func() { a.control.do(func() { a.know(4) }) }
	know()
	home, stranger := originAt(3, 3), originAt(0, 66)
	head := requestOf(3, 0)
	a.challenged(2, stranger, home, &head, &envelope.Delete{})
	head.Epoch = 1 // and the host has its cookie
	a.spoof(3, 0, 66)
	know()
	if s := a.ask(2, home, head, &envelope.Delete{}); s.to != home || s.Type == envelope.TypeChallenge {
		t.Errorf("a request with its cookie: %v goes to port %d", s.Type, s.to.Port)
	}
	if s := a.ask(2, home, head, &envelope.Renew{}); s.to != home || s.Type != envelope.TypeReject {
		t.Errorf("another: %v goes to port %d", s.Type, s.to.Port)
	}
	a.goes("its cookie under another key", a.ask(1, home, head, &envelope.Delete{}), envelope.TypeChallenge, stranger)
	a.spoof(3, 3, 3)
	know()
	head.Instance++
	a.goes("a stranger's request without a cookie", a.ask(2, stranger, head, &envelope.Delete{}), envelope.TypeChallenge, home)
}

// A host that has a place in groups of a key has its answers there, about other groups of the key too. A
// recorded request that comes from elsewhere leads them away neither.
func TestAnswersToHostsWithAPlace(t *testing.T) {
	a, home := apart(t)
	head := requestOf(2, 5)
	a.challenged(2, home, home, &head, &envelope.Delete{}) // under key 1 it is claimed to be elsewhere
	head.Epoch = 1
	for _, from := range []dataplane.Origin{home, originAt(3, 3)} {
		if s := a.ask(2, from, head, &envelope.Renew{}); s.to != home || s.Type != envelope.TypeReject {
			t.Errorf("a request from port %d: %v goes to port %d", from.Port, s.Type, s.to.Port)
		}
	}
}
