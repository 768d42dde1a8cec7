// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package record

import (
	"bytes"
	"encoding/gob"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// net is a group around a recorded core: members that lose copies, and acknowledge when they like.
type net struct {
	t      *testing.T
	rng    *rand.Rand
	s      *Switch
	out    mcast.Output
	now    time.Duration
	spec   mcast.GroupSpec
	send   []rocev2.PSN // the members' next PSNs
	expect []rocev2.PSN
	frame  mcast.Handle
}

// leaves is the member that leaves.
const leaves = 4

var groupIP = netip.MustParseAddr("10.77.254.1")

func memberSpec(i int) mcast.MemberSpec {
	psn := rocev2.PSN(0xfffff0 + 0x1000*i)
	return mcast.MemberSpec{Leg: mcast.LegID(i), MemberRecord: mcast.MemberRecord{
		IP: netip.AddrFrom4([4]byte{10, 77, 0, byte(i + 1)}), QPN: rocev2.QPN(0x100 + i), SQPSN: psn & rocev2.PSNMask, RQPSN: (psn + 7) & rocev2.PSNMask,
		Window: mcast.Window{Base: uint64(i) << 32, Len: 1 << 20, RKey: uint32(i)},
	}}
}

// recording returns the recording of a group of five members: two turns, with a member that leaves and one that
// joins in the first, and packets that are lost.
func recording(t *testing.T, policy mcast.Policy) []byte {
	var b bytes.Buffer
	n := &net{t: t, rng: rand.New(rand.NewPCG(1, 2)), s: to(&b, mcast.Limits{Groups: 2, Members: 8})}
	n.out.PortRoom = func(mcast.GroupID, mcast.LegID) (int, time.Duration) { return 100, 0 }
	n.spec = mcast.GroupSpec{
		IP: groupIP, GroupParams: mcast.GroupParams{QPN: 0x4711, PathMTU: 1024, Policy: policy},
		Repair: mcast.RepairSpec{Bytes: 1 << 20, Timeout: time.Millisecond, Tries: 4}, Window: mcast.Window{Base: 1 << 40, Len: 1 << 20, RKey: 99},
	}
	if policy == mcast.Quorum {
		n.spec.Quorum = 2
	}
	for i := range 5 {
		n.spec.Legs = append(n.spec.Legs, mcast.LegSpec{})
		n.join(i)
		n.spec.Members = append(n.spec.Members, memberSpec(i))
	}
	n.apply(mcast.PutGroup{Spec: n.spec})
	for i := range 200 {
		if i == 50 {
			n.apply(mcast.RemoveMember{Member: leaves})
		}
		if i == 100 {
			n.join(5)
			n.apply(mcast.AddMember{Member: memberSpec(5)})
		}
		n.data(0)
	}
	n.drain()
	for range 100 {
		n.data(1)
	}
	n.drain()
	return b.Bytes()
}

func (n *net) join(i int) {
	m := memberSpec(i)
	n.send, n.expect = append(n.send, m.SQPSN), append(n.expect, m.RQPSN)
}

func (n *net) apply(op mcast.Op) {
	if err := n.s.Apply(n.now, op, &n.out); err != nil {
		n.t.Fatal(err)
	}
	n.deliver()
}

// data has member k send a WRITE, after which some of the others may acknowledge what they have.
func (n *net) data(k int) {
	n.now += time.Microsecond
	n.frame++
	m := memberSpec(k)
	n.input(&mcast.Packet{
		Src: m.IP, Op: rocev2.WriteOnly, PSN: n.send[k], AckReq: true, Payload: 8, VA: 1<<40 + 64, RKey: 99, DMALen: 8, Frame: n.frame, RetainBytes: 4096,
	})
	n.send[k] = n.send[k].Next()
	n.acknowledge(k, 0.5)
}

func (n *net) acknowledge(source int, part float64) {
	for i := range n.expect {
		if i != source && n.rng.Float64() < part {
			n.input(&mcast.Packet{Src: memberSpec(i).IP, Op: rocev2.Acknowledge, PSN: n.expect[i].Prev(), Syndrome: rocev2.SyndromeACK, Verified: true})
		}
	}
}

// drain lets time pass until every member has everything.
func (n *net) drain() {
	for range 50 {
		n.now += time.Millisecond
		n.s.Advance(n.now, &n.out)
		n.deliver()
		n.acknowledge(none, 1)
	}
}

func (n *net) input(p *mcast.Packet) {
	p.Group, p.DestQP = groupIP, n.spec.QPN
	if n.s.InputGroup(n.now, 0, p, &n.out); n.out.NeedVerify {
		p.Verified = true
		n.s.InputGroup(n.now, 0, p, &n.out)
	}
	n.deliver()
}

// deliver brings nine copies of ten to the members that are there.
func (n *net) deliver() {
	var naks []int
	for _, c := range n.out.Copies {
		i := int(c.Leg)
		if n.rng.IntN(10) > 0 && c.PSN == n.expect[i] {
			n.expect[i] = n.expect[i].Next()
		} else if n.expect[i].Less(c.PSN) {
			naks = append(naks, i)
		}
	}
	for _, i := range naks {
		n.input(&mcast.Packet{Src: memberSpec(i).IP, Op: rocev2.Acknowledge, PSN: n.expect[i], Syndrome: rocev2.SyndromeNAKSequence, Verified: true})
	}
}

// The core that was recorded keeps the promise, and a recording may end anywhere.
func TestRecording(t *testing.T) {
	for _, policy := range []mcast.Policy{mcast.Strict, mcast.Evict, mcast.Quorum} {
		r := recording(t, policy)
		n, err := check(bytes.NewReader(r), play)
		if err != nil || n.packets < 1000 || n.raised < 50 {
			t.Errorf("policy %d: %v: %v", policy, n, err)
		}
		t.Logf("policy %d: %v", policy, n)
		for end := 0; end < len(r); end += 9973 {
			if _, err := check(bytes.NewReader(r[:end]), play); err != nil {
				t.Errorf("policy %d, the first %d bytes: %v", policy, end, err)
			}
		}
	}
}

// Without the acknowledgements of one member, from some time on, the recording is not that of the core.
func TestDoctored(t *testing.T) {
	dec := gob.NewDecoder(bytes.NewReader(recording(t, mcast.Strict)))
	var b bytes.Buffer
	var limits mcast.Limits
	if err := dec.Decode(&limits); err != nil {
		t.Fatal(err)
	}
	enc, removed := gob.NewEncoder(&b), 0
	_ = enc.Encode(limits)
	for {
		var c call
		if dec.Decode(&c) != nil {
			break
		}
		if p := c.Packet; p != nil && p.Op == rocev2.Acknowledge && p.Src == memberSpec(2).IP && c.Now > 100*time.Microsecond {
			removed++
			continue
		}
		_ = enc.Encode(&c)
	}
	if _, err := check(&b, play); removed == 0 || err == nil || !strings.Contains(err.Error(), "answers otherwise") {
		t.Errorf("%d acknowledgements removed: %v", removed, err)
	}
}

// acksOfAll returns the acknowledgement p of a member as one of each member in turn: a core that hears them takes
// what one receiver has for what all have.
func acksOfAll(p *mcast.Packet) (all []mcast.Packet) {
	for i := range 5 {
		for k := range 5 {
			if m := memberSpec(k); m.IP == p.Src {
				x := *p
				x.Src, x.PSN = memberSpec(i).IP, p.PSN.Add(memberSpec(i).RQPSN.Sub(m.RQPSN))
				all = append(all, x)
			}
		}
	}
	return all
}

// Each mistake of a core is found, and as what it is.
func TestMistakes(t *testing.T) {
	isACK := func(c *call) bool { return c.Packet != nil && c.Packet.Op == rocev2.Acknowledge }
	// acks and copies are cores that send others.
	acks := func(change func(*mcast.Feedback)) func(*mcast.Switch, *call, *mcast.Output) {
		return func(s *mcast.Switch, c *call, out *mcast.Output) {
			play(s, c, out)
			for i := range out.Feedback {
				if c.Now > 90*time.Microsecond {
					change(&out.Feedback[i])
				}
			}
		}
	}
	copies := func(change func(*mcast.Copy)) func(*mcast.Switch, *call, *mcast.Output) {
		return func(s *mcast.Switch, c *call, out *mcast.Output) {
			play(s, c, out)
			if len(out.Copies) > 0 && c.Now > 90*time.Microsecond {
				change(&out.Copies[len(out.Copies)-1])
			}
		}
	}
	first := func(s *mcast.Switch, c *call, out *mcast.Output) {
		play(s, c, out)
		if !isACK(c) || c.Now > 100*time.Microsecond {
			return
		}
		for _, p := range acksOfAll(c.Packet) {
			var more mcast.Output
			s.InputGroup(c.Now, c.Group, &p, &more)
			out.Feedback = append(out.Feedback, more.Feedback...)
		}
	}
	for _, m := range []struct {
		name   string
		policy mcast.Policy
		play   func(*mcast.Switch, *call, *mcast.Output)
		want   string
	}{
		{"the ACK of the first receiver, not of the last", mcast.Strict, first, "has acknowledged"},
		{"the ACK of fewer receivers than the quorum", mcast.Quorum, first, "receivers of 2 have it"},
		{"an ACK of what was not sent", mcast.Strict, acks(func(f *mcast.Feedback) { f.PSN = f.PSN.Add(500) }), "has not been forwarded"},
		{"an ACK that falls back", mcast.Strict, acks(func(f *mcast.Feedback) { f.PSN = f.PSN.Add(-60) }), "is acknowledged"},
		{"an ACK for a member that is not the source", mcast.Strict, acks(func(f *mcast.Feedback) { f.To, f.PSN = 3, memberSpec(3).SQPSN }), "its turn ended before"},
		{"a copy with the source's PSN", mcast.Strict, copies(func(x *mcast.Copy) { x.PSN = x.PSN.Add(-1) }), "has PSN"},
		{"a copy with the memory of another", mcast.Strict, copies(func(x *mcast.Copy) { x.RKey-- }), "has not the memory"},
		{"a copy for the source", mcast.Strict, copies(func(x *mcast.Copy) { x.Leg = 0 }), "a copy for the source"},
		{"a copy of a frame that is free", mcast.Strict, copies(func(x *mcast.Copy) { x.Frame = 1 }), "not retained"},
		{"copies for a member that has left", mcast.Strict, func(s *mcast.Switch, c *call, out *mcast.Output) {
			if _, leaves := c.Op.(mcast.RemoveMember); !leaves {
				play(s, c, out)
			}
		}, "behind which there is no member"},
		{"a member that is left out", mcast.Strict, func(s *mcast.Switch, c *call, out *mcast.Output) {
			play(s, c, out)
			kept := out.Copies[:0]
			for _, x := range out.Copies {
				if x.Leg != 2 {
					kept = append(kept, x)
				}
			}
			out.Copies = kept
		}, "has got nothing since"},
		{"a turn that begins at another PSN", mcast.Strict, func(s *mcast.Switch, c *call, out *mcast.Output) {
			play(s, c, out)
			for i := range out.Events {
				out.Events[i].PSN++
			}
		}, "its next PSN is"},
		{"a turn that begins before the last is complete", mcast.Strict, func(s *mcast.Switch, c *call, out *mcast.Output) {
			play(s, c, out)
			if isACK(c) && len(out.Feedback) == 0 && c.Now > 90*time.Microsecond {
				out.Events = append(out.Events, mcast.Event{Kind: mcast.SourceChanged, Member: 1, PSN: memberSpec(1).SQPSN})
			}
		}, "ends, and leg"},
	} {
		_, err := check(bytes.NewReader(recording(t, m.policy)), m.play)
		if err == nil || !strings.Contains(err.Error(), m.want) {
			t.Errorf("%s: want %q: %v", m.name, m.want, err)
		}
	}
}

// An ACK of the fast path beyond what a leg has is found with the next report, unless that leg has all that was
// reported.
func TestFastAnswers(t *testing.T) {
	for _, tt := range []struct {
		leg, sent, nxt rocev2.PSN
		wrong          bool
	}{{leg: 20, sent: 20, nxt: 31}, {leg: 19, sent: 20, nxt: 31, wrong: true}, {leg: 19, sent: 20, nxt: 20}} {
		g := newGroup(mcast.GroupSpec{Legs: make([]mcast.LegSpec, 3), Members: []mcast.MemberSpec{memberSpec(0), memberSpec(1), memberSpec(2)}})
		g.begin(0, 10)
		g.start(1, 10, 5)
		g.start(2, 10, 7)
		g.nxt = tt.nxt
		g.has(1, 30)
		if err := g.answered(mcast.SentACK{PSN: tt.sent, Count: 1}); err != nil {
			t.Errorf("%+v: found before the next report: %v", tt, err)
		}
		g.has(1, tt.nxt.Prev())
		g.has(2, tt.leg)
		if err := g.answered(mcast.SentACK{}); (err != nil) != tt.wrong {
			t.Errorf("%+v: %v", tt, err)
		}
	}
}

// Every method of the core that may change it is recorded.
func TestEveryCallIsRecorded(t *testing.T) {
	reads := map[string]bool{"Lookup": true, "Group": true, "NextDeadline": true, "Due": true}
	models := map[string]bool{"AppendState": true, "SetState": true, "RenumberReports": true}
	of := reflect.TypeFor[*Switch]()
	for m := range reflect.TypeFor[*mcast.Switch]().NumMethod() {
		name := reflect.TypeFor[*mcast.Switch]().Method(m).Name
		own, _ := of.MethodByName(name)
		file, _ := runtime.FuncForPC(own.Func.Pointer()).FileLine(own.Func.Pointer())
		if promoted := strings.Contains(file, "autogenerated"); promoted != (reads[name] || models[name]) {
			t.Errorf("%s: recorded: %v", name, !promoted)
		}
	}
}

// A digest shows every field of an Output that the core sets.
func TestDigest(t *testing.T) {
	c := &call{Kind: advance}
	none, _ := c.digest(&mcast.Output{}, nil)
	for i := range reflect.TypeFor[mcast.Output]().NumField() {
		var out mcast.Output
		f, v := reflect.TypeFor[mcast.Output]().Field(i), reflect.ValueOf(&out).Elem().Field(i)
		switch {
		case !f.IsExported() || f.Name == "MaxResends" || f.Name == "PortRoom":
			continue
		case v.Kind() == reflect.Slice:
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		case v.Kind() == reflect.Bool:
			v.SetBool(true)
		default:
			v.SetUint(1)
		}
		if d, _ := c.digest(&out, nil); d == none {
			t.Errorf("%s is not in the digest", f.Name)
		}
	}
}
