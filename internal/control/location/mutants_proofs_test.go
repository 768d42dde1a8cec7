// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package location

import (
	"github.com/gleam-rdma/gleam/dataplane"
	"github.com/gleam-rdma/gleam/test/mutation/mutant"
)

// Wrong ways to pin members, and to believe that they have moved.
var _ = []mutant.Mutant{
	mutant.New("a host with a connection is where the kernel has it", "CM", mutant.In((*Host).isPinned,
		"h.IsMember() || h.connected", "h.IsMember()")),
	mutant.New("a host is pinned after its last connection", "CM", mutant.In((*Hosts).SetConnected,
		"case was:\n\t\tx.unpin(h)", "case was:")),
	mutant.New("a host is not pinned by its first REQ", "CM", mutant.In((*Hosts).SetConnected,
		"h.pinned = h.location\n", "")),
	mutant.New("an answer from another MAC address counts", "Places", mutant.In((*inquiries).answered,
		"q != nil && q.newOrigin == s {",
		"q != nil && q.newOrigin.$1 == s.$1 {", dataplane.Origin{}.Port)),
	mutant.New("a port's inquiries have no bound", "Places", mutant.In((*inquiries).mayStart,
		"&& x.count[port] < maxInquiries",
		"")),
	mutant.New("an answer in another group's name counts", "Places", mutant.In((*Inquirer).Here,
		"q == nil || h == nil || a.group != e.Group:",
		"q == nil || h == nil:")),
	mutant.New("a confirmation moves a member in the groups of all keys", "Places", mutant.In((*Inquirer).Here,
		"return ok && k == a.key",
		"return ok || k == a.key")),
	mutant.New("a member that answers from its old place is evicted", "Places", mutant.In((*Inquirer).inquiryFailed,
		"config.MoveEvict && !q.answeredFromOld &&",
		"config.MoveEvict &&")),
	mutant.New("a member is held behind a port that is down", "Places", mutant.In((*Hosts).SetPinner,
		"p.Set(h.ip, PinTarget{h.pinned, x.ports.Port(pi).Up})",
		"p.Set(h.ip, PinTarget{h.pinned, true})")),
	mutant.New("what a bridge has learnt moves a member", "Places", mutant.In((*Hosts).admits,
		"return sameLocation(*at, p.at) || !sameRoute(*at, p.at)",
		"return sameLocation(*at, p.at) || sameRoute(*at, p.at) || !sameRoute(*at, p.at)")),
	mutant.New("a changed route is not followed", "Places", mutant.In((*Hosts).admits,
		"return sameLocation(*at, p.at) || !sameRoute(*at, p.at)",
		"return sameLocation(*at, p.at)")),
	mutant.New("pins outlive the groups", "Places", mutant.In((*Hosts).unpin,
		"h.pinned, h.seenElsewhere = locate.Location{}, nil\n\tx.onPinChange(h)",
		"")),
	mutant.New("a MAC address at two ports is watched at one", "Places", mutant.In((*watchedHosts).mac,
		"return w.list.SetMAC(mac, 0)",
		"return nil")),
}

// Wrong ways to have members confirm where they are.
var _ = []mutant.Mutant{
	mutant.New("the kernel's word is enough at registration", "Proofs", mutant.In((*Hosts).Proven,
		"if byHand {",
		"if !byHand {")),
	mutant.New("a proof counts under every key", "Proofs", mutant.In((*Hosts).Proven,
		"p, ok := h.proven[key]",
		"p, ok := h.proven[0]")),
	mutant.New("a guest's proof is for ever", "Proofs", mutant.In((*Hosts).Proven,
		"return at, recent || own != nil",
		"return at, true || own != nil")),
	mutant.New("members prove their places again for every group", "Proofs", mutant.In((*Hosts).Proven,
		"return at, recent || own != nil",
		"return at, recent && own == own")),
	mutant.New("an old proof of another place counts", "Proofs", mutant.In((*Hosts).Proven,
		`case recent:
		return p.location, true`,
		`case !recent || recent:
		return p.location, true`)),
	mutant.New("an answer from another port is a proof", "Proofs", mutant.In((*Inquirer).handleProof,
		"if s.Port != a.origin.Port || s.MAC != a.origin.MAC {",
		"if s.MAC != a.origin.MAC {")),
	mutant.New("an answer from another MAC address is a proof", "Proofs", mutant.In((*Inquirer).handleProof,
		"if s.Port != a.origin.Port || s.MAC != a.origin.MAC {",
		"if s.Port != a.origin.Port {")),
	mutant.New("any number is a proof", "Proofs", mutant.In((*Inquirer).handleProof,
		"a.location.Known() && a.nonce == e.Nonce",
		"a.location.Known()")),
	mutant.New("a member that answers from elsewhere gets no inquiry there", "Proofs", mutant.In((*Inquirer).requestAtNewOrigin,
		"p.requests[1] = c.newLocationRequest(at)",
		"_ = c.newLocationRequest(at)")),
	mutant.New("inquiries go where no route leads", "Proofs", mutant.In((*Inquirer).requestAtNewOrigin,
		"!c.sameBridge(&base, s.Port) {",
		"false {")),
	mutant.New("the kernel's second thoughts are not followed", "Proofs", mutant.In((*Inquirer).renewLocationRequest,
		"if !at.Known() || sameLocation(at, p.requests[0].location) {",
		"if !at.Known() || p.requests[0].location.Known() {")),
	mutant.New("inquiries go out though no registration waits", "Proofs", mutant.In((*Inquirer).SendProofs,
		`if !wanted {
			x.remove(p)
			continue
		}`,
		"_ = wanted")),
	mutant.New("inquiries for proofs have no bound", "Proofs", mutant.In((*locationProofs).nextDue,
		"if !p.ended && !x.policer.Allow(now) {",
		"if !p.ended && x == nil {")),
	mutant.New("the kernel's answer is taken for the member's", "Proofs", mutant.In((*Hosts).located,
		"if its == l {",
		"if its == l || its != l {")),
	mutant.New("envelopes go to the kernel's place, not the proved one", "Proofs", mutant.In((*Hosts).Join,
		"if !sameLocation(h.location, h.pinned) {",
		"if false {")),
}

// Bricks that are taken out of the port guard where it follows the bridges.
var _ = []mutant.Mutant{
	mutant.New("a port with lists does not hear of its neighbour", "guard", mutant.In((*Bridging).takeRebound,
		"p.neighbour, p.fresh = mac, true",
		"p.neighbour = mac")),
	mutant.New("a port takes VLANs that the bridge itself is not in", "guard", mutant.In((*Bridging).setPolicy,
		`	local := bpf.VLANs(now.Local)
	policy.VLANs.And(&local)`,
		`	local := bpf.VLANs(now.Local)
	local.And(&local)`)),
	mutant.New("who is gone from a locked port goes on speaking", "guard", mutant.In((*Bridging).setStations,
		"VID: s.VID}, false); err != nil {",
		"VID: s.VID}, true); err != nil {")),
	mutant.New("a change of the bridge does not reach the workers", "guard", mutant.In((*Bridging).poll,
		`p.state, p.fresh = now, false
			b.apply(pi, now)`,
		`p.state, p.fresh = now, false
			_ = b.apply`)),
}
