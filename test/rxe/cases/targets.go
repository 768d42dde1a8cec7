// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/gleam-rdma/gleam/host/endpoint"
	"github.com/gleam-rdma/gleam/host/endpoint/verbs"
)

// targetMessages sends a target message before each WRITE: its address differs between
// receivers and from the one before, in two regions by turns, of which the group's
// window covers one.
func targetMessages(ctx context.Context, b *bench) error {
	spec := groupSpec{number: 1, hosts: b.hosts[:4], mtu: 1024, master: func(c *endpoint.MasterConfig) { c.Targets = true }}
	return withGroup(ctx, &spec, func(g *group) (err error) {
		u := &targetedTransfer{group: g}
		defer func() { err = errors.Join(err, u.close()) }()
		for _, r := range g.receivers() {
			if err := u.equip(r); err != nil {
				return err
			}
		}
		for i := range 24 {
			u.messages = append(u.messages, message{[]endpoint.WROp{endpoint.Write, endpoint.WriteImm}[i%2], []int{3000, 1, 30000, 1024, 70000}[i%5]})
		}
		return u.transfer(ctx)
	})
}

const (
	targetRoom = 128 << 10 // bytes for a message, with some that must not change
	payloads   = memory / 2
)

// targetedTransfer is a transfer with target messages.
type targetedTransfer struct {
	*group
	messages []message
	second   []endpoint.MR // the second region of each receiver, beside its window
	frees    []func() error
}

func (u *targetedTransfer) equip(r *member) error {
	buf, free, err := verbs.Alloc(memory)
	if err != nil {
		return err
	}
	mr, err := r.device.RegisterMemory(buf, 0x6000_0000_0000+uint64(r.index)<<32, endpoint.LocalWrite|endpoint.RemoteWrite)
	if err != nil {
		return errors.Join(err, free())
	}
	u.second = append(u.second, mr)
	u.frees = append(u.frees, free)
	return nil
}

func (u *targetedTransfer) close() error {
	var errs []error
	for i, mr := range u.second {
		if err := mr.Close(); err != nil {
			errs = append(errs, err)
			continue // the device may still use it
		}
		errs = append(errs, u.frees[i]())
	}
	return errors.Join(errs...)
}

// place returns the address of message i at receiver k.
func (u *targetedTransfer) place(i, k int) (mr endpoint.MR, offset int) {
	mr = u.receivers()[k].mr
	if (i+k)%3 == 0 {
		mr = u.second[k]
	}
	return mr, (i*(2*k+1)+5*k)%(memory/targetRoom)*targetRoom + i
}

// inside is how far from the target each WRITE goes.
func inside(i int) int { return i % 3 * 100 }

// transfer sends all messages, each behind a target message, and compares.
func (u *targetedTransfer) transfer(ctx context.Context) error {
	src := u.source()
	data := src.mr.Bytes()
	bt, err := u.newBatch(u.messages...)
	if err != nil {
		return err
	}
	if bt.used > payloads {
		return fmt.Errorf("%d bytes of messages leave no room for the target messages", bt.used)
	}
	for k, r := range u.receivers() {
		clear(r.mr.Bytes())
		clear(u.second[k].Bytes())
		if err := bt.receive(r); err != nil {
			return err
		}
	}
	for i, m := range u.messages {
		var to []endpoint.Target
		for k, r := range u.receivers() {
			mr, offset := u.place(i, k)
			to = append(to, endpoint.Target{IP: r.addr(u.spec.v6), VA: mr.Addr() + uint64(offset), RKey: mr.RKey()})
		}
		at := payloads + i*u.spec.mtu
		p, err := src.group.AppendTargets(data[at:at:at+u.spec.mtu], to)
		if err != nil {
			return err
		}
		message := src.group.TargetMessageWR(uint64(2*i), endpoint.Segment{MR: src.mr, Offset: at, Len: len(p)})
		wr := src.group.TargetedWR(uint64(2*i+1), m.op, endpoint.Segment{MR: src.mr, Offset: bt.at[i], Len: m.size}, uint64(inside(i)))
		wr.Imm = immediate(i)
		if _, err := src.qp.PostSend(message, wr); err != nil {
			return fmt.Errorf("post message %d: %w", i, err)
		}
	}
	for i := range 2 * len(u.messages) {
		var wcs [1]endpoint.Completion
		if _, err := src.qp.Poll(ctx, wcs[:]); err != nil {
			return fmt.Errorf("the source, with %d of %d requests complete: %w", i, 2*len(u.messages), err)
		}
		if c := wcs[0]; c.ID != uint64(i) || c.Status != endpoint.Success || c.Op != endpoint.WriteDone {
			return errors.Join(fmt.Errorf("completion %+v, want one of request %d", c, i), c.Err())
		}
	}
	for _, r := range u.receivers() {
		if err := bt.landed(ctx, r); err != nil {
			return fmt.Errorf("host %d: %w", r.index, err)
		}
	}
	for _, mb := range u.members {
		if err := silence(ctx, mb); err != nil {
			return err
		}
	}
	return u.compare(bt)
}

// compare builds what each receiver's memory must be, and compares all of it.
func (u *targetedTransfer) compare(bt *batch) error {
	for k, r := range u.receivers() {
		want := map[endpoint.MR][]byte{r.mr: make([]byte, memory), u.second[k]: make([]byte, memory)}
		for i, m := range u.messages {
			mr, offset := u.place(i, k)
			copy(want[mr][offset+inside(i):], u.source().mr.Bytes()[bt.at[i]:bt.at[i]+m.size])
		}
		for mr, bytes := range want {
			if i := difference(bytes, mr.Bytes()); i >= 0 {
				return wrongBytes{fmt.Errorf("host %d, region 0x%x: the byte at offset %d is wrong", r.index, mr.Addr(), i)}
			}
		}
	}
	return nil
}
