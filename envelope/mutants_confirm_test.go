// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package envelope

import "github.com/gleam-rdma/gleam/test/mutation/mutant"

// Wrong ways to answer holders of several keys, and to believe where hosts are. The rule
// is a subject of docs/PROTOCOL.md.
var _ = []mutant.Mutant{
	mutant.New("answers are under the first key", "Keys", mutant.In((*Registrar).reply,
		"r.sendUnder(h.KeyID, us, h.ReplyTo,",
		"r.sendUnder(r.$1.$2, us, h.ReplyTo,", endpointLink{}.auth, Auth{}.Send)),
	mutant.New("a Notify is under the first key", "Keys", mutant.In((*Registrar).notify,
		"r.sendUnder(g.key, netip.AddrPortFrom(ip, r.cfg.Port),",
		"r.sendUnder(r.$1.$2, netip.AddrPortFrom(ip, r.cfg.Port),", endpointLink{}.auth, Auth{}.Send)),
	mutant.New("a Gone is under the first key", "Keys", mutant.In((*Registrar).sendGone,
		"r.sendUnder(e.key, us, e.to,",
		"r.sendUnder(r.$1.$2, us, e.to,", endpointLink{}.auth, Auth{}.Send)),
	mutant.New("the secret of a key that is taken away is forgotten", "Reload", mutant.In((*Registrar).SetKeys,
		"r.retiredAuth[id] = secret",
		`r.retiredAuth[id] = $arg2.$1[$arg2.$2]
			_ = secret`, Auth{}.Keys, Auth{}.Send)),
	mutant.New("a member speaks from anywhere", "WrongLocation", mutant.In((*Registrar).Input,
		"case m.Type != TypeHere && !r.table.FromMember(",
		"case m.Type == $1 && !r.table.FromMember(", TypeWhere)),
	mutant.New("an Ack comes from anywhere", "WrongLocation", mutant.In((*Registrar).Input,
		"from.Addr(), m.KeyID, m.Type == TypeAck):",
		"from.Addr(), m.KeyID, false):")),
	mutant.New("a rejection names what was missing at first", "Proofs", mutant.In((*Registrar).Advance,
		"if last || now >= g.nextTry {",
		"if !last && now >= g.nextTry {")),
	mutant.New("only members of installed groups get inquiries", "Proofs", mutant.In((*Registrar).withMember,
		"range [...]*group{r.groups[ip], r.locating[ip]} {",
		"range [...]*group{r.groups[ip]} {")),
}
