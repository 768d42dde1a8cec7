// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package soft

import (
	"bytes"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"github.com/gleam-rdma/gleam/lab"
	"github.com/gleam-rdma/gleam/rocev2"
)

// bottleneck replaces the bridge between two hosts of a star. From host 0 to host 1
// frames pass a queue that drains at a rate; frames that find it above a threshold are
// marked CE if they are ECN-capable. From 1 to 0 they pass at once.
type bottleneck struct {
	rate  atomic.Int64 // bits/s; 0: no limit
	mark  atomic.Int64 // bytes; below 0: every frame is marked
	depth atomic.Int64 // bytes in the queue
	peak  atomic.Int64 // maximum of depth since the last set
	bytes atomic.Int64 // passed to host 1, as counted on a link
	lost  atomic.Int64 // frames that the queue had no room for

	mu   sync.Mutex
	seen [2][][]byte // frames from host 0 and from host 1, in order of arrival, if keep
	keep bool
}

// queueFrames is the capacity of the queue, far more than a send window.
const queueFrames = 1 << 14

// install puts b between the hosts of a star, until the test ends.
func (b *bottleneck) install(t testing.TB, s *lab.Star) {
	t.Helper()
	var ports [2]*socket
	all, err := bpf.Assemble([]bpf.Instruction{bpf.RetConstant{Val: 0x40000}})
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range s.Ports[:2] {
		h := s.Switch.Handle()
		l, err := h.LinkByName(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := h.LinkSetNoMaster(l); err != nil {
			t.Fatal(err)
		}
		ports[i] = openPort(t, s, l, all)
	}
	queue := make(chan []byte, queueFrames)
	var wg sync.WaitGroup
	t.Cleanup(func() {
		for _, p := range ports {
			_ = p.file.Close()
		}
		wg.Wait()
	})
	wg.Go(func() { defer close(queue); b.receive(ports[0], 0, func(f []byte) { b.enqueue(queue, f) }) })
	wg.Go(func() { b.drain(queue, ports[1].fd) })
	wg.Go(func() { b.receive(ports[1], 1, func(f []byte) { _, _ = unix.Write(ports[0].fd, f) }) })
}

func openPort(t testing.TB, s *lab.Star, l netlink.Link, filter []bpf.RawInstruction) (p *socket) {
	t.Helper()
	err := s.Switch.Do(func() error {
		fd, err := rawSocket(l.Attrs().Index, filter, 16<<20)
		if err == nil {
			p, err = newSocket(fd, 2048)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// receive calls pass for every frame that arrives at p, until p is closed.
func (b *bottleneck) receive(p *socket, from int, pass func([]byte)) {
	for p.waitRead() == nil {
		for i := range p.rxN {
			f, _, _, _ := p.frame(i)
			b.mu.Lock()
			if b.keep {
				b.seen[from] = append(b.seen[from], bytes.Clone(f))
			}
			b.mu.Unlock()
			pass(f)
		}
	}
}

func (b *bottleneck) enqueue(queue chan<- []byte, f []byte) {
	f = bytes.Clone(f)
	var d rocev2.Frame
	if rocev2.Decode(f, &d) == rocev2.OK && d.Kind == rocev2.KindRoCE && d.ECN() != rocev2.NotECT && b.depth.Load() > b.mark.Load() {
		d.SetECN(rocev2.CE)
	}
	select {
	case queue <- f:
		n := b.depth.Add(int64(len(f)))
		b.peak.Store(max(b.peak.Load(), n))
	default:
		b.lost.Add(1)
	}
}

// drain passes one frame after the other, each after its time on the link.
func (b *bottleneck) drain(queue <-chan []byte, fd int) {
	var free time.Time // time at which the link becomes free
	for f := range queue {
		if rate := b.rate.Load(); rate > 0 {
			if late := time.Now().Add(-2 * time.Millisecond); free.Before(late) {
				free = late // at most 2 ms of lateness are made up for
			}
			free = free.Add(time.Duration(int64(len(f)+linkOverhead) * 8e9 / rate))
			if wait := time.Until(free); wait > 100*time.Microsecond {
				ts := unix.NsecToTimespec(int64(wait))
				_ = unix.Nanosleep(&ts, nil)
			}
		}
		_, _ = unix.Write(fd, f)
		b.depth.Add(-int64(len(f)))
		b.bytes.Add(int64(len(f) + linkOverhead))
	}
}

// taken returns the retained frames of op from a host.
func (b *bottleneck) taken(from int, op rocev2.Opcode) (frames [][]byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, f := range b.seen[from] {
		var d rocev2.Frame
		if rocev2.Decode(f, &d) == rocev2.OK && d.Kind == rocev2.KindRoCE && d.Op == op {
			frames = append(frames, f)
		}
	}
	return frames
}
