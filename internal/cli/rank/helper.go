// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package rank

import (
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
)

// helper has the groups of the processes of one address.
type helper struct {
	device       endpoint.Device
	ip           netip.Addr
	host         *endpoint.Host
	qpTimeout    uint8
	otherNetwork bool
	endsAfter    time.Duration   // how long open waits for the end of a group of the same name
	ctx          context.Context // ends with the program
	work         sync.WaitGroup  // goroutines that end with ctx, or with their group

	mu      sync.Mutex
	groups  map[string]*group // the groups by name
	windows int               // windows that were made
	clients int               // processes
}

func newHelper(ctx context.Context) *helper {
	return &helper{ctx: ctx, endsAfter: 10 * time.Second, groups: make(map[string]*group)}
}

// socket returns the listener that f is. Its name stays taken until the end of the program, when the address is free.
func socket(f *os.File) (*net.UnixListener, error) {
	kind, err := unix.GetsockoptInt(int(f.Fd()), unix.SOL_SOCKET, unix.SO_TYPE)
	listens, err2 := unix.GetsockoptInt(int(f.Fd()), unix.SOL_SOCKET, unix.SO_ACCEPTCONN)
	if err != nil || err2 != nil || kind != unix.SOCK_SEQPACKET || listens == 0 {
		return nil, errors.New("standard input is no Unix socket of type SOCK_SEQPACKET that listens: gleam rank is not for people; module gleam_torch starts it")
	}
	l, err := net.FileListener(f)
	if err != nil {
		return nil, err
	}
	u, ok := l.(*net.UnixListener)
	if !ok {
		return nil, errors.Join(errors.New("standard input is no Unix socket"), l.Close())
	}
	return u, nil
}

// listen serves the processes of the same user that connect, until the last one has ended.
func (h *helper) listen(l *net.UnixListener) error {
	end := func() { _ = l.SetDeadline(time.Unix(1, 0)) }
	stop := context.AfterFunc(h.ctx, end)
	defer stop()
	var all sync.WaitGroup
	defer all.Wait()
	for {
		conn, err := l.AcceptUnix()
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			if h.idle(l) {
				return nil
			}
			continue
		case err != nil:
			return err
		case !sameUser(conn):
			_ = conn.Close()
			continue
		}
		h.mu.Lock()
		h.clients++
		h.mu.Unlock()
		all.Go(func() {
			h.serve(conn)
			h.mu.Lock()
			defer h.mu.Unlock()
			if h.clients--; h.clients == 0 {
				end()
			}
		})
	}
}

// idle says whether nobody is served; else one has come while the last one ended, and l goes on.
func (h *helper) idle(l *net.UnixListener) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.clients == 0 || h.ctx.Err() != nil {
		return true
	}
	_ = l.SetDeadline(time.Time{})
	return false
}

// sameUser says whether the process at the other end is of the user of this one.
func sameUser(conn *net.UnixConn) bool {
	raw, err := conn.SyscallConn()
	if err != nil {
		return false
	}
	same := false
	_ = raw.Control(func(fd uintptr) {
		cred, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
		same = err == nil && int(cred.Uid) == os.Geteuid()
	})
	return same
}

// open makes a group's memory for a process, or has it share that of another process that has named it alike.
func (h *helper) open(c *client, r *request) (*group, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.windows++
	name := r.Name
	if name == "" {
		name = fmt.Sprintf("\x00%d", h.windows)
	}
	late := time.After(h.endsAfter)
	for g := h.groups[name]; g != nil; g = h.groups[name] {
		switch {
		case g.over():
			h.mu.Unlock()
			var err error
			select {
			case <-g.gone:
			case <-late:
				err = errors.New("this address is out of the group, and another process of it, which is still there, has to end first")
			case <-h.ctx.Done():
				err = h.ctx.Err()
			}
			if h.mu.Lock(); err != nil {
				return nil, err
			}
		case r.Bytes != g.size:
			return nil, fmt.Errorf("a window of %d bytes: another process of this address has one of %d", r.Bytes, g.size)
		case r.Alone || g.alone:
			return nil, errors.New("several ranks have this address, and so one window: tensors in it (GLEAM_TENSORS) need an address for each rank")
		default:
			return g, g.enter(c, r)
		}
	}
	g, err := newGroup(h, r, h.windows)
	if err != nil {
		return nil, err
	}
	g.name = name
	if err := g.enter(c, r); err != nil {
		g.free()
		return nil, err
	}
	h.groups[name] = g
	return g, nil
}

// leave takes a process out of a group; with the last one the group is left.
func (h *helper) leave(c *client, g *group) error {
	if g.exit(c) > 0 {
		return nil
	}
	err := g.leave()
	h.mu.Lock()
	delete(h.groups, g.name)
	h.mu.Unlock()
	close(g.gone)
	g.free()
	return err
}
