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

// group is one group, of the processes that share its window.
type group struct {
	h     *helper
	name  string
	alone bool     // true: one process has it
	bytes []byte   // the window, as it is mapped here
	file  *os.File // the descriptor to map it by
	size  int64    // the window's bytes
	mr    endpoint.MR
	made  chan struct{} // closed when make or join has ended, with err
	err   error
	gone  chan struct{} // closed when the last process has left

	mu      sync.Mutex
	clients map[*client]int // the processes, and their numbers of the group
	ln      net.Listener    // the master's, where members join
	begun   bool            // true: make or join has begun
	qp      endpoint.QP     // the queue pair of make or join; nil before
	joined  *endpoint.Group // the group; nil before make or join has ended
	closed  bool            // true: it is being left
	failed  bool            // true: make, join or its queue pair has failed
}

// newGroup makes a window.
func newGroup(h *helper, r *request, number int) (_ *group, err error) {
	fd, err := unix.MemfdCreate("gleam-window", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, fmt.Errorf("memfd: %w", err)
	}
	g := &group{
		h: h, alone: r.Alone, size: r.Bytes, file: os.NewFile(uintptr(fd), "window"),
		made: make(chan struct{}), gone: make(chan struct{}), clients: make(map[*client]int),
	}
	defer func() {
		if err != nil {
			g.free()
		}
	}()
	if err := g.file.Truncate(r.Bytes); err != nil {
		return nil, fmt.Errorf("a window of %d bytes: %w", r.Bytes, err)
	}
	// A window that the process makes smaller would end this one by SIGBUS.
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_SEAL); err != nil {
		return nil, fmt.Errorf("seal the window: %w", err)
	}
	if g.bytes, err = unix.Mmap(fd, 0, int(r.Bytes), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err != nil {
		return nil, fmt.Errorf("map %d bytes: %w", r.Bytes, err)
	}
	iova := uint64(memoryBase) + uint64(number)*memoryStride
	if g.mr, err = h.device.RegisterMemory(g.bytes, iova, endpoint.LocalWrite|endpoint.RemoteWrite); err != nil {
		return nil, err
	}
	return g, nil
}

// enter takes in a process; one that is the master has members join here.
func (g *group) enter(c *client, r *request) (err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if n, ok := g.clients[c]; ok {
		return fmt.Errorf("g %d has the window of this name", n)
	}
	if r.Master.here && g.ln == nil {
		if g.ln, err = net.Listen("tcp", netip.AddrPortFrom(g.h.ip, 0).String()); err != nil {
			return err
		}
	}
	g.clients[c] = r.G
	return nil
}

// exit takes out a process, and returns how many are left.
func (g *group) exit(c *client) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.clients, c)
	return len(g.clients)
}

// over says whether the group can be no process's any more.
func (g *group) over() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.joined != nil {
		select {
		case <-g.joined.Over():
			return true
		default:
		}
	}
	return len(g.clients) == 0 || g.failed
}

// tell passes on what happens to all processes but one.
func (g *group) tell(a answer, but *client) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for c, n := range g.clients {
		if c != but {
			a.G = n
			c.tell(a)
		}
	}
}

// once has the first process's make or join done for all, with the same outcome. Beside a master nobody else joins.
func (g *group) once(ctx context.Context, r *request, f func(context.Context, *request) error) error {
	g.mu.Lock()
	first := !g.begun && (r.Op == "make" || g.ln == nil)
	g.begun = g.begun || first
	g.mu.Unlock()
	if first {
		if g.err = f(ctx, r); g.err != nil {
			g.fail()
		}
		close(g.made)
	}
	select {
	case <-g.made:
		return g.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (g *group) fail() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.failed = true
}

// errNone says that make or join has to be first.
var errNone = errors.New("there is no group yet")

// errLeft says that the last process has left the group.
var errLeft = errors.New("the group was left meanwhile")

// local is this address's part in the group, with a queue pair that has receives posted.
func (g *group) local() (endpoint.Local, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return endpoint.Local{}, errLeft
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
		return errors.New("this is no master's window")
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
		return errors.Join(errLeft, joined.Close())
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
			g.tell(answer{Event: "refused", Text: err.Error()}, nil)
		}
	}
}

// events passes on the group's events until its end.
func (g *group) events(joined *endpoint.Group) {
	pass := func(e endpoint.Event) {
		a := answer{Event: e.Kind.String(), Text: e.Reason.String()}
		if e.Kind == endpoint.Evicted || e.Kind == endpoint.Failed {
			a.Text = e.Cause()
		}
		if e.Member.IsValid() && !(e.Kind == endpoint.Evicted && e.Member == g.h.ip) {
			a.Member, a.QPN = e.Member.String(), e.QPN
		}
		if e.Err != nil {
			a.Text = e.Err.Error()
		}
		g.tell(a, nil)
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
		var a answer
		for _, x := range c[:n] {
			switch {
			case x.Err() != nil && g.left():
				return // flushed by leave
			case x.Err() != nil:
				g.fail()
				g.tell(answer{Event: endpoint.Failed.String(), Text: x.Err().Error()}, nil)
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
		g.tell(a, nil)
	}
}

// post writes a part of the window to all members, for a process. The others of this address have the bytes already.
func (g *group) post(c *client, r *request) error {
	g.mu.Lock()
	joined := g.joined
	g.mu.Unlock()
	switch {
	case joined == nil:
		return errNone
	case r.Offset > g.size || r.Len > g.size-r.Offset:
		return fmt.Errorf("bytes %d to %d are not in the window of %d", r.Offset, r.Offset+r.Len, g.size)
	}
	w := joined.Info().Window
	_, err := g.qp.PostSend(endpoint.SendWR{
		ID: r.ID, Op: endpoint.WriteImm, Imm: r.Imm, Local: endpoint.Segment{MR: g.mr, Offset: int(r.Offset), Len: int(r.Len)},
		RemoteAddr: w.Base + uint64(r.Offset), RKey: w.RKey,
	})
	if err != nil {
		return err
	}
	g.tell(answer{Got: [][2]uint64{{uint64(r.Imm), uint64(r.Len)}}}, c)
	return nil
}

// remove takes a member out.
func (g *group) remove(ctx context.Context, r *request) error {
	g.mu.Lock()
	joined := g.joined
	g.mu.Unlock()
	if joined == nil {
		return errNone
	}
	return joined.RemoveQP(ctx, r.Member, r.QPN)
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
	_ = g.file.Close()
}
