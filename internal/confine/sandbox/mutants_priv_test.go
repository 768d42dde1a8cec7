// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"golang.org/x/net/bpf"

	"github.com/gleam-rdma/gleam/test/mutation/mutant"
)

// Wrong ways to give up privileges, and to bound what a file or a client may cost.
var _ = []mutant.Mutant{
	mutant.NewForRoot("the bounding set stays as it is", "priv", mutant.In(dropBounding,
		"err := prctl(unix.PR_CAPBSET_DROP, uintptr(c))",
		"")),
	mutant.NewForRoot("a bounding set with more than the process has stays", "priv", mutant.In(MayKeepBounding,
		"set&^have == 0",
		"set&^have <= set")),
	mutant.NewForRoot("the groups of root stay", "priv", mutant.In(become,
		`if err := syscall.Setgroups(nil); err != nil {
		return err
	}`,
		"")),
	mutant.NewForRoot("root is a user like any other", "priv", mutant.In(become,
		"if l.UID <= 0 || l.GID <= 0 {",
		"if l.UID < 0 {")),
	mutant.NewForRoot("a step that fails is passed over", "priv", mutant.In(Enter,
		"return s.fail(err)",
		"_ = s.fail(err)")),
	mutant.New("only the calling thread is filtered", "priv", mutant.In(install,
		"\ttid, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC,",
		"\ttid, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0,")),
	mutant.New("the filter looks at no architecture", "priv", mutant.In(program,
		"Cond: bpf.JumpEqual, Val: auditArch, SkipTrue: 1},",
		"Cond: bpf.$1, Val: 0, SkipTrue: 1},", bpf.JumpNotEqual)),
	mutant.New("conditions are about the wrong argument", "priv", mutant.In((*cond).instructions,
		"offArgs + uint32(8*c.arg)",
		"offArgs + uint32(4*c.arg)")),
	mutant.New("memory may become executable", "priv", mutant.In(rules,
		`	rule{unix.SYS_MMAP, allow, &cond{arg: 2, mask: unix.PROT_EXEC}},
	rule{unix.SYS_MPROTECT, allow, &cond{arg: 2, mask: unix.PROT_EXEC}}`,
		`	rule{unix.SYS_MMAP, allow, &cond{arg: 2, mask: unix.PROT_EXEC}},
	rule{unix.SYS_MPROTECT, allow, nil}`)),
	mutant.New("programs may be started", "priv", mutant.In(rules,
		`), append(abiRules, calls(kill,
	unix.SYS_EXECVE, unix.SYS_EXECVEAT,`,
		`), append(abiRules, calls(kill,
	unix.SYS_EXECVEAT,`)),
	mutant.New("capabilities are not looked at afterwards", "priv", mutant.In(checkStatus,
		`"CapPrm": fmt.Sprintf("%016x", caps),`,
		"")),
}
