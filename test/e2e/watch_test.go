// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/host/endpoint"
	"github.com/gleam-rdma/gleam/rocev2"
)

// watch is a transfer that runs in the background: host 0 writes message after message,
// with new bytes each, to the first half of the group's window. At every completion
// each receiver must have these bytes, and the second half, which no host writes, must
// be unchanged.
type watch struct {
	r        *rig
	cancel   context.CancelFunc
	ended    chan struct{}
	done     atomic.Int64 // bytes completed
	early    atomic.Int64 // completions without the bytes at every receiver
	wrong    atomic.Int64 // completions after which something else had been written
	err      error        // the error that ended the transfer; valid after ended
	expected []byte       // the expected bytes of the second half
	size     int          // the size of a message
}

// nextPSN is the PSN of the first packet of the message that is under way, in the
// space of host 0's queue pair, and the number of its packets.
func (w *watch) nextPSN() (psn rocev2.PSN, packets int) {
	packets = (w.size + w.r.c.pathMTU - 1) / w.r.c.pathMTU
	return w.r.hosts[0].qp.Info().SQPSN.Add(int32(w.done.Load() / int64(w.size) * int64(packets))), packets
}

// watch starts the transfer. It ends with end, or with the test.
func (r *rig) watch() *watch {
	r.t.Helper()
	ctx, cancel := context.WithCancel(r.ctx)
	w := &watch{r: r, cancel: cancel, ended: make(chan struct{})}
	h := r.hosts[0]
	w.size = h.mr.Len() / 2
	size := w.size
	w.expected = bytes.Repeat([]byte{0xA5}, h.mr.Len()-size)
	for _, h := range r.hosts {
		copy(h.mr.Bytes()[size:], w.expected)
	}
	go func() {
		defer close(w.ended)
		random := rand.NewChaCha8([32]byte{1})
		for ctx.Err() == nil {
			_, _ = random.Read(h.mr.Bytes()[:size])
			if w.err = w.one(ctx, size); w.err != nil {
				return
			}
		}
	}()
	r.t.Cleanup(func() { cancel(); <-w.ended })
	r.watched = w
	return w
}

// one writes one message, waits for its completion and checks the receivers.
func (w *watch) one(ctx context.Context, size int) error {
	h := w.r.hosts[0]
	wr := endpoint.SendWR{Op: endpoint.Write, Local: endpoint.Segment{MR: h.mr, Len: size}, RemoteAddr: groupBase, RKey: groupRKey}
	if _, err := h.qp.PostSend(wr); err != nil {
		return err
	}
	var wc [1]endpoint.Completion
	for n := 0; n == 0; {
		var err error
		// Past the end of the watch, so that the message that is under way ends.
		if n, err = h.qp.Poll(w.r.ctx, wc[:]); err != nil {
			return err
		}
	}
	if err := wc[0].Err(); err != nil {
		return err
	}
	for _, o := range w.r.hosts[1:] {
		b := o.mr.Bytes()
		if !bytes.Equal(b[:size], h.mr.Bytes()[:size]) {
			w.early.Add(1)
		}
		if !bytes.Equal(b[size:], w.expected) {
			w.wrong.Add(1)
		}
	}
	w.done.Add(int64(size))
	return nil
}

// goodput returns the bytes per second that were completed in the next d.
func (w *watch) goodput(d time.Duration) float64 {
	w.r.t.Helper()
	n, at := w.done.Load(), time.Now()
	select {
	case <-time.After(d):
	case <-w.ended:
		w.r.t.Fatalf("the watched transfer has ended: %v", w.err)
	}
	return float64(w.done.Load()-n) / time.Since(at).Seconds()
}

// goesOn waits until another message is complete. How long that takes depends on the machine's
// load, and after a loss on the source's timeout.
func (w *watch) goesOn(when string) {
	w.r.t.Helper()
	n := w.done.Load()
	until(w.r.t, "another completion "+when, func() bool {
		select {
		case <-w.ended:
			w.r.t.Fatalf("the watched transfer has ended: %v", w.err)
		default:
		}
		return w.done.Load() > n
	})
}

// end stops the transfer and fails the test if it has failed, or if a completion
// came without the bytes, or if other bytes have been written.
func (w *watch) end(t testing.TB) {
	t.Helper()
	w.cancel()
	<-w.ended
	if w.err != nil {
		t.Errorf("the watched transfer has failed: %v", w.err)
	}
	if n := w.early.Load(); n > 0 {
		t.Errorf("%d completions without the bytes at a receiver", n)
	}
	if n := w.wrong.Load(); n > 0 {
		t.Errorf("wrong bytes in a receiver's memory after %d completions", n)
	}
	for i, h := range w.r.hosts[1:] {
		h.dev.Stats() // passes through the device's loop, behind what it has received
		if !bytes.Equal(h.mr.Bytes()[:len(h.mr.Bytes())/2], w.r.hosts[0].mr.Bytes()[:len(h.mr.Bytes())/2]) {
			t.Errorf("receiver %d does not have the sender's bytes in the end", i+1)
		}
		if !bytes.Equal(h.mr.Bytes()[len(h.mr.Bytes())/2:], w.expected) {
			t.Errorf("receiver %d has bytes in the end that nobody sent", i+1)
		}
	}
}
