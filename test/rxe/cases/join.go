// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gleam-rdma/gleam/host/endpoint"
)

const (
	flowSize  = 1500 // bytes of each message
	flowDepth = 4    // messages in flight
	flowAhead = 16   // receives posted at each receiver
	flowMost  = memory / 1600
	flowAfter = 100 // messages that the newcomer has to get
)

// lateJoiner lets a fourth receiver join through the master while the source sends
// without a pause. It gets every message from its joining on; the source and the other
// receivers are not affected.
func lateJoiner(ctx context.Context, b *bench) error {
	spec := groupSpec{number: 1, hosts: b.hosts[:4], mtu: 1024}
	return withGroup(ctx, &spec, func(g *group) error {
		msgs := make([]message, flowMost)
		for i := range msgs {
			msgs[i] = message{endpoint.WriteImm, flowSize}
		}
		bt, err := g.newBatch(msgs...)
		if err != nil {
			return err
		}
		late, err := spec.equip(len(spec.hosts), b.hosts[4])
		if err != nil {
			return err
		}
		defer func() { g.members = append(g.members, late) }() // closed with the group
		clear(late.mr.Bytes()[:bt.used])
		f := &flow{batch: bt}
		err = f.run(ctx, late)
		if err == nil {
			b.note("joined after %d messages were posted, got all %d from message %d on", f.joined, f.posted.Load()-f.late.first, f.late.first)
		}
		return err
	})
}

// flow is an endless transfer, each message in a slot of its own.
type flow struct {
	*batch
	posted atomic.Int64 // messages
	stop   atomic.Bool
	joined int64 // posted when the newcomer had joined
	late   *intake
}

// intake is a receiver's part of a flow.
type intake struct {
	*member
	first int64 // message; -1: none yet
	count atomic.Int64
}

// run sends until late has joined and has got enough, and compares all.
func (f *flow) run(ctx context.Context, late *member) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var all sync.WaitGroup
	spawn := func(who string, do func() error) {
		all.Go(func() {
			if err := do(); err != nil {
				cancel(fmt.Errorf("%s: %w", who, err))
			}
		})
	}
	last := make(chan int64) // closed when posted is final
	var takers []*intake
	for _, mb := range append(f.g.receivers(), late) {
		in := &intake{member: mb, first: -1}
		takers = append(takers, in)
		for i := range flowAhead {
			if _, err := mb.qp.PostRecv(endpoint.RecvWR{ID: uint64(i)}); err != nil {
				return err
			}
		}
		spawn(fmt.Sprintf("host %d", mb.index), func() error { return f.take(ctx, in, last) })
	}
	f.late = takers[len(takers)-1]
	spawn("the source", func() error { defer close(last); return f.send(ctx) })
	spawn("the newcomer", func() error {
		if err := until(ctx, "messages flow", func() (bool, error) { return takers[0].count.Load() > 20, nil }); err != nil {
			return err
		}
		if err := f.join(ctx, late); err != nil {
			return err
		}
		f.joined = f.posted.Load()
		err := until(ctx, "the newcomer gets messages", func() (bool, error) { return f.late.count.Load() >= flowAfter, nil })
		f.stop.Store(true)
		return err
	})
	all.Wait()
	if err := context.Cause(ctx); err != nil {
		return err
	}
	return f.check(ctx, takers)
}

// send keeps messages in flight until stop.
func (f *flow) send(ctx context.Context) error {
	src := f.g.source()
	var wcs [flowDepth]endpoint.Completion
	done := int64(0)
	for {
		for f.posted.Load()-done < flowDepth && !f.stop.Load() {
			i := int(f.posted.Load())
			if i == len(f.messages)-1 {
				return fmt.Errorf("%d messages are sent, all there is room for, and the newcomer has got %d only", i, f.late.count.Load())
			}
			wr := endpoint.SendWR{ID: uint64(i), Op: endpoint.WriteImm, Imm: immediate(i), RKey: f.g.rkey,
				RemoteAddr: windowBase + uint64(f.at[i]), Local: endpoint.Segment{MR: src.mr, Offset: f.at[i], Len: flowSize}}
			f.posted.Add(1) // before a receiver gets it
			if _, err := src.qp.PostSend(wr); err != nil {
				return err
			}
		}
		if done == f.posted.Load() {
			return nil
		}
		n, err := src.qp.Poll(ctx, wcs[:])
		if err != nil {
			return fmt.Errorf("with %d messages complete: %w", done, err)
		}
		for _, c := range wcs[:n] {
			if c.Err() != nil || c.ID != uint64(done) {
				return errors.Join(fmt.Errorf("completion %+v, want one of message %d", c, done), c.Err())
			}
			done++
		}
	}
}

// take takes messages at a receiver, without a gap, until the last.
func (f *flow) take(ctx context.Context, in *intake, last <-chan int64) error {
	var wcs [1]endpoint.Completion
	for {
		final := false
		select {
		case <-last:
			if final = true; in.first >= 0 && in.first+in.count.Load() == f.posted.Load() {
				return nil
			}
		default:
		}
		tick, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
		n, err := in.qp.Poll(tick, wcs[:])
		cancel()
		switch {
		case n == 0 && ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded):
			if final { // all that is complete at the source has completed here, or is lost
				return fmt.Errorf("got %d messages from %d on, and %d were sent", in.count.Load(), in.first, f.posted.Load())
			}
			continue
		case err != nil:
			return err
		}
		c, i := wcs[0], in.first+in.count.Load()
		if in.first < 0 {
			i = int64(c.Imm &^ 0xA5000000)
			in.first = i
		}
		want := endpoint.Completion{ID: uint64(in.count.Load()), Op: endpoint.RecvWithImm, Len: flowSize, HasImm: true, Imm: immediate(int(i)), QPN: c.QPN}
		if c != want {
			return fmt.Errorf("completion %+v, want %+v", c, want)
		}
		in.count.Add(1)
		if _, err := in.qp.PostRecv(endpoint.RecvWR{ID: uint64(in.count.Load() + flowAhead - 1)}); err != nil {
			return err
		}
	}
}

// join has mb join through the master.
func (f *flow) join(ctx context.Context, mb *member) error {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer ln.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan error, 1)
	go func() {
		local := endpoint.Local{QP: mb.qp, Memory: mb.mr, Host: mb.confirm(f.g.spec.v6)}
		var err error
		if mb.group, err = endpoint.Member(ctx, endpoint.MemberConfig{Local: local, Master: ln.Addr().String()}); err != nil {
			cancel()
		}
		done <- err
	}()
	err = f.g.members[0].group.AddFrom(ctx, ln)
	if err != nil {
		cancel()
	}
	return errors.Join(err, <-done)
}

// check compares every receiver's memory: the messages sent to it, and no other bytes.
func (f *flow) check(ctx context.Context, takers []*intake) error {
	end := int(f.posted.Load())
	for _, in := range takers {
		switch {
		case in != f.late && in.first != 0:
			return fmt.Errorf("host %d: the first message is %d", in.index, in.first)
		case in == f.late && (in.first == 0 || in.first > f.joined):
			return fmt.Errorf("the newcomer's first message is %d; when it had joined %d were posted", in.first, f.joined)
		}
		if err := silence(ctx, in.member); err != nil {
			return err
		}
		from, got := f.at[in.first], in.mr.Bytes()
		if i := difference(f.g.source().mr.Bytes()[from:f.at[end]], got[from:f.at[end]]); i >= 0 {
			return wrongBytes{fmt.Errorf("host %d: the byte at offset %d is not the source's", in.index, from+i)}
		}
		zero := make([]byte, memory)
		if difference(zero[:from], got[:from]) >= 0 || difference(zero[:f.used-f.at[end]], got[f.at[end]:f.used]) >= 0 {
			return wrongBytes{fmt.Errorf("host %d has bytes of messages from before or after its time", in.index)}
		}
	}
	return silence(ctx, f.g.source())
}
