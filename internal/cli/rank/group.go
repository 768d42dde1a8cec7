// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package rank

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gleam-rdma/gleam/host/endpoint"
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// Virtual addresses of the process's own memory and of groups' windows.
const (
	memoryBase   = 0x7000_0000_0000
	memoryStride = maxWindow
	windowBase   = 0x5000_0000_0000
)

// receives is how many are posted: more than a source has outstanding.
const receives = 512

// group is one group of the process.
type group struct {
	h      *helper
	number int
	bytes  []byte // the window, as it is mapped here
	size   int64  // the window's bytes
	mr     endpoint.MR
	ln     net.Listener // the master's, where members join

	mu     sync.Mutex
	qp     endpoint.QP     // the queue pair of make or join; nil before
	joined *endpoint.Group // the group; nil before make or join has ended
	closed bool
}

// newGroup makes a window, and returns the file to map it by.
func newGroup(h *helper, r *request) (_ *group, _ *os.File, err error) {
	fd, err := unix.MemfdCreate("gleam-window", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, nil, fmt.Errorf("memfd: %w", err)
	}
	file := os.NewFile(uintptr(fd), "window")
	g := &group{h: h, number: r.G, size: r.Bytes}
	defer func() {
		if err != nil {
			_ = file.Close()
			g.free()
		}
	}()
	if err := file.Truncate(r.Bytes); err != nil {
		return nil, nil, fmt.Errorf("a window of %d bytes: %w", r.Bytes, err)
	}
	// A window that the process makes smaller would end this one by SIGBUS.
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_SEAL); err != nil {
		return nil, nil, fmt.Errorf("seal the window: %w", err)
	}
	if g.bytes, err = unix.Mmap(fd, 0, int(r.Bytes), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err != nil {
		return nil, nil, fmt.Errorf("map %d bytes: %w", r.Bytes, err)
	}
	iova := uint64(memoryBase) + uint64(r.G)*memoryStride
	if g.mr, err = h.device.RegisterMemory(g.bytes, iova, endpoint.LocalWrite|endpoint.RemoteWrite); err != nil {
		return nil, nil, err
	}
	if r.Master.here {
		if g.ln, err = net.Listen("tcp", netip.AddrPortFrom(h.ip, 0).String()); err != nil {
			return nil, nil, err
		}
	}
	return g, file, nil
}

// local is this process's part in the group, with a queue pair that has receives posted.
func (g *group) local() (endpoint.Local, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.qp != nil || g.closed {
		return endpoint.Local{}, fmt.Errorf("g %d has been made, joined or left already: take another window", g.number)
	}
	qp, err := g.h.device.CreateQP(endpoint.QPConfig{
		LocalIP: g.h.ip, SQPSN: endpoint.RandomPSN(), RQPSN: endpoint.RandomPSN(),
		MaxSend: maxPosts, MaxRecv: receives, Timeout: g.h.qpTimeout, RetryCount: 7, RNRRetry: 7,
	})
	if err != nil {
		return endpoint.Local{}, err
	}
	g.qp = qp
	if _, err := qp.PostRecv(make([]endpoint.RecvWR, receives)...); err != nil {
		return endpoint.Local{}, err
	}
	return endpoint.Local{QP: qp, Host: g.h.host, Memory: g.mr}, nil
}

// make is the master's join.
func (g *group) make(ctx context.Context, r *request) error {
	if g.ln == nil {
		return fmt.Errorf("g %d has no master's window", g.number)
	}
	mtu := r.MTU
	for _, m := range []int{4096, 2048, 1024, 512, 256} {
		if mtu == 0 && m <= g.h.device.MaxPathMTU() {
			mtu = m
		}
	}
	l, err := g.local()
	if err != nil {
		return err
	}
	joined, err := endpoint.Master(ctx, endpoint.MasterConfig{
		Local: l, Listener: g.ln, Members: r.Members, OtherNetwork: g.h.otherNetwork, GroupIP: r.IP,
		PathMTU: cmp.Or(mtu, rocev2.DefaultPathMTU), Policy: mcast.Evict, DeadAfter: time.Duration(r.DeadAfterMS) * time.Millisecond,
		SenderTimeout: g.h.qpTimeout, SenderRetries: 7, WindowBase: windowBase, Exclusive: true,
	})
	if err != nil {
		return err
	}
	if err := g.follow(joined); err != nil {
		return err
	}
	g.h.work.Go(func() { g.admit(joined) })
	return nil
}

// join is a member's.
func (g *group) join(ctx context.Context, r *request) error {
	l, err := g.local()
	if err != nil {
		return err
	}
	joined, err := endpoint.Member(ctx, endpoint.MemberConfig{Local: l, Master: r.Master.at.String()})
	if err != nil {
		return err
	}
	return g.follow(joined)
}

// follow passes on what happens in the group from now on.
func (g *group) follow(joined *endpoint.Group) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return errors.Join(fmt.Errorf("g %d was left meanwhile", g.number), joined.Close())
	}
	g.joined = joined
	g.h.work.Go(func() { g.events(joined) })
	g.h.work.Go(g.poll)
	return nil
}

// admit adds members that connect to the master after the group was made. One with the address of an earlier member replaces it.
func (g *group) admit(joined *endpoint.Group) {
	for {
		err := joined.UpdateFrom(g.h.ctx, g.ln)
		select {
		case <-joined.Over():
			return
		case <-g.h.ctx.Done():
			return
		default:
		}
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			g.h.send(answer{G: g.number, Event: "refused", Text: err.Error()}, nil)
		}
	}
}

// events passes on the group's events until its end.
func (g *group) events(joined *endpoint.Group) {
	pass := func(e endpoint.Event) {
		a := answer{G: g.number, Event: e.Kind.String(), Text: e.Reason.String()}
		if e.Kind == endpoint.Evicted || e.Kind == endpoint.Failed {
			a.Text = e.Cause()
		}
		if e.Member.IsValid() && !(e.Kind == endpoint.Evicted && e.Member == g.h.ip) {
			a.Member = e.Member.String()
		}
		if e.Err != nil {
			a.Text = e.Err.Error()
		}
		g.h.send(a, nil)
	}
	for {
		select {
		case e := <-joined.Events():
			pass(e)
		case <-joined.Over():
			for {
				select {
				case e := <-joined.Events():
					pass(e)
				default:
					return
				}
			}
		case <-g.h.ctx.Done():
			return
		}
	}
}

// poll passes on completions, and posts a receive for each that is used.
func (g *group) poll() {
	var c [64]endpoint.Completion
	spare := make([]endpoint.RecvWR, len(c))
	for {
		n, err := g.qp.Poll(g.h.ctx, c[:])
		if err != nil {
			return // closed
		}
		a := answer{G: g.number}
		for _, x := range c[:n] {
			switch {
			case x.Err() != nil && g.left():
				return // flushed by leave
			case x.Err() != nil:
				g.h.send(answer{G: g.number, Event: endpoint.Failed.String(), Text: x.Err().Error()}, nil)
				return // the others are flushed
			case x.Op == endpoint.RecvWithImm:
				a.Got = append(a.Got, [2]uint64{uint64(x.Imm), uint64(x.Len)})
			case x.Op == endpoint.WriteDone:
				a.Done = append(a.Done, x.ID)
			}
		}
		if k := len(a.Got); k > 0 {
			if _, err := g.qp.PostRecv(spare[:k]...); err != nil {
				return // closed
			}
		}
		g.h.send(a, nil)
	}
}

// post writes a part of the window to all members.
func (g *group) post(r *request) error {
	g.mu.Lock()
	joined := g.joined
	g.mu.Unlock()
	switch {
	case joined == nil:
		return fmt.Errorf("g %d has no group yet", g.number)
	case r.Offset > g.size || r.Len > g.size-r.Offset:
		return fmt.Errorf("bytes %d to %d are not in the window of %d", r.Offset, r.Offset+r.Len, g.size)
	}
	w := joined.Info().Window
	_, err := g.qp.PostSend(endpoint.SendWR{
		ID: r.ID, Op: endpoint.WriteImm, Imm: r.Imm, Local: endpoint.Segment{MR: g.mr, Offset: int(r.Offset), Len: int(r.Len)},
		RemoteAddr: w.Base + uint64(r.Offset), RKey: w.RKey,
	})
	return err
}

// remove takes a member out.
func (g *group) remove(ctx context.Context, r *request) error {
	g.mu.Lock()
	joined := g.joined
	g.mu.Unlock()
	if joined == nil {
		return fmt.Errorf("g %d has no group yet", g.number)
	}
	return joined.Remove(ctx, r.Member)
}

// leave leaves the group; at its master it ends.
func (g *group) leave() error {
	g.mu.Lock()
	joined, closed := g.joined, g.closed
	g.closed = true
	g.mu.Unlock()
	if closed {
		return nil
	}
	var err error
	if g.ln != nil {
		err = g.ln.Close()
	}
	if joined != nil {
		err = errors.Join(err, joined.Close())
	}
	if g.qp != nil {
		err = errors.Join(err, g.qp.Close())
	}
	return err
}

// left says whether leave has begun: what the queue pair flushes then is no failure.
func (g *group) left() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.closed
}

// free frees the window, when nothing uses it any more.
func (g *group) free() {
	if g.mr != nil {
		_ = g.mr.Close()
	}
	if g.bytes != nil {
		_ = unix.Munmap(g.bytes)
	}
}
