// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package fastpath

import (
	"fmt"
	"io"
	"sync"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
)

// cloneProgram is the program of tc that makes copies as clones.
type cloneProgram struct {
	once    sync.Once
	program *ebpf.Program
	err     error
}

// LoadClones loads the program that AttachClones attaches.
func (m *Maps) LoadClones() error {
	x := &m.clones
	x.once.Do(func() { x.program, x.err = m.loadCopies(fastProgClones) })
	if x.err != nil {
		return fmt.Errorf("load the program that copies frames in several buffers: %w", x.err)
	}
	return nil
}

// AttachClones attaches the program that makes the copies of frames in several buffers to the interface of a
// port, in the network namespace of the calling thread. It needs Linux 6.6. The program is detached by Close, or when
// this process ends.
func (m *Maps) AttachClones(ifindex int) (io.Closer, error) {
	if err := m.LoadClones(); err != nil {
		return nil, err
	}
	// Before all others: what it takes is none of theirs, and it leaves the rest to them.
	l, err := link.AttachTCX(link.TCXOptions{Interface: ifindex, Program: m.clones.program, Attach: ebpf.AttachTCXIngress, Anchor: link.Head()})
	if err != nil {
		return nil, fmt.Errorf("attach the program that copies frames in several buffers: %w", err)
	}
	return l, nil
}
