// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package envelope

import (
	"net/netip"

	"github.com/gleam-rdma/gleam/test/mutation/mutant"
)

// Wrong ways to hold keys: who owns a group, what a key may do, and what counts from
// where. The rule is a subject of docs/PROTOCOL.md.
var _ = []mutant.Mutant{
	mutant.New("keys own groups made by hand", "Keys", mutant.In((*Registrar).owns,
		"return !g.local() && g.key == key",
		"return g.local() || g.key == key")),
	mutant.New("every proof is right", "Relay", mutant.In((*Registrar).checkProof,
		"case !hmac.Equal(proofOf(secret, own), proof):",
		"case hmac.Equal(proofOf(secret, own), own):")),
	mutant.New("every refusal is believed without a proof", "RelayRefuses", mutant.In((*relay).saysKeyMissing,
		"return m.kind == relayRefused && len(m.problems) == 1 && m.problems[0].Reason == KeyMissing",
		"return m.kind == relayRefused")),
	mutant.New("any key of a neighbour is the attempt's", "RelayNeeds", mutant.In((*Registrar).attempt,
		"g.branch.id == id {",
		"g.branch.id.$1 == id.$1 && g.branch.id.$2 == id.$2 && g.branch.id.$3 == id.$3 {", attemptID{}.epoch, attemptID{}.root, attemptID{}.number)),
	mutant.New("a proof does not cover the session", "RelayProof", mutant.In(proofOf,
		"h.Write(b)",
		"h.Write(b[66:])")),
	mutant.New("a key that is gone proves nothing", "TreeKeyGoes", mutant.In((*endpointLink).secretOf,
		"return l.retiredAuth[key]",
		"return nil")),
	mutant.New("a neighbour registers under every key", "TreeKeyRights", mutant.In((*Registrar).mayPrepare,
		"case !rights.Roles.has(RoleMaster):",
		"case rights.Roles == 1<<7:")),
	mutant.New("members of a neighbour's groups may all send", "TreeKeyRights", mutant.In((*Registrar).prepareComplete,
		"if !g.isRebuild() { // its members are those of a registration",
		"if g == nil {")),
	mutant.New("a switch without the key says nothing", "TreeKeyDiffers|TreeRefusals", mutant.In((*Registrar).InputFromSwitch,
		"r.sendRelay(from, &relay{kind: relayRefused, unproved: true, id: m.id, group: m.group, problems: []Problem{r.keyMissing()}}, out)",
		"_ = m")),
	mutant.New("what is being located is anybody's", "Keys", mutant.In((*Registrar).otherOwner,
		`g := r.locating[m.Group]
	return g != nil && !r.owns(m.KeyID, g)`,
		"return false")),
	mutant.New("keys share what is put together", "Keys", mutant.In((*Registrar).assemblyFor,
		`k := pendingKey{m.Group, m.KeyID}
	a :=`,
		`k := pendingKey{m.Group, 0}
	a :=`)),
	mutant.New("one key's unfinished registrations keep the others' out", "Keys", mutant.In((*Registrar).shareOfPending,
		"return max(1, r.cfg.MaxPending/2)",
		"return r.cfg.MaxPending")),
	mutant.New("a key that is taken away is still taken", "Reload", mutant.In((*Registrar).SetKeys,
		"r.auth, r.cfg.Auth, r.cfg.Rights = auth, auth, rights",
		"r.cfg.Auth, r.cfg.Rights = auth, rights")),
	mutant.New("keys without a check", "Reload", mutant.In((*Registrar).SetKeys,
		`func (r *Registrar) SetKeys(now time.Duration, auth Auth, rights map[KeyID]Rights) (orphans map[KeyID]int, err error) {
	r.setTime(now)
	if auth.Insecure != r.auth.Insecure {
		return nil, fmt.Errorf("set keys: whether envelopes without a MAC are taken cannot change")
	}
	if err := auth.check(); err != nil {`,
		`func (r *Registrar) SetKeys(now time.Duration, auth Auth, rights map[KeyID]Rights) (orphans map[KeyID]int, err error) {
	r.setTime(now)
	if auth.Insecure != r.auth.Insecure {
		return nil, fmt.Errorf("set keys: whether envelopes without a MAC are taken cannot change")
	}
	if err := auth.check(); err != nil && orphans != nil {`)),
	mutant.New("every key is for everything", "Rights", mutant.In((*Registrar).mayAsk,
		"case !k.Roles.has(roleFor(m)) && !r.isQuestion(m):",
		"case k.Roles == 1<<7 && !r.isQuestion(m):")),
	mutant.New("a member's key removes others", "Rights", mutant.In(roleFor,
		"ok && l.Member.IP == m.ReplyTo.Addr() {",
		"ok && l != nil {")),
	mutant.New("every key is for every group", "Rights", mutant.In((*Registrar).mayAsk,
		"case !k.mayUse(m.Group):",
		"case len(k.$1) > 99:", Rights{}.Prefixes)),
	mutant.New("a receive-only key has many senders", "Rights", mutant.In((*Registrar).restrict,
		"m.ReceiveOnly = m.ReceiveOnly || m.IP != g.reg.Master.Addr()",
		"m.ReceiveOnly = m.ReceiveOnly && m.IP != g.reg.Master.Addr()")),
	mutant.New("nobody may send", "Rights", mutant.In((*Registration).Validate,
		`	if !slices.ContainsFunc(r.Members, func(m MemberRecord) bool { return !m.ReceiveOnly }) {
		return &Problem{Reason: NoSender}`,
		`	if !slices.ContainsFunc(r.Members, func(m MemberRecord) bool { return !m.ReceiveOnly }) {
		_ = NoSender`)),
	mutant.New("a cookie is for any address", "Cookies", mutant.In((*Registrar).cookieFor,
		"a := to.Addr().As16()",
		`a := [16]byte{}
	_ = to.Addr()`)),
	mutant.New("a cookie does not age", "Cookies", mutant.In((*Registrar).cookiePeriod,
		"uint64(r.now / r.cfg.CookiePeriod)",
		"uint64(r.now / r.cfg.CookiePeriod / 1e6)")),
	mutant.New("the switch's secret is no part of a cookie", "Cookies", mutant.In((*Registrar).cookieFor,
		"hmac.New(sha256.New, r.cfg.Secret[:])",
		"hmac.New(sha256.New, r.cfg.Secret[:0])")),
	mutant.New("a recorded Ack counts", "Cookies", mutant.In((*Registrar).ack,
		"if !r.checkCookie(&m.Header) {",
		"if m == nil {")),
	mutant.New("any epoch may follow", "Epochs", mutant.In((*Registrar).mayAsk,
		"max(m.Epoch, n)-n > r.cfg.EpochStep {",
		"m.Epoch-n > 1<<63 {")),
	mutant.New("epochs begin at 0 after a restart", "Epochs", mutant.In((*Registrar).newest,
		"n := r.cfg.EpochBase",
		"n := uint64(0)")),
	mutant.New("epochs end with their group", "Epochs", mutant.In((*Registrar).endHere,
		`r.removeGroup(now, g, why, true, out)`,
		`r.removeGroup(now, g, why, true, out)
		delete(r.$1, $arg2)`, Registrar{}.epochs)),
	mutant.New("one label for all directions", "Directions", mutant.In(macOf,
		"h.Write([]byte(labels[t.direction()]))",
		"h.Write([]byte(labels[$1]))", toSwitch)),
	mutant.New("a Gone is taken from anywhere", "Places", mutant.In((*Member).Input,
		"case !fromTheSwitch(from, msg.Group, m.cfg.Port):",
		"case from.Port() == 0:")),
	mutant.New("the switch's port is any port", "Places", mutant.In(fromTheSwitch,
		"== group && from.Port() == port",
		"== group && port != 0")),
	mutant.New("a Confirm is taken from anywhere", "Places", mutant.In((*Master).fromSwitch,
		"return from.Addr().Unmap() == c.Member.IP",
		"return from.$1() || c == nil", netip.AddrPort.IsValid)),
	mutant.New("a master takes messages under any key", "Keys", mutant.In((*Master).Input,
		`		return
	case msg.KeyID != m.auth.Send:`,
		`		return
	case msg.KeyID == 1<<16-1:`)),
	mutant.New("a member takes messages under any key", "Keys", mutant.In((*Member).acceptsFrom,
		"return g.epoch == 0 || g.ended || key == g.key || key == m.auth.Send",
		"return g != nil")),
	mutant.New("a member leaves under its own key", "Keys", mutant.In((*Member).sendLeave,
		"m.toSwitch(g.key, g.Group",
		"m.toSwitch(m.$1.$2, g.Group", endpointLink{}.auth, Auth{}.Send)),
}
