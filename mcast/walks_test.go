// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/gleam-rdma/gleam/rocev2"
	"github.com/gleam-rdma/gleam/test/model/notation"
)

// Recorded walks, in testdata/walks: conversations of random commands, with what hosts may
// send and what they must not. A walk is judged like any transcript, by the ledger and the
// invariants. Recorded are the number of answers of each kind, and the digest of the whole
// conversation, so that a change of any answer shows. A test that fails logs the
// conversation, in the form of transcripts: the same run before the change has the one to
// compare it with. -rewrite records the walks anew.
//
//	walk [seeds=10] [steps=250] and the arguments and lines of the transcripts' command group
func TestRecordedWalks(t *testing.T) {
	datadriven.RunTest(t, "testdata/walks", func(t *testing.T, d *datadriven.TestData) string {
		var w strings.Builder
		a := args{t, d}
		for seed := range a.int("seeds", 10) {
			k := &walk{t: t, a: a, s: &transcript{sw: New(Limits{})}, rng: random(uint64(seed)), pmtu: a.int("pmtu", 1024)}
			done := false
			defer func() {
				if !done {
					t.Log("seed", seed, "\n", k.text.String()) // a check has failed
				}
			}()
			k.put()
			k.target, k.window = a.str("target", ""), windowOf(t, a.list("window"))
			for range a.int("steps", 250) {
				k.step()
			}
			k.do("show")
			done = true
			t.Log("seed", seed, "\n", k.text.String())
			fmt.Fprintf(&w, "seed %d: %s\n", seed, k.summary())
		}
		return w.String()
	})
}

// walk is a transcript that is made at random.
type walk struct {
	t      *testing.T
	a      args
	s      *transcript
	rng    func(int) int
	text   strings.Builder
	pmtu   int
	target string // the target key, in hexadecimal, or empty
	window Window
	inside bool // the source has begun a message
}

// put registers the group, which may have failed before.
func (k *walk) put() {
	k.text.WriteString("group\n----\n")
	k.s.ledger.open(k.s.sw)
	k.s.group(k.a, &k.text)
	k.s.answer.WriteTo(&k.text)
	k.inside = false
}

// do runs a command.
func (k *walk) do(format string, v ...any) {
	line := fmt.Sprintf(format, v...)
	cmd, rest, err := datadriven.ParseLine(line)
	if err != nil {
		k.t.Fatal(err)
	}
	k.text.WriteString(line + "\n----\n")
	k.s.run(k.t, &datadriven.TestData{Cmd: cmd, CmdArgs: rest}, &k.text)
	checkInvariants(k.t, k.s.sw.group(0))
}

// summary is the digest of the conversation, and the number of its lines by their first
// word, or by what was dropped.
func (k *walk) summary() string {
	sum, n := fnv.New32a(), map[string]int{}
	sum.Write([]byte(k.text.String()))
	for line := range strings.Lines(k.text.String()) {
		f := strings.Fields(line)
		switch {
		case len(f) < 2:
		case f[0] == "drop:":
			n[f[1]]++
		case slices.Contains([]string{"ACK", "NAK", "RNR", "CNP", "copy", "probe", "verify", "event:"}, f[0]):
			n[f[0]]++
		}
	}
	var words []string
	for w := range n {
		words = append(words, w)
	}
	slices.Sort(words)
	for i, w := range words {
		words[i] = fmt.Sprintf("%s %d", w, n[w])
	}
	return fmt.Sprintf("%08x; %s", sum.Sum32(), strings.Join(words, ", "))
}

// waits are the times that pass: those that the switch compares with, and others.
var waits = []time.Duration{
	1, time.Microsecond, cnpGap - 1, cnpGap, cnpSilence, cnpSilence + 1, MaxInOrderGap, MaxInOrderGap + 1, 300 * time.Microsecond, time.Millisecond, 2 * time.Millisecond,
	4 * time.Millisecond, 5 * time.Millisecond, 10 * time.Millisecond, quarantine - 1, quarantine, turnReserved, 2 * turnReserved, 200 * time.Millisecond,
}

func (k *walk) step() {
	g := k.s.sw.group(0)
	switch n := k.rng(100); {
	case g.is(failed) && n < 20:
		k.put()
	case n < 30:
		k.data(g)
	case n < 62:
		k.feedback(g)
	case n < 65:
		k.do("cnp from=%s", k.anybody(g))
	case n < 80:
		if at, ok := k.s.sw.NextDeadline(); ok && k.rng(2) == 0 {
			k.do("time +%v", max(at-k.s.now-time.Duration(k.rng(2)), 0))
		} else {
			k.do("%s +%v", []string{"time", "clock"}[k.rng(2)], waits[k.rng(len(waits))])
		}
	case n < 83:
		k.other(g)
	case n < 86:
		k.do("pause +%v leg=%s", waits[k.rng(10)], k.anybody(g))
	case n < 87:
		k.do("delay %s %v", k.anybody(g), waits[k.rng(10)])
	case n < 88:
		k.do("room %d", k.rng(4))
	case n < 92:
		k.do("deadline")
	case n < 94:
		k.do("show")
	case n < 96:
		k.change(g)
	default:
		k.driver(g)
	}
}

// anybody returns the name of a member, and in one of 10 n + 1 calls, for n members, a name that
// no member has.
func (k *walk) anybody(g *group) string {
	return nameOf(MemberID(k.rng(len(g.members)*10+1) / 10))
}

// data is a packet of the source or, if there is none, of any member.
func (k *walk) data(g *group) {
	if g.src.member == none {
		k.other(g)
		return
	}
	psn := g.fwd.nxt
	switch n := k.rng(40); {
	case n < 2:
		psn = psn.Add(int32(1 + k.rng(3)))
	case n < 10:
		psn = g.agg.acked.Add(int32(k.rng(int(g.fwd.nxt.Sub(g.agg.acked))+4) - 3))
	case n == 10 && k.rng(8) == 0:
		psn = g.agg.acked.Add(-int32(k.rng(60)))
	}
	k.packet(g, MemberID(g.src.member), psn)
}

// other is a packet of any member, with its next PSN or another one.
func (k *walk) other(g *group) {
	m := MemberID(k.rng(len(g.members)))
	psn := g.members[m].sqPSN
	switch k.rng(12) {
	case 0:
		psn = psn.Add(int32(k.rng(5)))
	case 1:
		psn = psn.Add(-int32(k.rng(9)) / int32(1+k.rng(9)))
	}
	k.packet(g, m, psn)
}

func (k *walk) packet(g *group, m MemberID, psn rocev2.PSN) {
	form := fmt.Sprintf("data psn=%s from=%s", notation.PSN(psn), nameOf(m))
	if k.rng(40) == 0 {
		form = fmt.Sprintf("data psn=%s from=%c", notation.PSN(psn), 'A'+k.rng(26))
	}
	if l := &g.legs[g.members[m].leg]; l.neighbor != 0 {
		form += fmt.Sprintf(" nbr=%x", uint32(l.neighbor))
	}
	for _, o := range []struct {
		of   int
		text string
	}{{8, " unverified"}, {20, " large"}, {20, " unkept"}, {99, " qpn=77"}, {99, " len=5000"}} {
		if k.rng(o.of) == 0 {
			form += o.text
		}
	}
	if k.rng(2) == 0 {
		form += " ar"
	}
	k.do("%s%s", form, k.operation())
}

// operation is the rest of a packet: mostly what continues the message under way.
func (k *walk) operation() string {
	write := k.window.Len > 0 && k.rng(3) > 0
	if k.target != "" && k.rng(3) > 0 {
		if k.rng(2) == 0 {
			return fmt.Sprintf(" op=WriteOnly va=-1 rkey=%s dma=40 targets=(B:%x:7,C:%x:8)", k.target, 0x1000*k.rng(9), 0x1000*k.rng(9))
		}
		return fmt.Sprintf(" op=WriteOnly va=%x rkey=%s dma=40", k.rng(64), k.target)
	}
	if k.rng(50) == 0 {
		ops := []string{"Read", "CompareSwap", "Flush", "SendOnlyInv", "ReadRespOnly", "Unknown", "SendMiddle", "SendLast", "WriteLast", "SendFirst"}
		return " op=" + ops[k.rng(len(ops))]
	}
	if k.inside {
		kind := "Middle"
		if k.rng(2) == 0 {
			kind, k.inside = "Last", false
		}
		if write {
			return " op=Write" + kind
		}
		return " op=Send" + kind
	}
	k.inside = k.rng(3) == 0
	switch {
	case write && k.inside:
		return fmt.Sprintf(" op=WriteFirst va=%x rkey=%x dma=%d", k.window.Base, k.window.RKey, 2*k.pmtu)
	case write:
		return fmt.Sprintf(" op=WriteOnly va=%x rkey=%x dma=%d", k.window.Base+uint64(k.rng(int(k.window.Len))), k.window.RKey, k.rng(40))
	case k.inside:
		return " op=SendFirst"
	}
	return ""
}

// feedback is an acknowledgement of a leg, in the PSNs of its member.
func (k *walk) feedback(g *group) {
	i := k.rng(len(g.legs))
	if int32(i) == g.src.leg && k.rng(9) > 0 {
		i = (i + 1) % len(g.legs)
	}
	b, l := g.ackStateOf(i), &g.legs[i]
	from := nameOf(l.member)
	if l.neighbor != 0 {
		from = fmt.Sprintf("%s nbr=%x", nameOf(MemberID(max(g.src.member, 0))), uint32(l.neighbor))
	}
	psn := b.acked.Next()
	if ahead := int(g.fwd.nxt.Sub(psn)); ahead > 0 && k.rng(2) == 0 {
		psn = psn.Add(int32(k.rng(ahead)))
	} else if ahead == 0 {
		psn = psn.Add(int32(k.rng(3)/2 - k.rng(4)))
	}
	psn = (psn + rocev2.PSN(b.delta)) & rocev2.PSNMask
	if b.flags&isReceiver == 0 { // the answer to a probe, or late
		psn = g.members[l.member].ePSN.Add(-1)
	}
	more := []string{"", "", " becn", " unverified"}[k.rng(4)]
	switch n := k.rng(300); {
	case n < 60:
		k.do("nak psn=%s from=%s%s", notation.PSN(psn), from, more)
	case n < 80:
		k.do("rnr psn=%s from=%s code=%x%s", notation.PSN(psn), from, k.rng(32), more)
	case n == 80:
		k.do("aeth psn=%s from=%s code=6%x%s", notation.PSN(psn), from, 1+k.rng(4), more)
	case n == 81:
		k.do("aeth psn=%s from=%s code=80", notation.PSN(psn), from)
	default:
		k.do("ack psn=%s from=%s msn=%d%s", notation.PSN(psn), from, k.rng(3), more)
	}
}

// change is a change by the control plane.
func (k *walk) change(g *group) {
	switch n := len(g.members); {
	case n < 7 && k.rng(2) == 0:
		k.do("add name=%s rq=%s", nameOf(MemberID(n)), notation.PSN(rocev2.PSN(k.rng(1<<24))))
	case k.rng(6) == 0:
		m := MemberID(k.rng(n))
		if int32(m) != g.src.member || !g.unproven(int(g.members[m].leg)) {
			k.do("remove name=%s", nameOf(m))
		}
	}
}

// driver is what a driver tells the switch: a copy that a port did not take, or the room for
// copies of retained frames.
func (k *walk) driver(g *group) {
	switch k.rng(8) {
	case 0:
		k.s.out.MaxResends = k.rng(4) - 1
		fmt.Fprintf(&k.text, "room for %d\n", k.s.out.MaxResends)
		return
	case 1, 2:
		busy, room, until := LegID(k.rng(len(g.legs))), k.rng(4)-1, k.s.now+waits[k.rng(12)]
		fmt.Fprintf(&k.text, "room for %d toward %s until %v\n", room, k.s.legs[busy], until)
		k.s.out.PortRoom = func(_ GroupID, leg LegID) (int, time.Duration) {
			if leg != busy || k.s.now >= until {
				return 5, 0
			}
			return room, until
		}
		return
	}
	if c := k.s.out.Copies; len(c) > 0 && k.rng(3) > 0 {
		x, until := c[k.rng(len(c))], waits[k.rng(12)]
		k.s.out.Copies = nil
		fmt.Fprintf(&k.text, "refused: %s %s for %v: %v\n", k.s.legs[x.Leg], notation.PSN(x.PSN), until, k.s.sw.Requeue(&x, k.s.now+until))
	}
	checkInvariants(k.t, k.s.sw.group(0))
}
