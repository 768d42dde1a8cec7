// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package switchbench

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// copyValue is struct copy of replicate.c.
type copyValue struct {
	Ifindex, ICRC uint32
	Head          [52]byte
}

// openClone replicates by a BPF program of tc: it keeps a packet's bytes, rewrites the skb for a receiver after the
// other, and sends a clone to each. It is the least that a fast path for frames in several buffers would do, which the
// kernel does not broadcast.
func openClone(s *testbed) error {
	if err := s.enableNAPI(); err != nil {
		return err
	}
	spec, err := loadReplicate()
	if err != nil {
		return err
	}
	err = errors.Join(
		spec.Variables["frame_len"].Set(uint32(s.benchCase.frameLen())),
		spec.Variables["receivers"].Set(uint32(s.benchCase.legs)))
	if err != nil {
		return err
	}
	var o struct {
		Clone  *ebpf.Program `ebpf:"clone"`
		Copies *ebpf.Map     `ebpf:"copies"`
		Kept   *ebpf.Map     `ebpf:"kept"`
	}
	if err := spec.LoadAndAssign(&o, nil); err != nil {
		return fmt.Errorf("load the cloning program: %w", err)
	}
	s.onClose(func() error { return closeAll(o.Clone, o.Copies, o.Kept) })
	for i := 1; i <= s.benchCase.legs; i++ {
		out, err := ifindex(s.star.Switch, s.star.Ports[i])
		if err != nil {
			return err
		}
		l, err := newBareLeg(s, i)
		if err != nil {
			return err
		}
		v := copyValue{Ifindex: uint32(out), ICRC: l.icrc}
		copy(v.Head[:], l.headers[:])
		if err := o.Copies.Put(uint32(i-1), &v); err != nil {
			return fmt.Errorf("set a receiver of the cloning program: %w", err)
		}
	}
	h := s.star.Switch.Handle()
	in, err := ifindex(s.star.Switch, s.star.Ports[0])
	if err != nil {
		return err
	}
	if err := addClsact(h, in); err != nil {
		return err
	}
	filter := &netlink.BpfFilter{
		FilterAttrs: netlink.FilterAttrs{LinkIndex: in, Parent: netlink.HANDLE_MIN_INGRESS, Handle: 1, Priority: 1, Protocol: unix.ETH_P_ALL},
		Fd:          o.Clone.FD(), Name: "clone", DirectAction: true,
	}
	if err := h.FilterAdd(filter); err != nil {
		return fmt.Errorf("attach the cloning program: %w", err)
	}
	return nil
}
