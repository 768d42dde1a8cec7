// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package neighbours

import (
	"context"
	"errors"
	"os"
	"sync"
	"time"

	"github.com/gleam-rdma/gleam/dataplane"
	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/envelope/hello"
	"github.com/gleam-rdma/gleam/rocev2"
)

// Port is a port of the switch at which hellos are sent and heard.
type Port struct {
	Index   int // the index in the data plane
	Name    string
	Ifindex int // 0: there is no port at this index
	MAC     rocev2.MAC
	MTU     int
	Up      bool
}

// Link is the state of the link at a port.
type Link struct {
	Port      int // index in the data plane
	State     hello.State
	Reason    hello.Reason    // why the state is not Up
	Neighbour hello.Neighbour // the neighbour, if the state is Up
	Lost      hello.Reason    // why the last adjacency ended; NoReason: there was none
	Sent      uint64          // hellos
	Received  uint64
	NotSent   uint64 // hellos that the kernel did not take
	Drops     [hello.NumDrops]uint64
	LastDrop  Dropped
}

// Dropped is a hello that had no effect.
type Dropped struct {
	Drop hello.Drop
	From rocev2.MAC
	At   time.Duration
}

// maxHellos bounds the hellos that are taken from one port a second: the HMAC of each costs
// some microseconds. MaxNeighbours at the shortest interval send fewer.
const maxHellos = 1000

// warnInterval is the least time between two warnings of one reason at one port.
const warnInterval = time.Minute

// link is the hello machine of a port, with its socket.
type link struct {
	Port
	socket  socket
	now     func() time.Duration
	notify  dataplane.Notify
	changed func() // rings the runtime's bell

	mu      sync.Mutex
	machine *hello.Link
	out     hello.Output
	state   Link
	policer dataplane.Policer
	warned  [hello.NumDrops]time.Duration // the time when the operator was last told; 0: never
	frame   []byte                        // reused
	ended   bool
}

// run exchanges hellos until ctx ends.
func (l *link) run(ctx context.Context) {
	stop := context.AfterFunc(ctx, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.ended = true
		l.arm()
	})
	defer stop()
	b := make([]byte, headerLen+hello.MaxLen+1)
	for ctx.Err() == nil {
		if wait := l.advance(); wait > 0 {
			sleep(ctx, wait)
			continue
		}
		n, err := l.socket.Read(b)
		switch {
		case err == nil:
			l.receive(b[:n])
		case !errors.Is(err, os.ErrDeadlineExceeded):
			sleep(ctx, readRetry) // the interface is down, or gone
		}
	}
}

// readRetry is the time between two attempts to read from a socket that has failed.
const readRetry = 100 * time.Millisecond

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// advance does what is due, and returns how long not to read, since the port has brought too
// many hellos.
func (l *link) advance() (wait time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	l.machine.Advance(now, &l.out)
	l.handle()
	l.arm()
	if wait = l.policer.WaitFor(now); wait > 0 {
		if at, ok := l.machine.NextDeadline(); ok {
			wait = max(0, min(wait, at-now))
		}
	}
	return wait
}

// receive takes a frame.
func (l *link) receive(b []byte) {
	if len(b) < headerLen {
		return
	}
	from := rocev2.MAC(b[sourceAt:typeAt])
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	l.policer.Allow(now)
	l.state.Received++
	l.machine.Input(now, from, b[headerLen:], &l.out)
	if l.out.Drop != hello.NoDrop {
		l.state.Drops[l.out.Drop]++
		l.state.LastDrop = Dropped{l.out.Drop, from, now}
		l.warn(now, from)
	}
	l.handle()
}

// warn tells the operator of a hello that had no effect, where a mistake of the
// configuration or an attack is the reason.
func (l *link) warn(now time.Duration, from rocev2.MAC) {
	d := l.out.Drop
	if !d.Suspicious() || l.warned[d] > 0 && now-l.warned[d] < warnInterval {
		return
	}
	l.warned[d] = now
	l.notify(true, "hellos of another switch have no effect", "port", l.Name, "mac", from, "reason", d.Text(), "hellos", l.state.Drops[d])
}

// handle sends the machine's hellos, and notes its state.
func (l *link) handle() {
	for _, b := range l.out.Packets {
		l.frame = append(appendHeader(l.frame[:0], l.MAC), b...)
		if _, err := l.socket.Write(l.frame); err != nil {
			l.state.NotSent++ // the next one follows after the interval
			continue
		}
		l.state.Sent++
	}
	for _, e := range l.out.Events {
		if e.State != hello.Up && l.state.State == hello.Up {
			l.state.Lost = e.Reason
		}
		l.state.State, l.state.Reason = e.State, e.Reason
	}
	if len(l.out.Events) > 0 {
		l.state.Neighbour, _ = l.machine.Neighbour()
		l.changed()
	}
}

// arm sets the time at which a read returns without a frame.
func (l *link) arm() {
	var t time.Time // none
	if at, ok := l.machine.NextDeadline(); l.ended {
		t = time.Unix(1, 0)
	} else if ok {
		t = time.Now().Add(at - l.now())
	}
	_ = l.socket.SetReadDeadline(t) // of a closed socket, it fails, and so does the read
}

// setLink takes the state of the port's interface.
func (l *link) setLink(up bool, mtu int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	if l.MTU = mtu; mtu > 0 {
		_ = l.machine.SetAddress(now, l.address()) // the MAC address is the one that it was made with
	}
	l.machine.SetLink(now, up, &l.out)
	l.handle()
	l.machine.Advance(now, &l.out)
	l.handle()
	l.arm()
}

func (l *link) address() hello.Address {
	return hello.Address{Port: uint32(l.Index), MAC: l.MAC, MTU: uint32(l.MTU)}
}

// setKeys replaces the keys.
func (l *link) setKeys(keys envelope.Keys, send envelope.KeyID) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.machine.SetKeys(keys, send)
}

// read returns the state of the link.
func (l *link) read() Link {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state
}
