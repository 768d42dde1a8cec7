// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"bytes"
	"errors"
	"reflect"
	"testing"
	"time"
	"unsafe"

	"github.com/gleam-rdma/gleam/rocev2"
)

// What AppendState does with each field of the structs of a switch.
const (
	encoded  = "encoded"  // state: in the encoding, and SetState brings it back
	constant = "constant" // set by Apply, and by nothing else
	derived  = "derived"  // follows from encoded ones
	ignored  = "ignored"  // counters and scratch space: influence nothing
	deeper   = "deeper"   // has fields that are listed themselves
)

var stateFields = map[reflect.Type]map[string]string{
	reflect.TypeFor[Switch](): {
		"limits": constant, "byIP": constant, "groups": deeper, "timers": deeper, "unknown": ignored,
		"repair": derived, "pools": ignored, "blank": constant, "scratch": ignored, "actives": ignored,
		"departed": deeper,
		"hearing":  constant, // set by the driver; only what changes in it meanwhile counts
	},
	reflect.TypeFor[timers](): {"heap": deeper, "place": derived, "due": ignored},
	reflect.TypeFor[timer]():  {"at": encoded, "id": derived},
	reflect.TypeFor[group](): {
		"srcKey": derived, "srcNbr": derived, "src": encoded, "srcLeg": derived,
		"a": encoded, "hi": encoded, "prev": encoded, "nout": encoded, "nsev": encoded, "seen": encoded,
		"muted": encoded, "quietTill": encoded, "past": encoded, "prevAt": encoded, "stallTime": constant, "awaited": encoded, "turnTime": constant, "turn": deeper, "hasPrev": encoded, "open": encoded, "dead": encoded, "becn": encoded, "policy": constant,
		"low": encoded, "slack": encoded, "nrecv": encoded, "nfresh": encoded, "npend": encoded, "njoin": encoded, "nowin": encoded,
		"qpn": constant, "pmtu": constant, "windowed": constant, "window": constant, "refused": deeper, "write": deeper,
		"branches": deeper, "tracks": deeper, "legs": deeper, "members": deeper, "byIP": constant, "msgs": deeper,
		"failPSN": encoded, "failCode": encoded, "told": encoded,
		"best": encoded, "bestSeen": encoded, "passed": encoded, "hasPass": encoded,
		"extra": deeper, "quorum": constant, "keep": constant, "lagPSNs": constant, "least": encoded, "freshTo": encoded,
		"lagTime": constant, "period": constant, "deadAfter": constant, "deadMost": constant, "sw": constant, "deadline": encoded, "armed": encoded, "rewound": encoded,
		"id": constant, "ip": constant, "count": ignored, "outcomes": ignored, "generation": constant,
		"targetKey": constant, "targets": deeper,
		"repairTimeout": constant, "tries": constant, "store": deeper, "nlate": encoded, "asked": encoded, "timing": encoded, "timed": encoded, "timedAt": encoded, "timedIn": encoded,
		"tending": encoded, "tendAt": encoded, "numbers": deeper, "checks": deeper,
	},
	reflect.TypeFor[numbering](): {
		"every": constant, "pending": encoded, "wait": encoded, "rounds": encoded, "next": encoded,
		"armed": encoded, "at": encoded, "held": encoded, "since": encoded, "resume": encoded,
		"gap": encoded, "gapFrom": encoded, "gapNext": encoded, "later": encoded,
	},
	reflect.TypeFor[verification](): {
		"pending": encoded, "fresh": encoded, "wrong": encoded, "expects": encoded, "probes": encoded, "rxe": encoded, "before": encoded, "sent": encoded, "empty": encoded,
		"back": encoded, "once": encoded, "twice": encoded,
	},
	reflect.TypeFor[departed]():  {"ring": deeper, "first": derived, "n": encoded, "lost": encoded},
	reflect.TypeFor[departure](): {"group": deeper, "member": deeper, "port": encoded, "until": encoded, "unheard": derived},
	reflect.TypeFor[addrKey]():   {"hi": encoded, "lo": encoded},
	reflect.TypeFor[store]():     {"ring": deeper, "low": encoded, "whole": encoded, "bytes": derived, "limit": constant, "high": ignored, "sw": constant},
	reflect.TypeFor[stored]():    {"va": encoded, "frame": encoded, "bytes": encoded, "how": encoded, "ackReq": encoded},
	reflect.TypeFor[mending](): {
		"next": encoded, "sent": encoded, "asked": encoded, "again": encoded, "probing": encoded, "quiet": encoded, "burst": encoded, "left": encoded, "led": encoded,
		"tries": encoded, "hold": encoded, "waited": encoded, "watch": encoded, "owed": encoded, "rtt": encoded, "rttVar": encoded,
	},
	reflect.TypeFor[targets](): {"base": deeper, "ring": deeper, "first": derived, "n": encoded, "named": encoded},
	reflect.TypeFor[turn]():    {"next": encoded, "asked": encoded, "since": encoded, "ends": encoded, "over": encoded, "held": encoded, "misses": encoded},
	reflect.TypeFor[update]():  {"psn": encoded, "legs": deeper},
	reflect.TypeFor[target]():  {"va": encoded, "rkey": encoded, "set": encoded},
	reflect.TypeFor[branch]():  {"a": encoded, "delta": encoded, "bits": encoded, "pend": encoded, "info": encoded},
	reflect.TypeFor[leg](): {
		"base": constant, "rkey": constant, "neighbor": constant, "port": constant, "windowed": constant, "member": encoded, "members": encoded, "joining": encoded,
	},
	reflect.TypeFor[track](): {
		"weight": encoded, "weighed": encoded, "heard": encoded, "watch": encoded, "watched": encoded, "mark": encoded, "marked": encoded,
		"mend": deeper, "unheard": encoded, "repeated": encoded, "first": encoded, "last": encoded, "from": encoded,
	},
	reflect.TypeFor[member](): {
		"ip": constant, "qpn": constant, "leg": constant, "live": encoded, "receiveOnly": constant, "past": encoded, "p": encoded, "r": encoded, "msgs": encoded,
	},
	reflect.TypeFor[extra]():      {"forwards": constant, "history": deeper},
	reflect.TypeFor[history]():    {"quietTill": encoded, "waits": encoded, "refused": encoded},
	reflect.TypeFor[writing]():    {"known": encoded, "first": encoded, "bytes": encoded},
	reflect.TypeFor[refusal]():    {"psn": encoded, "code": encoded, "reason": encoded},
	reflect.TypeFor[messages]():   {"done": encoded, "first": derived, "n": encoded, "ends": deeper, "spare": constant},
	reflect.TypeFor[messageEnd](): {"psn": encoded, "count": encoded},
}

const stateNow = time.Hour

// fullState returns a switch in which every part of the state is there.
func fullState(t *testing.T) *Switch {
	t.Helper()
	s := New(Limits{})
	spec := goodSpec()
	spec.ID, spec.Legs, spec.Members = 0, spec.Legs[:2], spec.Members[:2]
	spec.Legs = append(spec.Legs, LegSpec{})
	spec.Members = append(spec.Members, MemberSpec{IP: ipOf("C"), QPN: 0x11, Leg: 2})
	spec.Policy, spec.Quorum, spec.DeadAfter, spec.LagPSNs, spec.LagTime = Quorum, 1, time.Second, 5, time.Second
	spec.PSNProbe = time.Millisecond
	spec.Repair = RepairSpec{Bytes: 8192, Timeout: time.Millisecond, Tries: 3}
	var out Output
	if err := s.Apply(stateNow, PutGroup{spec}, &out); err != nil {
		t.Fatal(err)
	}
	s.timers.reset()
	s.timers.by(0, stateNow+1)
	s.groups[0].muted, s.groups[0].quietTill, s.groups[0].extra = true, stateNow+3, &extra{history: []history{{quietTill: stateNow + 4, refused: true}, {}, {}}}
	g := s.groups[0]
	g.activate(stateNow)
	g.src, g.srcLeg, g.srcKey = 0, 0, g.members[0].ip
	g.newHistory(0).waits, g.newHistory(1).waits = stateNow-8, stateNow-9
	g.turn = turn{next: 1, asked: stateNow - 5, since: stateNow - 8, ends: stateNow - 5, over: true, held: stateNow - 4, misses: 2}
	g.prevAt, g.awaited = stateNow-50*time.Microsecond, stateNow-3
	g.a, g.hi, g.prev, g.hasPrev, g.nout, g.nsev, g.seen = 4, 9, 7, true, 5, sevRNR, true
	g.low, g.slack, g.nrecv, g.nfresh, g.npend = 1, 1, 2, 1, 1
	g.least, g.freshTo = 4, 8
	g.refused = refusal{8, 0x61, BadLength}
	g.write = writing{true, 7, 2000}
	g.dead, g.failPSN, g.failCode = true, 5, 0x62
	g.best, g.bestSeen, g.passed, g.hasPass = 1, stateNow-3, stateNow-2, true
	g.armed, g.deadline = true, stateNow+2
	for i := range g.branches {
		g.branches[i] = branch{a: 4, delta: 2, bits: receiving | rewrites | late, pend: sevRNR, info: 0x21}
		l := &g.tracks[i]
		l.weight, l.weighed, l.heard, l.watch, l.watched, l.mark, l.marked = 300, stateNow-5, stateNow-6, 6, stateNow-7, 4, stateNow-8
		l.repeated, l.first, l.last = true, 5, 6
		l.mend = mending{
			next: 6, sent: 7, asked: 6, burst: 16, left: 3, tries: 2, hold: stateNow + 4, waited: 9, watch: 8, owed: stateNow - 3, rtt: 11, rttVar: 12,
		}
	}
	for i := range g.legs {
		g.checks[i] = verification{pending: true, fresh: true, before: 7, rxe: true, sent: 3, empty: 2, wrong: true, expects: 5, probes: 1,
			back: true, once: true, twice: true}
		g.tracks[i].from = stateNow + 7
	}
	s.departed.n, s.departed.lost = 1, stateNow+8
	for i := range 2 {
		s.departed.ring[i] = departure{addrKey{1, 2}, addrKey{3, 4}, 5, stateNow + 9, 0}
	}
	g.numbers = numbering{every: g.numbers.every, pending: 2, wait: 3, rounds: 2, next: 1, armed: true, at: stateNow + 6, held: true, since: stateNow - 9, gap: true, gapFrom: 4, gapNext: 6, later: stateNow + 2}
	g.nlate, g.asked, g.timing, g.timed, g.timedAt, g.tending, g.tendAt = 2, 8, true, 8, stateNow-4, true, stateNow+3
	g.store.low = 5
	g.store.reach(4)
	*g.store.at(8) = stored{va: 1 << 40, frame: 3, bytes: 100, how: byWindow, ackReq: true}
	g.store.low, g.store.whole, g.store.bytes, s.repair.used = 5, 8, 100, 100
	g.targets = newTargets(len(g.legs))
	g.targets.base[0] = target{1 << 40, 7, true}
	g.targets.begin(6).legs[0] = target{1 << 41, 8, true}
	g.msgs.done = 3
	g.msgs.extend(6)
	g.msgs.extend(8)
	return s
}

// visit calls f for every field of x below v, with a name to print.
func visit(v reflect.Value, path string, f func(name, class string, v reflect.Value)) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			visit(v.Elem(), path, f)
		}
	case reflect.Slice, reflect.Array:
		if v.Len() > 0 {
			visit(v.Index(0), path, f)
		}
	case reflect.Struct:
		fields := stateFields[v.Type()]
		for i := range v.NumField() {
			name := v.Type().Field(i).Name
			class := fields[name]
			f(path+"."+name, class, v.Field(i))
			if class == deeper {
				visit(v.Field(i), path+"."+name, f)
			}
		}
	}
}

// TestStateKnowsEveryField fails when a struct of the switch has a field that
// AppendState was not told about: encode it there and in SetState, or list here
// why it need not be.
func TestStateKnowsEveryField(t *testing.T) {
	for typ, fields := range stateFields {
		for i := range typ.NumField() {
			if name := typ.Field(i).Name; fields[name] == "" {
				t.Errorf("%v.%s is not in the encoding of states: add it to state.go and to stateFields", typ, name)
			}
		}
		for name := range fields {
			if _, ok := typ.FieldByName(name); !ok {
				t.Errorf("%v.%s is no field any more", typ, name)
			}
		}
	}
}

// TestStateHasEveryField changes each encoded field by itself: the encoding has
// to change, and SetState has to bring the change back.
func TestStateHasEveryField(t *testing.T) {
	plain := fullState(t).AppendState(nil, stateNow)
	count := 0
	visit(reflect.ValueOf(fullState(t)), "Switch", func(name, class string, _ reflect.Value) {
		if class != encoded {
			return
		}
		count++
		s := fullState(t)
		visit(reflect.ValueOf(s), "Switch", func(n, _ string, v reflect.Value) {
			if n == name {
				change1(v)
			}
		})
		enc := s.AppendState(nil, stateNow)
		if bytes.Equal(enc, plain) {
			t.Errorf("%s is not in the encoding", name)
			return
		}
		back := fullState(t)
		if rest, err := back.SetState(enc, stateNow); err != nil || len(rest) > 0 {
			t.Errorf("%s: SetState: %d bytes left, %v", name, len(rest), err)
		} else if again := back.AppendState(nil, stateNow); !bytes.Equal(again, enc) {
			t.Errorf("%s: does not survive SetState:\n%x\n%x", name, enc, again)
		}
	})
	if count < 50 {
		t.Errorf("only %d fields were changed", count)
	}
}

// change1 changes an unexported number or bool; a bit of branch.bits that
// leaves the rest of its meaning alone.
func change1(v reflect.Value) {
	v = reflect.NewAt(v.Type(), unsafe.Pointer(v.UnsafeAddr())).Elem()
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(v.Int() + 1)
	case reflect.Uint8:
		v.SetUint(v.Uint() ^ 1)
	default:
		v.SetUint(v.Uint() + 1)
	}
}

// TestStateMovesInTime: a state that is set at another time behaves the same, as
// much later.
func TestStateMovesInTime(t *testing.T) {
	s, later := fullState(t), fullState(t)
	enc := s.AppendState(nil, stateNow)
	if _, err := later.SetState(enc, stateNow+time.Minute); err != nil {
		t.Fatal(err)
	}
	if got := later.AppendState(nil, stateNow+time.Minute); !bytes.Equal(got, enc) {
		t.Errorf("got  %x\nwant %x", got, enc)
	}
	at, ok := later.NextDeadline()
	if !ok || at != stateNow+time.Minute+1 {
		t.Errorf("next deadline %v, %v", at, ok)
	}
}

func TestSetStateRefusesOtherBytes(t *testing.T) {
	enc := fullState(t).AppendState(nil, stateNow)
	for n := range enc {
		if _, err := fullState(t).SetState(enc[:n], stateNow); !errors.Is(err, errState) {
			t.Fatalf("%d of %d bytes: %v", n, len(enc), err)
		}
	}
	bad := bytes.Clone(enc)
	bad[3] = 200 // the source's index; the group's timer takes three bytes at most
	s := fullState(t)
	_, _ = s.SetState(bad, stateNow) // must not panic, whatever it says
	if rest, err := fullState(t).SetState(append(enc, 1, 2), stateNow); err != nil || len(rest) != 2 {
		t.Errorf("%d bytes left, %v", len(rest), err)
	}
	_ = rocev2.PSN(0)
}
