// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package cm

import "github.com/gleam-rdma/gleam/test/mutation/mutant"

// Wrong ways to have a REQ be fresh.
var _ = []mutant.Mutant{
	mutant.New("a REQ without the switch's nonce counts", "CM", mutant.In((*Manager).request,
		"if proves && !m.isFresh(p, q, x.Data) {", "if false {")),
	mutant.New("a nonce counts again", "CM", mutant.In((*Manager).request,
		"m.nonces.spend(claimantOf(q), m.now)", "")),
	mutant.New("a nonce of the period before does not count", "CM", mutant.In((*nonces).counts,
		"|| nonce == n.of(c, period-1)", "")),
	mutant.New("a nonce counts for every queue pair", "CM", mutant.In((*nonces).of,
		"uint32(c.qpn))", "0)")),
	mutant.New("a nonce counts for ever", "CM", mutant.In((*nonces).of,
		"uint64(period)", "0")),
	mutant.New("claimants are remembered for ever", "CM", mutant.In((*nonces).spend,
		"delete(n.spent, first)", "")),
	mutant.New("claimants whose last nonce counts still are forgotten", "CM", mutant.In((*nonces).spend,
		"n.spent[first].last == n.times[0]", "true")),
	mutant.New("after a restart any REQ of a host that waited counts", "CM", mutant.In((*Manager).isFresh,
		"&& r.psn == q.PSN", "")),
	mutant.New("a REQ that waited before a restart counts for ever", "CM", mutant.In((*Manager).isFresh,
		"&& m.now < r.until", "")),
	mutant.New("a registration that was refused without a fault of its members is not tried again", "CM", mutant.In((*Manager).Registered,
		"m.retries = append(m.retries, retry{m.now + retryInterval, l})", "")),
}
