// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package rank

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/gleam-rdma/gleam/host/endpoint"
)

// helper has the groups of one process.
type helper struct {
	device       endpoint.Device
	ip           netip.Addr
	host         *endpoint.Host
	qpTimeout    uint8
	otherNetwork bool
	ctx          context.Context // ends with the process
	work         sync.WaitGroup  // goroutines that end with ctx, or with their group
	write        func(b, rights []byte) error

	sending sync.Mutex
	mu      sync.Mutex
	groups  map[int]*group
}

func newHelper(ctx context.Context, write func(b, rights []byte) error) *helper {
	return &helper{ctx: ctx, write: write, groups: make(map[int]*group)}
}

// socket returns the connection that f is an end of.
func socket(f *os.File) (*net.UnixConn, error) {
	kind, err := unix.GetsockoptInt(int(f.Fd()), unix.SOL_SOCKET, unix.SO_TYPE)
	if err != nil || kind != unix.SOCK_SEQPACKET {
		return nil, errors.New("standard input is no Unix socket of type SOCK_SEQPACKET: gleam rank is not for people; module gleam_torch starts it")
	}
	c, err := net.FileConn(f)
	if err != nil {
		return nil, err
	}
	u, ok := c.(*net.UnixConn)
	if !ok {
		return nil, errors.Join(errors.New("standard input is no Unix socket"), c.Close())
	}
	return u, nil
}

// serve answers requests until the process ends, and leaves its groups.
func (h *helper) serve(c *net.UnixConn) error {
	b := make([]byte, MaxPacket+1)
	for {
		n, _, _, _, err := c.ReadMsgUnix(b, nil)
		if n == 0 || err != nil {
			h.leaveAll()
			if err == nil || errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) || errors.Is(err, unix.ECONNRESET) {
				return nil
			}
			return err
		}
		h.handle(b[:n])
	}
}

// handle starts what a request asks for. Posts are in order; the others do not wait for each other.
func (h *helper) handle(b []byte) {
	r, err := decode(b)
	if err != nil {
		h.answer(&r, err)
		return
	}
	if r.Op == "window" {
		h.window(&r)
		return
	}
	g := h.group(r.G)
	if g == nil {
		h.answer(&r, fmt.Errorf("g %d has no window", r.G))
		return
	}
	if r.Op == "post" {
		if err := g.post(&r); err != nil {
			h.answer(&r, err)
		}
		return
	}
	h.work.Go(func() {
		ctx, cancel := context.WithTimeoutCause(h.ctx, r.timeout(), fmt.Errorf("%s took longer than %v", r.Op, r.timeout()))
		defer cancel()
		switch r.Op {
		case "make":
			h.answer(&r, g.make(ctx, &r))
		case "join":
			h.answer(&r, g.join(ctx, &r))
		case "remove":
			h.answer(&r, g.remove(ctx, &r))
		case "leave":
			err := g.leave()
			h.mu.Lock()
			delete(h.groups, r.G)
			h.mu.Unlock()
			g.free()
			h.answer(&r, err)
		}
	})
}

func (h *helper) group(n int) *group {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.groups[n]
}

// window makes a group's memory, and passes it on.
func (h *helper) window(r *request) {
	if h.group(r.G) != nil {
		h.answer(r, fmt.Errorf("g %d has a window", r.G))
		return
	}
	g, file, err := newGroup(h, r)
	if err != nil {
		h.answer(r, err)
		return
	}
	h.mu.Lock()
	h.groups[r.G] = g
	h.mu.Unlock()
	a := answer{Re: r.ID, G: r.G}
	if g.ln != nil {
		a.At = g.ln.Addr().String()
	}
	h.send(a, unix.UnixRights(int(file.Fd())))
	_ = file.Close()
}

// answer says how a request has ended.
func (h *helper) answer(r *request, err error) {
	a := answer{Re: r.ID, G: r.G}
	if err != nil {
		a.Error = err.Error()
	}
	h.send(a, nil)
}

// send sends a packet, with descriptors. That the process has ended is seen by serve.
func (h *helper) send(a answer, rights []byte) {
	b, err := json.Marshal(a)
	if err != nil {
		panic(err) // a has only what can be
	}
	h.sending.Lock()
	defer h.sending.Unlock()
	_ = h.write(b, rights)
}

// leaveAll leaves all groups at once.
func (h *helper) leaveAll() {
	h.mu.Lock()
	defer h.mu.Unlock()
	var all sync.WaitGroup
	for _, g := range h.groups {
		all.Go(func() { _ = g.leave() })
	}
	all.Wait()
}
