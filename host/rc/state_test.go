// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package rc

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/gleam-rdma/gleam/host/rc/dcqcn"
	"github.com/gleam-rdma/gleam/rocev2"
)

const stateNow = time.Hour

var statePosted = Posted{
	Send: func(id uint64) WR { return WR{ID: id} },
	Recv: func(id uint64) RecvWR { return RecvWR{ID: id} },
}

// fullState returns a QP in which every part of the state is there; with msg
// the responder is in the middle of such a message.
func fullState(t *testing.T, msg messageKind) *QP {
	t.Helper()
	mem := NewMemory(1)
	mr, err := mem.RegisterMR(make([]byte, 64), 0x1000, RemoteWrite)
	if err != nil {
		t.Fatal(err)
	}
	q, err := New(Config{Personality: ConnectXRepeat, PMTU: 256, LocalQPN: 0x11, DestQPN: 0x12, SendDepth: 4, RecvDepth: 4, RetryCnt: 5, RNRRetry: 5, Memory: mem,
		Congestion: &dcqcn.Config{LineRate: 1e9}})
	if err != nil {
		t.Fatal(err)
	}
	r, s := &q.requester, &q.responder
	r.enqueue(WR{ID: 1})
	r.enqueue(WR{ID: 2})
	r.una, r.nxt, r.sent, r.sinceAckReq = 0, 1, 2, 3
	r.timer.arm(stateNow + 5)
	r.rnrTimer.arm(stateNow + 6)
	r.pacerTimer.arm(stateNow + 7)
	r.sinceAckReqAt = stateNow - 8
	r.adaptive, r.resume = adaptive{wait: 10, left: 11}, 12
	*s.recvQueue.push() = RecvWR{ID: 3}
	s.ePSN, s.ackPSN, s.msn, s.nakState, s.inMessage = 7, 8, 9, nakSequence, msg
	s.placed, s.mrOffset, s.bytesLeft, s.dmaLen = 1, 2, 3, 4
	s.mr = mr
	s.ackTimer.arm(stateNow + 13)
	s.keep(&Packet{Op: rocev2.WriteMiddle, PSN: 9, AckReq: true, Payload: []byte{1, 2}})
	s.keep(&Packet{Op: rocev2.WriteOnly, PSN: 263, VA: 5, RKey: 6, DMALen: 7, Length: 8})
	return q
}

// visit calls f for every number and flag of the state below v, with a name to print. What
// is found by its ID or R_Key, and what has a test in its own package, is left out.
func visit(v reflect.Value, path string, f func(name string, v reflect.Value)) {
	switch v.Kind() {
	case reflect.Slice:
		visit(v.Index(0), path, f)
	case reflect.Pointer:
		visit(v.Elem(), path, f)
	case reflect.Struct:
		for i := range v.NumField() {
			x := v.Type().Field(i)
			switch kind, _, _ := strings.Cut(x.Tag.Get("state"), " "); kind {
			case "", "constant", "ignored", "derived", "own(head)", "own(request)", "own(region)", "own(heldPackets)":
			default:
				if !strings.HasPrefix(x.Type.String(), "dcqcn.") {
					visit(v.Field(i), path+"."+x.Name, f)
				}
			}
		}
	default:
		f(path, v)
	}
}

// TestStateHasEveryField changes each encoded field by itself: the encoding has
// to change, and SetState has to bring the change back.
func TestStateHasEveryField(t *testing.T) {
	changed := map[string]bool{}
	for _, msg := range []messageKind{noMessage, sendMessage, writeMessage} {
		plain := fullState(t, msg).AppendState(nil, stateNow)
		visit(reflect.ValueOf(fullState(t, msg)), "QP", func(name string, _ reflect.Value) {
			changed[name] = changed[name] || false
			q := fullState(t, msg)
			visit(reflect.ValueOf(q), "QP", func(n string, v reflect.Value) {
				if n == name {
					change1(v)
				}
			})
			enc := q.AppendState(nil, stateNow)
			if bytes.Equal(enc, plain) {
				return // of another kind of message
			}
			changed[name] = true
			back := fullState(t, msg)
			if rest, err := back.SetState(enc, stateNow, statePosted); err != nil || len(rest) > 0 {
				t.Errorf("%s: SetState: %d bytes left, %v", name, len(rest), err)
			} else if again := back.AppendState(nil, stateNow); !bytes.Equal(again, enc) {
				t.Errorf("%s: does not survive SetState:\n%x\n%x", name, enc, again)
			}
		})
	}
	for name, ok := range changed {
		if !ok {
			t.Errorf("%s is not in the encoding", name)
		}
	}
	if len(changed) < 31 {
		t.Errorf("only %d fields were changed", len(changed))
	}
}

// TestStateFindsTheRegion: the region of a WRITE that is under way is found by its key.
func TestStateFindsTheRegion(t *testing.T) {
	back := fullState(t, writeMessage)
	was := back.responder.mr
	back.responder.mr = nil
	if _, err := back.SetState(fullState(t, writeMessage).AppendState(nil, stateNow), stateNow, statePosted); err != nil || back.responder.mr != was {
		t.Errorf("region %p, want %p: %v", back.responder.mr, was, err)
	}
}

// change1 changes an unexported number or bool.
func change1(v reflect.Value) {
	v = reflect.NewAt(v.Type(), unsafe.Pointer(v.UnsafeAddr())).Elem()
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.Int, reflect.Int64:
		v.SetInt(v.Int() + 1)
	case reflect.Uint8:
		v.SetUint(v.Uint() ^ 1)
	default:
		v.SetUint(v.Uint() + 1)
	}
}

// TestStateGoesOn: a QP restored in the middle of a transfer goes on like the
// original.
func TestStateGoesOn(t *testing.T) {
	cfg := Config{PMTU: 256, LocalQPN: 0x11, DestQPN: 0x12, SQPSN: 0xFFFFFE, SendDepth: 4, Timeout: time.Millisecond, RetryCnt: 7}
	data := make([]byte, 1000)
	posted := Posted{
		Send: func(id uint64) WR { return WR{ID: id, Data: data, Signaled: true} },
		Recv: statePosted.Recv,
	}
	fresh := func() *QP {
		q, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		return q
	}
	a, b := fresh(), fresh()
	var oa, ob Output
	for id := range uint64(3) {
		if err := a.PostSend(posted.Send(id)); err != nil {
			t.Fatal(err)
		}
	}
	a.Transmit(stateNow, &oa, 6)
	a.Input(stateNow, &Packet{Op: 0x11, DestQP: 0x11, PSN: 0xFFFFFF, Syndrome: 0x1F}, &oa)
	if _, err := b.SetState(a.AppendState(nil, stateNow), stateNow, posted); err != nil {
		t.Fatal(err)
	}
	oa.Reset()
	for _, q := range []struct {
		*QP
		*Output
	}{{a, &oa}, {b, &ob}} {
		q.Input(stateNow, &Packet{Op: 0x11, DestQP: 0x11, PSN: 3, Syndrome: 0x60}, q.Output)
		q.Transmit(stateNow, q.Output, 100)
		q.Advance(stateNow+time.Second, q.Output)
		q.Transmit(stateNow+time.Second, q.Output, 100)
	}
	if len(oa.Packets) == 0 || len(oa.Completions) != 1 || !reflect.DeepEqual(oa, ob) {
		t.Errorf("the original: %d packets, completions %+v\nrestored: %d packets, %+v", len(oa.Packets), oa.Completions, len(ob.Packets), ob.Completions)
	}
}

func TestSetStateRefusesOtherBytes(t *testing.T) {
	enc := fullState(t, writeMessage).AppendState(nil, stateNow)
	for n := range enc {
		if _, err := fullState(t, noMessage).SetState(enc[:n], stateNow, statePosted); !errors.Is(err, errForeignState) {
			t.Fatalf("%d of %d bytes: %v", n, len(enc), err)
		}
	}
}
