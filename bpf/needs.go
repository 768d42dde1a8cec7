// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/features"
	"golang.org/x/sys/unix"

	"github.com/gleam-rdma/gleam/bpf/fastpath"
)

// Supported asks the kernel for each program type, map type and helper that the XDP program
// uses. The error of one that it lacks wraps ebpf.ErrNotSupported; without privileges the
// kernel does not say.
func Supported() error {
	spec, err := readSpec()
	if err != nil {
		return err
	}
	return supports(spec)
}

// FastPathSupported is Supported for the fast path's programs.
func FastPathSupported() error {
	spec, err := fastpath.Spec()
	if err != nil {
		return err
	}
	return supports(spec)
}

// FragsSupported asks the kernel for XDP programs that take packets in several buffers. The
// error of one that has none wraps ebpf.ErrNotSupported.
func FragsSupported() error {
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Type: ebpf.XDP, Flags: unix.BPF_F_XDP_HAS_FRAGS, License: "GPL",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.Return()},
	})
	if err == nil {
		return p.Close()
	}
	if has := features.HaveProgramType(ebpf.XDP); has != nil {
		return has // no program can be loaded
	}
	return ebpf.ErrNotSupported
}

// supports asks for what is in spec.
func supports(spec *ebpf.CollectionSpec) error {
	for _, m := range spec.Maps {
		if err := features.HaveMapType(m.Type); err != nil {
			return err
		}
	}
	for _, p := range spec.Programs {
		if err := features.HaveProgramType(p.Type); err != nil {
			return err
		}
		for _, ins := range p.Instructions {
			if !ins.IsBuiltinCall() {
				continue
			}
			if err := features.HaveProgramHelper(p.Type, asm.BuiltinFunc(ins.Constant)); err != nil {
				return err
			}
		}
	}
	return nil
}
