// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package envelope

import "github.com/gleam-rdma/gleam/test/mutation/mutant"

// Wrong ways for the control loop to learn what the core has decided.
// internal/control/doc.go has the rules.
var _ = []mutant.Mutant{
	mutant.New("an identical registration begins anew", "6", mutant.In((*Registrar).tryInstall,
		"old != nil && old.identical(g) && r.keepRunning(now, old, g, out) {",
		"old != nil && false {")),
	mutant.New("nobody is notified after an identical registration", "6", mutant.In((*Registrar).commit,
		"if !g.unchanged {",
		"if true {")),
	mutant.New("numbers of a removed member come back", "6", mutant.In((*Registrar).inheritUsedNumbers,
		"if m := &old.reg.Members[i]; !g.hasRecord(m) {",
		"if m := &old.reg.Members[i]; g == nil {")),
	mutant.New("numbers of replaced members come back", "6", mutant.In((*Registrar).inheritUsedNumbers,
		"if m := &old.reg.Members[i]; !g.hasRecord(m) {",
		"if m := &old.reg.Members[i]; !g.hasRecord(m) && g.reg.$1 != 0 {", Registration{}.Base)),
	mutant.New("live members begin anew with their old numbers", "6", mutant.In((*Registrar).checkNumbers,
		"if r.table.HadSource(old.reg.Group) {",
		"if old == nil {")),
	mutant.New("unused numbers are refused", "6", mutant.In((*Registrar).noteUsedNumbers,
		"if !r.table.HadSource(g.reg.Group) {",
		"if r == nil {")),
	mutant.New("used numbers are remembered without bound", "6", mutant.In((*Registrar).noteUsedNumbers,
		"return used[max(0, len(used)-maxUsed):]",
		"return used")),
}
