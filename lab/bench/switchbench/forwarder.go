// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package switchbench

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/gleam-rdma/gleam/rocev2"
)

// socketForwarder is the simplest method: a program that receives datagrams from a UDP
// socket and sends each to every receiver, by recvmmsg and sendmmsg. It does not change
// them, and so serves no queue pair.
type socketForwarder struct {
	fd      int
	in, out []mmsghdr
	buf     []byte
	iov     []unix.Iovec
	to      []unix.RawSockaddrInet4
	legs    int
}

// mmsghdr is struct mmsghdr of the kernel.
type mmsghdr struct {
	hdr unix.Msghdr
	len uint32
	_   [4]byte
}

const (
	forwarderBatch  = 64
	forwarderBuffer = 8192 // bytes for one datagram
)

func openForwarder(s *testbed) error {
	if err := s.enableNAPI(); err != nil {
		return err
	}
	r := &socketForwarder{legs: s.benchCase.legs, buf: make([]byte, forwarderBatch*forwarderBuffer), fd: -1}
	err := s.star.Switch.Do(func() (err error) {
		if r.fd, err = unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0); err != nil {
			return err
		}
		s.onClose(func() error { return unix.Close(r.fd) })
		// The timeout lets the loop see stop, the buffers hold bursts; beyond the default
		// bounds as root.
		err = unix.SetsockoptTimeval(r.fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Usec: 50_000})
		for _, o := range []int{unix.SO_RCVBUFFORCE, unix.SO_SNDBUFFORCE} {
			err = errors.Join(err, unix.SetsockoptInt(r.fd, unix.SOL_SOCKET, o, 8<<20))
		}
		return errors.Join(err, unix.Bind(r.fd, &unix.SockaddrInet4{Port: rocev2.UDPPort}))
	})
	if err != nil {
		return fmt.Errorf("make the forwarder's socket: %w", err)
	}
	for i := 1; i <= s.benchCase.legs; i++ {
		r.to = append(r.to, unix.RawSockaddrInet4{
			Family: unix.AF_INET, Port: rocev2.UDPPort>>8 | rocev2.UDPPort&0xFF<<8, Addr: s.star.Hosts[i].IPv4.As4(),
		})
	}
	r.prepareBuffers()
	s.onClose(onCPU(s.cpu, r.run).stop)
	return nil
}

// prepareBuffers makes the message headers once: datagram i of a batch is in buffer i, and
// its copies are messages i*legs on.
func (r *socketForwarder) prepareBuffers() {
	r.iov = make([]unix.Iovec, forwarderBatch*(1+r.legs))
	r.in = make([]mmsghdr, forwarderBatch)
	r.out = make([]mmsghdr, forwarderBatch*r.legs)
	for i := range forwarderBatch {
		v := &r.iov[i]
		v.Base = &r.buf[i*forwarderBuffer]
		v.SetLen(forwarderBuffer)
		r.in[i].hdr.Iov = v
		r.in[i].hdr.SetIovlen(1)
		for l := range r.legs {
			k := i*r.legs + l
			v := &r.iov[forwarderBatch+k]
			v.Base = &r.buf[i*forwarderBuffer]
			h := &r.out[k].hdr
			h.Iov = v
			h.SetIovlen(1)
			h.Name = (*byte)(unsafe.Pointer(&r.to[l]))
			h.Namelen = unix.SizeofSockaddrInet4
		}
	}
}

func (r *socketForwarder) run(stopped <-chan struct{}) error {
	for {
		select {
		case <-stopped:
			return nil
		default:
		}
		n, _, e := unix.Syscall6(unix.SYS_RECVMMSG, uintptr(r.fd), uintptr(unsafe.Pointer(&r.in[0])), forwarderBatch, unix.MSG_WAITFORONE, 0, 0)
		switch e {
		case 0:
		case unix.EAGAIN, unix.EINTR:
			continue
		default:
			return fmt.Errorf("forwarder: recvmmsg: %w", e)
		}
		if err := r.send(int(n)); err != nil {
			return err
		}
	}
}

// send sends the copies of the first n datagrams.
func (r *socketForwarder) send(n int) error {
	for i := range n {
		for l := range r.legs {
			r.iov[forwarderBatch+i*r.legs+l].SetLen(int(r.in[i].len))
		}
	}
	for at, all := 0, n*r.legs; at < all; {
		k, _, e := unix.Syscall6(unix.SYS_SENDMMSG, uintptr(r.fd), uintptr(unsafe.Pointer(&r.out[at])), uintptr(all-at), 0, 0, 0)
		switch e {
		case 0:
			at += int(k)
		case unix.EINTR, unix.EAGAIN:
		case unix.ENOBUFS, unix.EHOSTUNREACH, unix.EPERM:
			at++ // this one is lost, and counted as such at the sink
		default:
			return fmt.Errorf("forwarder: sendmmsg: %w", e)
		}
	}
	runtime.KeepAlive(r)
	return nil
}
