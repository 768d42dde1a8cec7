// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package fastpath

import (
	"bytes"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// transmitCounts is the program that counts what ports transmit: ../transmit.c.
type transmitCounts struct {
	link link.Link
	err  error // why there is none
}

// Transmitted is what became of the copies that left the programs for a port.
type Transmitted struct {
	Sent  uint64 // taken by the port's driver
	Lost  uint64 // copies not taken, or dropped by the driver at once
	Error error  // the error of the last batch that the driver refused
}

// start loads and attaches the program, for the network namespace with that cookie.
func (c *transmitCounts) start(maps map[string]*ebpf.Map, cookie uint64) error {
	spec, err := ebpf.LoadCollectionSpecFromReader(bytes.NewReader(transmitObject))
	if err != nil {
		return fmt.Errorf("read the embedded program that counts transmitted copies: %w", err)
	}
	if err := spec.Variables["netns"].Set(cookie); err != nil {
		return err
	}
	shared := make(map[string]*ebpf.Map)
	for _, name := range []string{fastMapFastPorts, fastMapFastSent} {
		spec.Maps[name].MaxEntries, shared[name] = maps[name].MaxEntries(), maps[name]
	}
	coll, err := ebpf.NewCollectionWithOptions(spec, ebpf.CollectionOptions{MapReplacements: shared})
	if err != nil {
		return fmt.Errorf("load the program that counts transmitted copies: %w", err)
	}
	defer coll.Close()
	if c.link, err = link.AttachTracing(link.TracingOptions{Program: coll.Programs["transmit"]}); err != nil {
		return fmt.Errorf("attach the program that counts transmitted copies: %w", err)
	}
	return nil
}

func (c *transmitCounts) close() error {
	if c.link == nil {
		return nil
	}
	return c.link.Close()
}

// netnsCookie returns the kernel's number of the calling thread's network namespace.
func netnsCookie() (cookie uint64, err error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	return unix.GetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_NETNS_COOKIE)
}

// TransmitError is why Transmitted does not count: a kernel without BTF, for example.
func (m *Maps) TransmitError() error {
	m.completing.Wait()
	return m.counts.err
}

// Transmitted returns what became of the copies for a port since New. Any goroutine may
// call it.
func (m *Maps) Transmitted(port int) (t Transmitted) {
	x := &m.sent[port]
	t.Sent = x.sent.Load()
	// In this order: what is withheld meanwhile is no loss.
	unsent := x.unsent.Load()
	if withheld := x.withheld.Load(); unsent > withheld {
		t.Lost = unsent - withheld
	}
	if e := x.error.Load(); e != 0 {
		t.Error = unix.Errno(e)
	}
	return t
}
