// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// rule says what a system call may do.
type rule struct {
	nr     uint32
	action uint32 // the action if cond holds, or there is none
	cond   *cond
}

// cond looks at the lower 32 bits of an argument. It holds if they are one of
// oneOf, or, without these, if of the bits in mask exactly those in bits are set.
type cond struct {
	arg        int
	oneOf      []uint32
	mask, bits uint32
	ownPID     bool  // oneOf is the process's own identifier
	and        *cond // a further condition that has to hold
	or         *cond // holds if c does not
}

// Actions. A call that no rule names is one that this kernel does not know, which a
// newer Go runtime or library can live with. What only an intruder calls ends the
// process.
const (
	allow   = uint32(unix.SECCOMP_RET_ALLOW)
	kill    = uint32(unix.SECCOMP_RET_KILL_PROCESS)
	unknown = uint32(unix.SECCOMP_RET_ERRNO) | uint32(unix.ENOSYS)
	refused = uint32(unix.SECCOMP_RET_ERRNO) | uint32(unix.EPERM)
)

// Offsets in struct seccomp_data (linux/seccomp.h), on a little-endian machine.
const (
	offNr   = 0
	offArch = 4
	offArgs = 16
)

// program is the filter in classic BPF.
func program(rules []rule, pid int) ([]bpf.RawInstruction, error) {
	if auditArch == 0 {
		return nil, fmt.Errorf("there is none for %s", runtime.GOARCH)
	}
	ins := []bpf.Instruction{
		bpf.LoadAbsolute{Off: offArch, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: auditArch, SkipTrue: 1},
		bpf.RetConstant{Val: kill},
		bpf.LoadAbsolute{Off: offNr, Size: 4},
		// x86-64: calls of the x32 ABI.
		bpf.JumpIf{Cond: bpf.JumpLessThan, Val: 0x40000000, SkipTrue: 1},
		bpf.RetConstant{Val: kill},
	}
	for _, r := range rules {
		body := []bpf.Instruction{bpf.RetConstant{Val: r.action}}
		if c := r.cond; c != nil {
			body = c.instructions(r.action, uint32(pid))
		}
		if len(body) > 255 {
			return nil, errors.New("a rule is too long")
		}
		ins = append(ins, bpf.JumpIf{Cond: bpf.JumpEqual, Val: r.nr, SkipFalse: uint8(len(body))})
		ins = append(ins, body...)
	}
	return bpf.Assemble(append(ins, bpf.RetConstant{Val: unknown}))
}

// instructions end the program.
func (c *cond) instructions(action, pid uint32) []bpf.Instruction {
	ins := []bpf.Instruction{bpf.LoadAbsolute{Off: offArgs + uint32(8*c.arg), Size: 4}}
	values := c.oneOf
	switch {
	case c.ownPID:
		values = []uint32{pid}
	case len(values) == 0:
		ins = append(ins, bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: c.mask})
		values = []uint32{c.bits}
	}
	match := []bpf.Instruction{bpf.RetConstant{Val: action}}
	if c.and != nil {
		match = c.and.instructions(action, pid)
	}
	for _, v := range values {
		ins = append(ins, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: v, SkipTrue: uint8(len(match))})
		ins = append(ins, match...)
	}
	if c.or != nil {
		return append(ins, c.or.instructions(action, pid)...)
	}
	return append(ins, bpf.RetConstant{Val: refused})
}

// install filters the calls of all threads from now on.
func install(filter []bpf.RawInstruction) error {
	prog := make([]unix.SockFilter, len(filter))
	for i, f := range filter {
		prog[i] = unix.SockFilter{Code: f.Op, Jt: f.Jt, Jf: f.Jf, K: f.K}
	}
	fprog := unix.SockFprog{Len: uint16(len(prog)), Filter: &prog[0]}
	tid, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&fprog)))
	runtime.KeepAlive(prog)
	if errno != 0 {
		return errno
	}
	if tid != 0 {
		return fmt.Errorf("thread %d has a filter of its own", tid)
	}
	return nil
}
