// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package envelope

import (
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/mcast"
)

func noticeWorld(t *testing.T) (*world, Registration) {
	t.Helper()
	w := newWorld(t, RegistrarConfig{})
	reg := sample(1, 3)
	w.addMembers(t, reg, reg.Members)
	w.startMaster(t, "A", MasterConfig{Local: masterAddr}, reg)
	w.run(time.Second)
	if e := w.last("A"); e.Kind != Registered {
		t.Fatalf("the master: %v", eventString(e))
	}
	return w, reg
}

// TestDelaysAreTold: the master and the source hear that a group stalls, and that it goes on, each once, also if
// messages are lost. The other members hear nothing.
func TestDelaysAreTold(t *testing.T) {
	w, reg := noticeWorld(t)
	lost := map[uint32]int{}
	w.fault = func(m Message, p Packet) []time.Duration {
		if m.Type != TypeNotice && m.Type != TypeAck {
			return []time.Duration{hop}
		}
		if lost[m.Transaction]++; lost[m.Transaction] <= 2 {
			return nil
		}
		return []time.Duration{hop, 2 * hop}
	}
	source, slow := reg.Members[1], reg.Members[2].Key()
	tell := func(kind NoticeKind, serial uint64) {
		var out Output
		w.sw.Delayed(w.now, reg.Group, &Notice{Kind: kind, Member: slow, PSN: 0x123, Serial: serial}, source.Key(), &out)
		w.do("switch", &out)
	}
	tell(NoticeStalled, 10)
	w.run(10 * time.Second)
	tell(NoticeResumed, 20)
	w.run(10 * time.Second)
	for _, name := range []string{"A", source.IP.String()} {
		if w.count(name, Stalled) != 1 || w.count(name, Resumed) != 1 {
			t.Errorf("%s: %d times stalled, %d times resumed", name, w.count(name, Stalled), w.count(name, Resumed))
		}
		if e := w.last(name); e.Kind != Resumed || e.Member != slow {
			t.Errorf("%s: %s", name, eventString(e))
		}
	}
	if n := w.count(slow.IP.String(), Stalled); n > 0 {
		t.Errorf("the slow member heard of it %d times", n)
	}
	if n := len(w.sw.events.byID) + len(w.sw.events.notices); n > 0 {
		t.Errorf("%d are not acknowledged", n)
	}
	tell(NoticeStalled, 15) // a recording of before
	w.run(10 * time.Second)
	if n := w.count("A", Stalled); n != 1 {
		t.Errorf("an old notice was reported: %d times stalled", n)
	}
}

// TestNewerNoticeReplacesOlder: what is not true any more is not repeated.
func TestNewerNoticeReplacesOlder(t *testing.T) {
	w, reg := noticeWorld(t)
	w.fault = func(m Message, p Packet) []time.Duration {
		if m.Type == TypeNotice && m.Body.(*Notice).Kind == NoticeStalled && w.now < 2*time.Second {
			return nil
		}
		return []time.Duration{hop}
	}
	var out Output
	for i, kind := range []NoticeKind{NoticeStalled, NoticeResumed} {
		w.sw.Delayed(w.now, reg.Group, &Notice{Kind: kind, Member: reg.Members[2].Key(), Serial: uint64(1 + i)}, reg.Members[1].Key(), &out)
		w.do("switch", &out)
	}
	w.run(20 * time.Second)
	if w.count("A", Stalled) > 0 || w.count("A", Resumed) != 1 {
		t.Errorf("%d times stalled, %d times resumed", w.count("A", Stalled), w.count("A", Resumed))
	}
}

// TestFailureNamesTheMember: the master and each member of a failed group hear which member it failed for.
func TestFailureNamesTheMember(t *testing.T) {
	w, reg := noticeWorld(t)
	dead := reg.Members[2]
	var out Output
	w.sw.GroupFailed(w.now, reg.Group, dead.Key(), mcast.Silent, 0x55, &out)
	w.do("switch", &out)
	w.run(20 * time.Second)
	for _, name := range []string{"A", reg.Members[0].IP.String(), reg.Members[1].IP.String(), dead.IP.String()} {
		if n := w.count(name, GroupGone); n != 1 {
			t.Errorf("%s: %d times gone", name, n)
		}
		if e := w.last(name); e.Kind != GroupGone || e.EndReason != Failed || e.Member != dead.Key() || e.Code != mcast.Silent || e.PSN != 0x55 {
			t.Errorf("%s: %s", name, eventString(e))
		}
	}
}

// TestForgedNotice: a Notice without the key's MAC has no effect at master and members.
func TestForgedNotice(t *testing.T) {
	w, reg := noticeWorld(t)
	rec := reg.Members[0]
	mem, at := w.members[rec.IP.String()], switchAddr(reg)
	g := mem.groups[reg.Group]
	for name, c := range map[string]struct {
		keys   Keys
		change func(*Message)
		drop   Drop
	}{
		"another key":   {Keys{7: make([]byte, 32), 8: make([]byte, 32)}, func(*Message) {}, BadMAC},
		"an old epoch":  {testAuth().Keys, func(m *Message) { m.Epoch-- }, StaleMessage},
		"another group": {testAuth().Keys, func(m *Message) { m.Group = sample(9, 2).Group }, WrongSource},
	} {
		for _, kind := range []NoticeKind{NoticeStalled, NoticeResumed, NoticeFailed} {
			m := Message{Header: Header{Epoch: g.epoch, Instance: 5, Transaction: 7, Total: 1, Group: reg.Group, ReplyTo: at},
				Body: &Notice{Kind: kind, Member: reg.Members[1].Key(), Serial: 1 << 60}}
			c.change(&m)
			b, err := Append(nil, &m, c.keys, g.key)
			if err != nil {
				t.Fatal(err)
			}
			var out Output
			if mem.Input(w.now, at, b, &out); out.Drop != c.drop || len(out.Events) > 0 {
				t.Errorf("%s, kind %d: %v, %v", name, kind, out.Drop, out.Events)
			}
		}
	}
}
