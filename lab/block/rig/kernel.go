// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// Requests of the kernel's NBD client, linux/nbd.h.
const (
	nbdSetSocket    = 0xab00
	nbdSetBlockSize = 0xab01
	nbdDoIt         = 0xab03
	nbdClearSocket  = 0xab04
	nbdSetBlocks    = 0xab07
	nbdDisconnect   = 0xab08
	nbdSetTimeout   = 0xab09
	nbdSetFlags     = 0xab0a
)

const (
	kernelBlock   = 4096 // bytes of a block of the kernel's device
	kernelTimeout = 60   // seconds that a request may take
)

// Kernel is a device of the kernel, such as /dev/nbd0, whose requests go to the NBD server at a Unix socket.
type Kernel struct {
	device *os.File
	ended  chan error
}

// Attach attaches the server at a Unix socket to a device of the module nbd.
func Attach(socket, device string) (_ *Kernel, err error) {
	c, err := net.Dial("unix", socket)
	if err != nil {
		return nil, err
	}
	defer c.Close() // the kernel has the socket by then
	n := &Client{c: c}
	flags, err := n.export(bufio.NewReader(c)) // a server sends nothing more before it is asked
	if err != nil {
		return nil, fmt.Errorf("NBD handshake: %w", err)
	}
	s, err := c.(*net.UnixConn).File()
	if err != nil {
		return nil, err
	}
	defer s.Close()
	if err := unix.SetNonblock(int(s.Fd()), false); err != nil {
		return nil, err
	}
	k := &Kernel{ended: make(chan error, 1)}
	if k.device, err = os.OpenFile(device, os.O_RDWR, 0); err != nil {
		return nil, fmt.Errorf("%w: is the module nbd loaded?", err)
	}
	for _, r := range []struct {
		request uint
		value   int
	}{
		{nbdSetBlockSize, kernelBlock}, {nbdSetBlocks, int(n.Size / kernelBlock)}, {nbdSetTimeout, kernelTimeout}, {nbdSetFlags, int(flags)}, {nbdSetSocket, int(s.Fd())},
	} {
		if err := unix.IoctlSetInt(int(k.device.Fd()), r.request, r.value); err != nil {
			return nil, errors.Join(fmt.Errorf("%s, request 0x%x: %w", device, r.request, err), k.device.Close())
		}
	}
	go func() { k.ended <- doIt(int(k.device.Fd())) }()
	return k, nil
}

// doIt returns when the device has ended. A signal to its thread, such as that of a child's end, would end it.
func doIt(fd int) error {
	runtime.LockOSThread() // the thread ends with the goroutine
	var all unix.Sigset_t
	for i := range all.Val {
		all.Val[i] = ^uint64(0)
	}
	if err := unix.PthreadSigmask(unix.SIG_BLOCK, &all, nil); err != nil {
		return err
	}
	return unix.IoctlSetInt(fd, nbdDoIt, 0)
}

// Detach ends the device, and returns an error if it had ended before.
func (k *Kernel) Detach() error {
	fd := int(k.device.Fd())
	err := unix.IoctlSetInt(fd, nbdDisconnect, 0)
	return errors.Join(err, <-k.ended, unix.IoctlSetInt(fd, nbdClearSocket, 0), k.device.Close())
}
