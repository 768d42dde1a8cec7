// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package locate

import (
	"context"

	"github.com/cilium/ebpf/asm"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/gleam-rdma/gleam/test/mutation/mutant"
)

// Wrong ways to ask where members are. internal/control/doc.go, Places, has the rules.
var _ = []mutant.Mutant{
	mutant.NewForRoot("the whole forwarding database is read", "Places", mutant.In((*Locator).learnt,
		"e, err := l.kernel.learnt(br.Index, at.MAC, in)",
		`_, _ = l.$1.$2(0, $3)
	e, err := l.kernel.learnt(br.Index, at.MAC, in)`, Locator{}.handle, (*netlink.Handle).NeighList, unix.AF_BRIDGE)),
	mutant.New("a range of VLANs is its first one", "Places", mutant.In((*vlans).parse,
		"r.last = binary.NativeEndian.Uint16(a.Value)",
		"")),
	mutant.NewForRoot("a lost message ends a watch", "Places", mutant.In((*Watcher).read,
		`w.report(Report{What: f.what, Err: rerr, Lost: f.lost})
			continue`,
		`w.report(Report{What: f.what, Err: rerr, Lost: f.lost})
			<-$arg1.$1()
			return rerr`, context.Context.Done)),
	mutant.NewForRoot("a broken watch stays broken", "Places", mutant.In((*Watcher).follow,
		"f.dead.Store(false)",
		"<-$arg1.$1()", context.Context.Done)),
	mutant.NewForRoot("nothing is looked at while a watch is broken", "Places", mutant.In((*Watcher).follow,
		`w.changes.Everything()
			file, err := f.open()`,
		"file, err := f.open()")),
	mutant.NewForRoot("the kernel tells of all that strangers make", "Places", mutant.In(filterProgram,
		`asm.JNE.Imm(asm.R0, 0, pass),
		asm.Return(),`,
		`asm.$1.$2(pass),
		asm.Return(),`, asm.Ja, asm.JumpOp.Label)),
}
