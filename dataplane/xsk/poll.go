// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package xsk

import (
	"time"

	"golang.org/x/sys/unix"
)

// Poller waits for packets on several sockets. It belongs to the goroutine that
// owns them.
type Poller struct {
	socks []*Socket
	fds   []unix.PollFd // of socks, followed by the wake descriptor
	ts    unix.Timespec
}

// NewPoller returns a Poller for socks and for one more file descriptor, such as an
// eventfd, by which other goroutines can end a Wait; -1 for none.
func NewPoller(socks []*Socket, wake int) *Poller {
	p := &Poller{socks: socks}
	for _, s := range socks {
		p.fds = append(p.fds, unix.PollFd{Fd: int32(s.fd), Events: unix.POLLIN})
	}
	p.fds = append(p.fds, unix.PollFd{Fd: int32(wake), Events: unix.POLLIN})
	return p
}

// Wait returns when a socket has packets, when the wake descriptor is readable (woken is
// true; the caller reads the descriptor), after timeout, or at a signal. A negative
// timeout means no timeout. Wait also makes the kernel send the packets that Kick left in
// the TX rings. It allocates nothing.
//
// Sockets that were closed, or whose interface is known to be gone, are skipped. An
// interface that vanishes does not end a Wait: see Socket.State.
func (p *Poller) Wait(timeout time.Duration) (woken bool, err error) {
	ts := &p.ts
	if timeout < 0 {
		ts = nil
	} else {
		p.ts = unix.NsecToTimespec(int64(timeout))
	}
	for i, s := range p.socks {
		if s.fd < 0 || s.gone {
			p.fds[i].Fd = -1
		}
	}
	n, err := unix.Ppoll(p.fds, ts, nil)
	if err == unix.EINTR {
		return false, nil
	}
	if err != nil || n == 0 {
		return false, err
	}
	for i, s := range p.socks {
		if p.fds[i].Revents&(unix.POLLERR|unix.POLLHUP|unix.POLLNVAL) != 0 {
			s.gone = true
		}
	}
	return p.fds[len(p.socks)].Revents&unix.POLLIN != 0, nil
}
