// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package groups

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"sync/atomic"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/gleam-rdma/gleam/lab"
	"github.com/gleam-rdma/gleam/rocev2"
)

// sinks count the RoCEv2 packets that each host's queue pairs accept, those in order, and drop all: a packet that
// the switch sends again is none. They run in the kernel, so that the receivers take no CPU time of their own.
type sinks struct {
	psns   *ebpf.Map // the next PSN of each queue pair that has got a packet, and that which came last
	counts *ebpf.Map
	memory []uint64 // the memory of counts: the data packets of each host
	unmap  func()
}

func newSinks(hosts []lab.Host, groups int) (_ *sinks, err error) {
	s := &sinks{}
	s.counts, err = ebpf.NewMap(&ebpf.MapSpec{
		Name: "gleam_sinks", Type: ebpf.Array, KeySize: 4, ValueSize: 8, MaxEntries: uint32(len(hosts)), Flags: unix.BPF_F_MMAPABLE,
	})
	if err != nil {
		return nil, fmt.Errorf("make the sinks' counters: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	if s.psns, err = ebpf.NewMap(&ebpf.MapSpec{Name: "gleam_sinks_psn", Type: ebpf.Hash, KeySize: 8, ValueSize: 8, MaxEntries: uint32(groups * len(hosts))}); err != nil {
		return nil, fmt.Errorf("make the sinks' PSNs: %w", err)
	}
	n := (len(hosts)*8 + unix.Getpagesize() - 1) &^ (unix.Getpagesize() - 1)
	memory, err := unix.Mmap(s.counts.FD(), 0, n, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map the sinks' counters: %w", err)
	}
	s.unmap = func() { _ = unix.Munmap(memory) }
	s.memory = unsafe.Slice((*uint64)(unsafe.Pointer(&memory[0])), len(hosts))
	for i, h := range hosts {
		if err := s.attach(i, h); err != nil {
			return nil, fmt.Errorf("host %s: %w", h.Name, err)
		}
	}
	return s, nil
}

// attach makes a host's interface count and drop. It ends with the interface.
func (s *sinks) attach(i int, h lab.Host) error {
	link, err := h.NS.Handle().LinkByName(h.Interface)
	if err != nil {
		return err
	}
	prog, err := ebpf.NewProgram(&ebpf.ProgramSpec{Name: "gleam_sink", Type: ebpf.SchedCLS, License: "GPL", Instructions: sinkProgram(s.counts.FD(), s.psns.FD(), i)})
	if err != nil {
		return fmt.Errorf("load a sink's program: %w", err)
	}
	defer prog.Close() // the filter holds it
	at := link.Attrs().Index
	qdisc := &netlink.Clsact{QdiscAttrs: netlink.QdiscAttrs{LinkIndex: at, Handle: netlink.MakeHandle(0xffff, 0), Parent: netlink.HANDLE_CLSACT}}
	filter := &netlink.BpfFilter{
		FilterAttrs: netlink.FilterAttrs{LinkIndex: at, Parent: netlink.HANDLE_MIN_INGRESS, Handle: 1, Protocol: unix.ETH_P_ALL, Priority: 1},
		Fd:          prog.FD(), Name: "gleam_sink", DirectAction: true,
	}
	if err := h.NS.Handle().QdiscAdd(qdisc); err != nil {
		return fmt.Errorf("make a sink: %w", err)
	}
	if err := h.NS.Handle().FilterAdd(filter); err != nil {
		return fmt.Errorf("make a sink: %w", err)
	}
	return nil
}

// sinkProgram drops RoCEv2 over IPv6, and counts packets of data whose PSN is the next one of their queue
// pair. At the source, the first host, it notes how far the ACKs are.
func sinkProgram(counts, next, host int) asm.Instructions {
	const (
		ip   = rocev2.EthernetLen
		udp  = ip + rocev2.IPv6Len
		bth  = udp + rocev2.UDPLen
		stop = 2  // TC_ACT_SHOT
		pass = -1 // TC_ACT_UNSPEC
	)
	want := int32(op)
	if host == 0 {
		want = int32(rocev2.Acknowledge)
	}
	be16 := func(v uint16) int32 { return int32(bits.ReverseBytes16(v)) }
	return asm.Instructions{
		asm.Mov.Reg(asm.R6, asm.R1),
		asm.LoadMem(asm.R7, asm.R6, 76, asm.Word), // __sk_buff.data
		asm.LoadMem(asm.R8, asm.R6, 80, asm.Word), // data_end
		asm.Mov.Reg(asm.R1, asm.R7),
		asm.Add.Imm(asm.R1, bth+rocev2.BTHLen),
		asm.JGT.Reg(asm.R1, asm.R8, "pass"),
		asm.LoadMem(asm.R1, asm.R7, 12, asm.Half),
		asm.JNE.Imm(asm.R1, be16(rocev2.EtherTypeIPv6), "pass"),
		asm.LoadMem(asm.R1, asm.R7, ip+6, asm.Byte),
		asm.JNE.Imm(asm.R1, int32(rocev2.ProtoUDP), "pass"),
		asm.LoadMem(asm.R1, asm.R7, udp+2, asm.Half),
		asm.JNE.Imm(asm.R1, be16(rocev2.UDPPort), "pass"),
		asm.LoadMem(asm.R1, asm.R7, bth, asm.Byte),
		asm.JNE.Imm(asm.R1, want, "drop"),
		asm.LoadMem(asm.R1, asm.R7, bth+4, asm.Word), // the queue pair; its first byte is not of it
		asm.And.Imm(asm.R1, -1<<8),
		asm.StoreMem(asm.RFP, -16, asm.R1, asm.Word),
		asm.StoreImm(asm.RFP, -12, int64(host), asm.Word),
		asm.LoadMem(asm.R9, asm.R7, bth+8, asm.Word), // the PSN
		asm.HostTo(asm.BE, asm.R9, asm.Word),
		asm.And.Imm(asm.R9, rocev2.PSNMask),
		asm.LoadMapPtr(asm.R1, next),
		asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, -16),
		asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, "accept"),
		asm.LoadMem(asm.R1, asm.R0, 0, asm.Word),
		asm.Mov.Imm(asm.R2, int32(host)),
		asm.JNE.Imm(asm.R2, 0, "receiver"),
		asm.Mov.Reg(asm.R2, asm.R9), // an ACK that is overtaken by a later one changes nothing
		asm.Sub.Reg(asm.R2, asm.R1),
		asm.And.Imm(asm.R2, 1<<23),
		asm.JNE.Imm(asm.R2, 0, "drop"),
		asm.Ja.Label("accept"),
		asm.StoreMem(asm.R0, 4, asm.R9, asm.Word).WithSymbol("receiver"),
		asm.JNE.Reg(asm.R1, asm.R9, "drop"),
		asm.Add.Imm(asm.R9, 1),
		asm.And.Imm(asm.R9, rocev2.PSNMask),
		asm.StoreMem(asm.R0, 0, asm.R9, asm.Word),
		asm.Ja.Label("count"),
		asm.StoreMem(asm.RFP, -20, asm.R9, asm.Word).WithSymbol("accept"),
		asm.Add.Imm(asm.R9, 1),
		asm.And.Imm(asm.R9, rocev2.PSNMask),
		asm.StoreMem(asm.RFP, -24, asm.R9, asm.Word),
		asm.LoadMapPtr(asm.R1, next),
		asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, -16),
		asm.Mov.Reg(asm.R3, asm.RFP), asm.Add.Imm(asm.R3, -24),
		asm.Mov.Imm(asm.R4, 0),
		asm.FnMapUpdateElem.Call(),
		asm.StoreImm(asm.RFP, -4, int64(host), asm.Word).WithSymbol("count"),
		asm.LoadMapPtr(asm.R1, counts),
		asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, -4),
		asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, "drop"),
		asm.Mov.Imm(asm.R1, 1),
		asm.StoreXAdd(asm.R0, asm.R1, asm.DWord),
		asm.Mov.Imm(asm.R0, stop).WithSymbol("drop"),
		asm.Return(),
		asm.Mov.Imm(asm.R0, pass).WithSymbol("pass"),
		asm.Return(),
	}
}

// least returns the number of packets that every receiver has.
func (s *sinks) least() uint64 {
	n := uint64(math.MaxUint64)
	for i := 1; i < len(s.memory); i++ { // 0 is the source
		n = min(n, atomic.LoadUint64(&s.memory[i]))
	}
	return n
}

// each returns the packets of every receiver.
func (s *sinks) each() []uint64 {
	n := make([]uint64, len(s.memory)-1)
	for i := range n {
		n[i] = atomic.LoadUint64(&s.memory[i+1])
	}
	return n
}

// next returns the next PSN of a queue pair at a host, and that of the packet which came last; false: it has got none.
func (s *sinks) next(qpn rocev2.QPN, host int) (next, last rocev2.PSN, ok bool) {
	var key [8]byte
	binary.BigEndian.PutUint32(key[:], uint32(qpn))
	binary.NativeEndian.PutUint32(key[4:], uint32(host))
	var psns [2]uint32
	err := s.psns.Lookup(key, &psns)
	return rocev2.PSN(psns[0]), rocev2.PSN(psns[1]), err == nil
}

func (s *sinks) close() error {
	if s.unmap != nil {
		s.unmap()
	}
	if s.psns == nil {
		return s.counts.Close()
	}
	return errors.Join(s.counts.Close(), s.psns.Close())
}
