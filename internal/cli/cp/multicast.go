// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package cp

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/host/endpoint"
	"github.com/gleam-rdma/gleam/internal/cli/port"
	"github.com/gleam-rdma/gleam/mcast"
)

// part is a receiver's part in the group.
type part struct {
	*target
	out  bool          // true: it is not in the group any more
	held time.Duration // the time for which the others have waited for it, less twice that for which they have not; 0 at least
}

// stream sends chunks to a group.
type stream struct {
	s     *sender
	port  *port.Port
	host  *endpoint.Host
	ring  endpoint.MR // a slot for each chunk of the window
	slot  int         // bytes
	group *endpoint.Group
	work  sync.WaitGroup // goroutines that end with ctx

	mu        sync.Mutex
	changed   sync.Cond // a change of anything below, or of the receivers' reports
	parts     []*part
	posted    int
	completed int
	waiting   bool  // true: it waits for a receiver to have done with a chunk
	over      error // why the group has ended
	forgotten bool  // the switch has started again, and does not know the group
}

// multicast sends what receivers miss to a group of them, and to a new one if the switch starts
// again and does not know the first. Receivers that are out of the group have what they miss noted.
func (s *sender) multicast(ctx context.Context) error {
	for try := 1; ; try++ {
		forgotten, err := s.multicastOnce(ctx)
		if err != nil || !forgotten || try == tries {
			return err
		}
	}
}

func (s *sender) multicastOnce(ctx context.Context) (forgotten bool, err error) {
	var list []*target
	todo := newBitmap(s.source.m.chunks)
	for _, t := range s.alive() {
		some := false
		for i, b := range t.missing {
			todo[i] |= b
			some = some || b != 0
		}
		if some {
			list = append(list, t)
		}
	}
	if len(list) == 0 {
		return false, nil
	}
	x := &stream{s: s, slot: chunkHead + s.o.Chunk}
	x.changed.L = &x.mu
	defer x.close()
	if err := x.open(list[0]); err != nil {
		return false, err
	}
	if err := x.gather(ctx, list); err != nil || x.group == nil {
		return false, err
	}
	ctx, cancel := context.WithCancel(ctx)
	x.work.Go(func() { x.collect(ctx) })
	x.work.Go(func() { x.follow(ctx) })
	x.work.Go(func() { x.judge(ctx) })
	for _, p := range x.parts {
		p.way("group")
		p.watch(x.wake)
	}
	err = x.send(ctx, todo.members(s.source.m.chunks))
	for _, p := range x.parts {
		p.watch(nil)
	}
	cancel()
	_ = x.group.Close() // the lease ends the group as well
	x.work.Wait()
	s.each(list, func(t *target) error {
		if err := t.failed(); err != nil {
			return err
		}
		t.way("")
		return t.leave(ctx)
	})
	return x.forgotten, err
}

// leave has the receiver leave the group, and say what it misses.
func (t *target) leave(ctx context.Context) error {
	if err := t.w.send(frameLeave, nil); err != nil {
		return err
	}
	return t.awaitMissing(context.WithoutCancel(ctx))
}

func (x *stream) wake() {
	x.mu.Lock()
	x.changed.Broadcast()
	x.mu.Unlock()
}

// open makes the sender's device and memory.
func (x *stream) open(beside *target) (err error) {
	o := x.s.o
	if x.port, err = o.Local.open(beside.w.c, o.GroupIP.Is6()); err != nil {
		return err
	}
	if x.host, err = endpoint.NewHost(x.port.IP, o.Host); err != nil {
		return err
	}
	x.ring, err = x.port.Buffer(o.Window*x.slot, 0, 0)
	return err
}

// tries bounds how often a group is made: each time without the receivers that have
// failed meanwhile.
const tries = 3

// gather makes a group of the receivers. Without any that can join, there is none.
func (x *stream) gather(ctx context.Context, list []*target) error {
	o := x.s.o
	for try := 1; ; try++ {
		var ready []*target
		var addrs []string
		x.s.each(slices.DeleteFunc(slices.Clone(list), func(t *target) bool { return t.failed() != nil }), func(t *target) error {
			if err := t.w.send(frameJoin, o.GroupIP.AsSlice()); err != nil {
				return err
			}
			f, err := t.expect(ctx, frameJoined)
			if err != nil {
				return err
			}
			if len(f.data) > 0 {
				o.Say(fmt.Sprintf("%s cannot join a group, and gets the files by TCP: %s", t.host, printable(string(f.data))))
				return nil
			}
			x.mu.Lock()
			ready = append(ready, t)
			x.mu.Unlock()
			return nil
		})
		if len(ready) == 0 {
			return context.Cause(ctx)
		}
		for _, t := range ready {
			addrs = append(addrs, withPort(t.host))
		}
		err := x.make(ctx, addrs)
		if err == nil {
			for _, t := range ready {
				x.parts = append(x.parts, &part{target: t})
			}
			return nil
		}
		if ctx.Err() != nil {
			return err
		}
		x.s.each(ready, func(t *target) error { return t.leave(ctx) })
		lost := slices.ContainsFunc(ready, func(t *target) bool { return t.failed() != nil })
		if !lost || try == tries {
			return fmt.Errorf("%w; without --group files go by TCP, to each host", err)
		}
		list = ready
	}
}

// make makes the group.
func (x *stream) make(ctx context.Context, addrs []string) (err error) {
	o := x.s.o
	ctx, cancel := context.WithTimeoutCause(ctx, joinTimeout, fmt.Errorf("there was no group within %v", joinTimeout))
	defer cancel()
	x.group, err = endpoint.Master(ctx, endpoint.MasterConfig{
		Local: endpoint.Local{Device: x.port, Host: x.host, QPConfig: o.Local.qpConfig(x.port, o.Window, 1)},
		Addrs: addrs, GroupIP: o.GroupIP, PathMTU: o.MTU, Policy: mcast.Evict, DeadAfter: o.DeadAfter,
	})
	return err
}

// send posts the chunks, and returns when all receivers that are left have done with
// them, or the group is over. An error is the sender's own.
func (x *stream) send(ctx context.Context, chunks []int) error {
	stop := context.AfterFunc(ctx, x.wake)
	defer stop()
	r := reader{source: x.s.source}
	defer r.close()
	seal := newSeal(x.s.hello.Key)
	for _, c := range chunks {
		if !x.await(ctx, func() bool { return x.posted-x.completed < x.s.o.Window && x.credit() > 0 }) {
			return context.Cause(ctx)
		}
		at := x.posted % x.s.o.Window * x.slot
		msg := x.ring.Bytes()[at : at+x.slot]
		n, err := r.read(c, msg[chunkHead:])
		if err != nil {
			return err
		}
		seal.close(msg[:chunkHead+n], c)
		_, err = x.group.QP().PostSend(endpoint.SendWR{Op: endpoint.Send, Local: endpoint.Segment{MR: x.ring, Offset: at, Len: chunkHead + n}})
		x.mu.Lock()
		if x.posted++; err != nil {
			x.end(err)
		}
		x.mu.Unlock()
		x.s.sentGroup.Add(int64(n))
	}
	x.await(ctx, func() bool { return x.completed == x.posted && x.credit() == x.s.o.Window })
	return context.Cause(ctx)
}

// await waits for a condition; false: the group is over, or has no receivers any more.
func (x *stream) await(ctx context.Context, ready func() bool) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	for x.over == nil && ctx.Err() == nil && x.live() > 0 {
		if ready() {
			return true
		}
		x.waiting = true
		x.changed.Wait()
		x.waiting = false
	}
	return false
}

// live is the number of receivers in the group. The caller holds mu.
func (x *stream) live() (n int) {
	for _, p := range x.parts {
		if !p.out {
			n++
		}
	}
	return n
}

// lag is the number of chunks that a receiver has not done with. The caller holds mu.
func (x *stream) lag(p *part) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return max(0, x.posted-p.done.messages)
}

// credit is the number of chunks that all receivers have room for. The caller holds mu.
func (x *stream) credit() int {
	n := x.s.o.Window
	for _, p := range x.parts {
		if !p.out {
			n = min(n, x.s.o.Window-x.lag(p))
		}
	}
	return n
}

// end notes that the group has ended. The caller holds mu.
func (x *stream) end(why error) {
	if x.over == nil {
		x.over = why
		rest := "what is missing goes by TCP"
		if x.forgotten {
			rest = "it is made anew"
		}
		x.s.o.Say(fmt.Sprintf("group %s is over: %v: %s", x.s.o.GroupIP, why, rest))
	}
	x.changed.Broadcast()
}

// collect takes completions.
func (x *stream) collect(ctx context.Context) {
	wc := make([]endpoint.Completion, x.s.o.Window)
	for {
		n, err := x.group.QP().Poll(ctx, wc)
		x.mu.Lock()
		for i := 0; i < n && err == nil; i++ {
			if err = wc[i].Err(); err == nil {
				x.completed++
			}
		}
		if err != nil && ctx.Err() == nil {
			x.end(err)
		}
		x.changed.Broadcast()
		x.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// follow takes the group's events.
func (x *stream) follow(ctx context.Context) {
	for {
		select {
		case e := <-x.group.Events():
			x.heard(ctx, e)
		case <-x.group.Over():
			for n := len(x.group.Events()); n > 0; n-- { // the last one has come with the end
				x.heard(ctx, <-x.group.Events())
			}
			x.mu.Lock()
			if ctx.Err() == nil {
				x.end(errors.New("the switch has ended it")) // unless an event has said more
			}
			x.mu.Unlock()
			return
		case <-ctx.Done():
			return
		}
	}
}

// heard acts upon an event of the group.
func (x *stream) heard(ctx context.Context, e endpoint.Event) {
	x.mu.Lock()
	defer x.mu.Unlock()
	switch {
	case e.Kind == endpoint.Evicted:
		for _, p := range x.parts {
			if p.ip == e.Member {
				x.drop(p, "the switch has removed it: "+e.Cause())
			}
		}
	case e.Reason == envelope.Forgotten && x.over == nil && ctx.Err() == nil:
		x.forgotten = true
		x.end(errors.New(e.Reason.String()))
	case unanswered(e.Err) && ctx.Err() == nil:
		x.end(errors.New("the switch does not answer, and the group's lease has run out"))
	}
}

// unanswered reports whether err is the switch's silence.
func unanswered(err error) bool {
	var f *envelope.Failure
	return errors.As(err, &f) && f.SwitchSilent
}

// drop takes a receiver out of the group; the caller holds mu.
func (x *stream) drop(p *part, why string) {
	if p.out {
		return
	}
	p.out = true
	p.way("")
	x.s.o.Say(fmt.Sprintf("%s is out of the group: %s", p.host, why))
	x.changed.Broadcast()
}

func (x *stream) close() {
	if x.host != nil {
		_ = x.host.Close()
	}
	if x.port != nil {
		_ = x.port.Close()
	}
}
