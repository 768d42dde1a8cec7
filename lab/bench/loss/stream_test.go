// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package loss

import (
	"context"
	"encoding/binary"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gleam-rdma/gleam/host/endpoint"
	"github.com/gleam-rdma/gleam/lab/testbed"
)

// memory is an endpoint.MR without a device.
type memory struct {
	endpoint.MR
	b []byte
}

func (m memory) Bytes() []byte { return m.b }
func (m memory) Len() int      { return len(m.b) }

// loop is a queue pair that delivers what is posted, one message in each
// interval, into its sink's memory.
type loop struct {
	endpoint.QP
	t        *testing.T
	interval time.Duration
	sends    chan endpoint.SendWR
	most     int
	sink     *receiver
	fail     endpoint.Status
}

func (l *loop) PostSend(wrs ...endpoint.SendWR) (int, error) {
	for _, wr := range wrs {
		l.sends <- wr
	}
	l.most = max(l.most, len(l.sends))
	return len(wrs), nil
}

func (l *loop) Poll(ctx context.Context, c []endpoint.Completion) (int, error) {
	select {
	case wr := <-l.sends:
		time.Sleep(l.interval)
		c[0] = endpoint.Completion{ID: wr.ID, Op: endpoint.SendDone, Status: endpoint.Success}
		if l.fail != endpoint.Success {
			c[0].Status = l.fail
		}
		if l.sink != nil {
			at := int(wr.ID%l.sink.slots) * l.sink.size
			copy(l.sink.mr.Bytes()[at:at+l.sink.size], wr.Local.MR.Bytes()[wr.Local.Offset:])
			got := endpoint.Completion{ID: wr.ID, Op: endpoint.Recv, Status: endpoint.Success, Len: wr.Local.Len}
			if err := l.sink.compare(wr.ID, got); err != nil {
				l.t.Error(err)
			}
		}
		return 1, nil
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
}

const testSize = 64

func newLoop(t *testing.T, interval time.Duration) (*loop, *source) {
	l := &loop{t: t, interval: interval, sends: make(chan endpoint.SendWR, 1000)}
	mem := memory{b: make([]byte, 8*testSize)}
	_, _ = testbed.Random(3).Read(mem.b)
	src := newSource(l, mem, testSize)
	l.sink = &receiver{name: "h2", mr: memory{b: make([]byte, 16*testSize)}, size: testSize, sources: src, slots: 16}
	return l, src
}

func TestSourceByTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, src := newLoop(t, time.Millisecond)
		for range 2 { // the numbers go on
			r, err := src.run(t.Context(), 100*time.Millisecond, 0, 8)
			if err != nil {
				t.Fatal(err)
			}
			// 100 are complete in time, and those under way then are waited for.
			if r.delivered != 100 || r.messages != 107 || len(r.latencies) != r.messages || r.seconds != 0.1 {
				t.Errorf("%d counted, %d messages, %d latencies, %v s", r.delivered, r.messages, len(r.latencies), r.seconds)
			}
			if g := r.goodput(testSize); g != 1000*testSize {
				t.Errorf("goodput %v", g)
			}
			if r.latencies[0] != time.Millisecond || r.latencies[50] != 8*time.Millisecond {
				t.Errorf("latencies %v, later %v", r.latencies[0], r.latencies[50])
			}
			if l.most != 8 || len(l.sends) != 0 {
				t.Errorf("%d messages at a time, %d left", l.most, len(l.sends))
			}
		}
		if src.seq != 214 {
			t.Errorf("%d messages in all", src.seq)
		}
	})
}

func TestSourceBySize(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, src := newLoop(t, time.Millisecond)
		r, err := src.run(t.Context(), time.Second, 20, 4)
		if err != nil || r.messages != 20 || r.delivered != 20 || r.seconds != 0.02 {
			t.Errorf("%+v, %v", r, err)
		}
	})
}

func TestSourceFails(t *testing.T) {
	l, src := newLoop(t, 0)
	l.fail = endpoint.RetryExceeded
	if _, err := src.run(t.Context(), time.Second, 0, 4); err == nil || !strings.Contains(err.Error(), "message 0 of this run") {
		t.Errorf("%v", err)
	}
	l, src = newLoop(t, 0)
	l.sends = make(chan endpoint.SendWR) // has no receiver, so that polling waits
	src.qp = &silent{l}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("no more"))
	if _, err := src.run(ctx, time.Second, 0, 4); err == nil || !strings.Contains(err.Error(), "no more") {
		t.Errorf("%v", err)
	}
}

// silent never completes anything.
type silent struct{ *loop }

func (silent) PostSend(wrs ...endpoint.SendWR) (int, error) { return len(wrs), nil }

// A byte that differs, a message in another's slot, a message that is too short: each
// is an error that names it.
func TestSinkNotices(t *testing.T) {
	const seq = 21
	for want, change := range map[string]func(b []byte, c *endpoint.Completion){
		"":                      func([]byte, *endpoint.Completion) {},
		"byte 63 is 0x":         func(b []byte, _ *endpoint.Completion) { b[63] ^= 1 },
		"byte 8 is 0x":          func(b []byte, _ *endpoint.Completion) { b[8] ^= 0x80 },
		"message 22 is there":   func(b []byte, _ *endpoint.Completion) { binary.BigEndian.PutUint64(b, 22) },
		"of 60 bytes":           func(_ []byte, c *endpoint.Completion) { c.Len = 60 },
		"receive 20 of 64 byte": func(_ []byte, c *endpoint.Completion) { c.ID = 20 },
	} {
		l, src := newLoop(t, 0)
		src.seq = seq
		b := l.sink.mr.Bytes()[seq%16*testSize:][:testSize]
		copy(b, src.mr.Bytes()[seq%8*testSize:])
		binary.BigEndian.PutUint64(b, seq)
		c := endpoint.Completion{ID: seq, Len: testSize}
		change(b, &c)
		err := l.sink.compare(seq, c)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
