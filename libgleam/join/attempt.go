// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package join

import (
	"context"
	"fmt"
	"net"
	"os"
	"runtime"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/gleam-rdma/gleam/endpoint"
)

// attempt is one try to join: it runs endpoint.Master or endpoint.Member in the
// background.
type attempt struct {
	session   *Session
	cancel    context.CancelCauseFunc
	described chan endpoint.Remote // one, at most
	connected chan error           // one, at most

	once    sync.Once     // to tell
	done    chan struct{} // closed when the following are set
	err     error         // or else:
	group   *endpoint.Group
	release func() // of the host

	closing   sync.Once
	closed    chan struct{} // ends the pump, if the group does not
	forwarded chan struct{} // closed when the events of group have been taken over
}

// phase is how far an attempt has come.
type phase uint8

const (
	joining phase = iota
	inGroup
	ended
)

func (a *attempt) phase() phase {
	select {
	case <-a.done:
	default:
		return joining
	}
	if a.err != nil {
		return ended
	}
	select {
	case <-a.group.Over():
		return ended
	default:
		return inGroup
	}
}

// start begins an attempt in the network namespace of the calling thread.
func start(s *Session, qp endpoint.QPInfo, mem *Memory) *attempt {
	ctx, cancel := context.WithCancelCause(context.Background())
	a := &attempt{
		session: s, cancel: cancel, described: make(chan endpoint.Remote, 1), connected: make(chan error, 1),
		done: make(chan struct{}), closed: make(chan struct{}), forwarded: make(chan struct{}),
	}
	ns, err := os.Open(threadNS)
	if err != nil {
		ns = nil // no /proc: then nobody is told apart
	}
	go a.run(ctx, ns, qp, mem)
	return a
}

// report says how connecting went. Only the first word counts.
func (a *attempt) report(failure error) error {
	select {
	case <-a.done:
		if a.err != nil {
			return a.err
		}
	default:
	}
	first := false
	a.once.Do(func() {
		first = true
		a.connected <- failure
	})
	if !first {
		return fmt.Errorf("%w: the queue pair was reported as connected already", ErrOrder)
	}
	return nil
}

func (a *attempt) run(ctx context.Context, ns *os.File, qp endpoint.QPInfo, mem *Memory) {
	defer a.cancel(nil)
	release, err := func() (release func(), err error) {
		stay, err := follow(ns)
		defer stay()
		if err != nil {
			return nil, err
		}
		host, release, err := shareHost(qp.IP, a.session.cfg.Host)
		if err != nil {
			return nil, err
		}
		local := endpoint.Local{QP: &fixedQP{attempt: a, info: qp}, Host: host, ReceiveOnly: a.session.cfg.ReceiveOnly}
		if mem != nil {
			local.Memory = &fixedMR{mem: *mem}
		}
		if a.group, err = a.session.cfg.join(ctx, local); err != nil {
			release()
		}
		return release, err
	}()
	q := a.session.events
	if a.err = err; err != nil {
		q.add(endpoint.Event{Kind: endpoint.Failed, Err: err})
		q.end()
	} else {
		a.release = release
		go a.forwardEvents(q)
	}
	close(a.done)
}

// forwardEvents hands the group's events on, until it is over.
func (a *attempt) forwardEvents(q *queue) {
	defer close(a.forwarded)
	for {
		select {
		case e := <-a.group.Events():
			q.add(e)
			continue
		case <-a.group.Over():
		case <-a.closed:
		}
		for { // what was queued before
			select {
			case e := <-a.group.Events():
				q.add(e)
				continue
			default:
			}
			q.end()
			return
		}
	}
}

// close leaves the group, if there is one, and lets go of what it held. The
// attempt must be done.
func (a *attempt) close() (err error) {
	if a.err != nil {
		return nil
	}
	a.closing.Do(func() {
		err = a.group.Close()
		close(a.closed)
		<-a.forwarded
		a.release()
	})
	return err
}

// join makes the group, or joins it.
func (c *Config) join(ctx context.Context, local endpoint.Local) (*endpoint.Group, error) {
	if c.Master == nil {
		return endpoint.Member(ctx, endpoint.MemberConfig{Local: local, Master: c.Exchange})
	}
	ln, err := net.Listen("tcp", c.Exchange)
	if err != nil {
		return nil, fmt.Errorf("listen for members (the exchange address has to be one of this host, and free): %w", err)
	}
	defer ln.Close()
	m := *c.Master
	m.Local, m.Listener = local, ln
	return endpoint.Master(ctx, m)
}

// threadNS is the network namespace of the calling thread.
const threadNS = "/proc/thread-self/ns/net"

// follow puts the calling goroutine's thread into the network namespace ns and
// closes ns. A C program may have moved the thread that called us, while Go's
// own threads are where the library was loaded. stay is to be called after.
func follow(ns *os.File) (stay func(), err error) {
	runtime.LockOSThread()
	stay = runtime.UnlockOSThread
	if ns == nil {
		return stay, nil
	}
	defer ns.Close()
	var there, here unix.Stat_t
	if unix.Fstat(int(ns.Fd()), &there) != nil || unix.Stat(threadNS, &here) != nil || there.Ino == here.Ino {
		return stay, nil
	}
	if err := unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET); err != nil {
		return stay, fmt.Errorf("the calling thread is in another network namespace than this library, which cannot follow "+
			"(load the library in that namespace, or run with CAP_SYS_ADMIN): %w", err)
	}
	return func() {}, nil // the thread stays locked, and so ends with the goroutine
}
