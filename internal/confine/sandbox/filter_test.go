// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64

package sandbox

import (
	"encoding/binary"
	"testing"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// verdict runs the filter on a call. The virtual machine loads words in network byte
// order, the kernel in its own.
func verdict(t *testing.T, vm *bpf.VM, arch, nr uint32, args ...uint64) uint32 {
	t.Helper()
	data := make([]byte, 64)
	binary.BigEndian.PutUint32(data[offNr:], nr)
	binary.BigEndian.PutUint32(data[offArch:], arch)
	for i, a := range args {
		binary.BigEndian.PutUint32(data[offArgs+8*i:], uint32(a))
		binary.BigEndian.PutUint32(data[offArgs+8*i+4:], uint32(a>>32))
	}
	v, err := vm.Run(data)
	if err != nil {
		t.Fatal(err)
	}
	return uint32(v)
}

// What the filter says of calls and their arguments.
func TestFilter(t *testing.T) {
	const pid = 4711
	raw, err := program(rules, pid)
	if err != nil {
		t.Fatal(err)
	}
	ins, ok := bpf.Disassemble(raw)
	if !ok {
		t.Fatal("the filter cannot be read back")
	}
	vm, err := bpf.NewVM(ins)
	if err != nil {
		t.Fatal(err)
	}
	const thread = unix.CLONE_VM | unix.CLONE_FS | unix.CLONE_FILES | unix.CLONE_SIGHAND | unix.CLONE_SYSVSEM | unix.CLONE_THREAD
	const readWrite = unix.PROT_READ | unix.PROT_WRITE
	for _, tt := range []struct {
		name string
		nr   uint32
		args []uint64
		want uint32
	}{
		{"send", unix.SYS_SENDTO, []uint64{5}, allow},
		{"exit", unix.SYS_EXIT_GROUP, []uint64{1}, allow},
		{"thread", unix.SYS_CLONE, []uint64{thread}, allow},
		{"fork", unix.SYS_CLONE, []uint64{uint64(unix.SIGCHLD)}, refused},
		{"clone3", unix.SYS_CLONE3, nil, unknown},
		{"program", unix.SYS_EXECVE, nil, kill},
		{"program by descriptor", unix.SYS_EXECVEAT, nil, kill},
		{"memory", unix.SYS_MMAP, []uint64{0, 4096, readWrite}, allow},
		{"memory to execute", unix.SYS_MMAP, []uint64{0, 4096, readWrite | unix.PROT_EXEC}, refused},
		{"make memory executable", unix.SYS_MPROTECT, []uint64{0, 4096, unix.PROT_READ | unix.PROT_EXEC}, refused},
		{"netlink", unix.SYS_SOCKET, []uint64{unix.AF_NETLINK, unix.SOCK_RAW}, allow},
		{"packet socket", unix.SYS_SOCKET, []uint64{unix.AF_PACKET, unix.SOCK_RAW}, refused},
		{"AF_XDP socket", unix.SYS_SOCKET, []uint64{unix.AF_XDP, unix.SOCK_RAW | unix.SOCK_CLOEXEC}, allow},
		{"socket for ethtool", unix.SYS_SOCKET, []uint64{unix.AF_INET, unix.SOCK_DGRAM | unix.SOCK_CLOEXEC}, allow},
		{"raw IPv4 socket", unix.SYS_SOCKET, []uint64{unix.AF_INET, unix.SOCK_RAW | unix.SOCK_CLOEXEC}, refused},
		{"TCP socket", unix.SYS_SOCKET, []uint64{unix.AF_INET, unix.SOCK_STREAM}, refused},
		{"attach a BPF program", unix.SYS_BPF, []uint64{unix.BPF_LINK_CREATE}, allow},
		{"IPv6 socket", unix.SYS_SOCKET, []uint64{unix.AF_INET6, unix.SOCK_STREAM}, refused},
		{"read a map", unix.SYS_BPF, []uint64{unix.BPF_MAP_LOOKUP_ELEM}, allow},
		{"load a BPF program", unix.SYS_BPF, []uint64{unix.BPF_PROG_LOAD}, refused},
		{"own thread", unix.SYS_TGKILL, []uint64{pid, pid, 6}, allow},
		{"another process's thread", unix.SYS_TGKILL, []uint64{1, 1, 9}, refused},
		{"kill", unix.SYS_KILL, []uint64{1, 9}, unknown},
		{"ethtool", unix.SYS_IOCTL, []uint64{3, unix.SIOCETHTOOL}, allow},
		{"type into a terminal", unix.SYS_IOCTL, []uint64{0, unix.TIOCSTI}, refused},
		{"trace", unix.SYS_PTRACE, nil, kill},
		{"namespace", unix.SYS_SETNS, nil, kill},
		{"become root", unix.SYS_SETRESUID, []uint64{0, 0, 0}, kill},
		{"a call of tomorrow", 9999, nil, unknown},
		{"a call of the x32 ABI", 0x40000000 + 1, nil, kill},
	} {
		if got := verdict(t, vm, auditArch, tt.nr, tt.args...); got != tt.want {
			t.Errorf("%s: %x, want %x", tt.name, got, tt.want)
		}
	}
	if got := verdict(t, vm, unix.AUDIT_ARCH_I386, unix.SYS_SENDTO); got != kill {
		t.Errorf("the call of another architecture: %x", got)
	}
	seen := make(map[uint32]bool)
	for _, r := range rules {
		if seen[r.nr] {
			t.Errorf("call %d has two rules: the second is never asked", r.nr)
		}
		seen[r.nr] = true
	}
}
