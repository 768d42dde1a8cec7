// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import "github.com/gleam-rdma/gleam/test/mutation/mutant"

// Wrong ways to have members prove their places at registration. location_proof.go
// begins with the rule.
var _ = []mutant.Mutant{
	mutant.New("the kernel's word is enough at registration", "Proofs", mutant.In((*directory).provenLocation,
		"if !r.Master.IsValid() {",
		"if r.Master.IsValid() {")),
	mutant.New("a proof counts under every key", "Proofs", mutant.In((*directory).provenLocation,
		"p, ok := h.proven[key]",
		"p, ok := h.proven[0]")),
	mutant.New("a guest's proof is for ever", "Proofs", mutant.In((*directory).provenLocation,
		"return at, recent || own != nil",
		"return at, true || own != nil")),
	mutant.New("members prove their places again for every group", "Proofs", mutant.In((*directory).provenLocation,
		"return at, recent || own != nil",
		"return at, recent && own == own")),
	mutant.New("an old proof of another place counts", "Proofs", mutant.In((*directory).provenLocation,
		`case recent:
		return p.location, true`,
		`case !recent || recent:
		return p.location, true`)),
	mutant.New("an answer from another port is a proof", "Proofs", mutant.In((*control).handleProof,
		"if s.Port != a.origin.Port || s.MAC != a.origin.MAC {",
		"if s.MAC != a.origin.MAC {")),
	mutant.New("an answer from another MAC address is a proof", "Proofs", mutant.In((*control).handleProof,
		"if s.Port != a.origin.Port || s.MAC != a.origin.MAC {",
		"if s.Port != a.origin.Port {")),
	mutant.New("any number is a proof", "Proofs", mutant.In((*control).handleProof,
		"a.location.Known() && a.nonce == e.Nonce",
		"a.location.Known()")),
	mutant.New("a member that answers from elsewhere gets no inquiry there", "Proofs", mutant.In((*control).requestAtNewOrigin,
		"p.requests[1] = c.newLocationRequest(at)",
		"_ = c.newLocationRequest(at)")),
	mutant.New("inquiries go where no route leads", "Proofs", mutant.In((*control).requestAtNewOrigin,
		"!c.sameBridge(&base, s.Port) {",
		"false {")),
	mutant.New("the kernel's second thoughts are not followed", "Proofs", mutant.In((*control).renewLocationRequest,
		"if !at.Known() || sameLocation(at, p.requests[0].location) {",
		"if !at.Known() || p.requests[0].location.Known() {")),
	mutant.New("inquiries go out though no registration waits", "Proofs", mutant.In((*control).sendProofs,
		`if !wanted {
			x.remove(p)
			continue
		}`,
		"_ = wanted")),
	mutant.New("inquiries for proofs have no bound", "Proofs", mutant.In((*locationProofs).nextDue,
		"if !p.ended && !x.policer.Allow(now) {",
		"if !p.ended && x == nil {")),
	mutant.New("the kernel's answer is taken for the member's", "Proofs", mutant.In((*directory).hostLocated,
		`if its != l {
			continue
		}`,
		"_, _ = its, l")),
	mutant.New("envelopes go to the kernel's place, not the proved one", "Proofs", mutant.In((*hosts).addMember,
		"if !sameLocation(h.location, h.pinned) {",
		"if false {")),
}
