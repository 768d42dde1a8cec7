// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"github.com/gleam-rdma/gleam/rocev2"
	"github.com/gleam-rdma/gleam/test/mutation/mutant"
)

// Wrong ways to queue and to mark.
var _ = []mutant.Mutant{
	mutant.New("what is not ECN-capable is marked", "7", mutant.In(ect,
		"return e == rocev2.ECT0 || e == rocev2.ECT1",
		"return e != rocev2.$1", rocev2.CE)),
	mutant.New("marking clears the DSCP", "7", mutant.In(setCE,
		`h.SetTOS(h.TOS() | uint8(rocev2.CE))
	h.SetChecksum(rocev2.ChecksumUpdate16(h.Checksum(), old, binary.BigEndian.Uint16(l3)))`,
		`h.SetTOS(uint8(rocev2.CE))
	h.SetChecksum(rocev2.ChecksumUpdate16(h.Checksum(), old, binary.BigEndian.Uint16(l3)))`)),
	mutant.New("above kmax only a share is marked", "7", mutant.In((*marker).mark,
		`return true
	}
	return m.draw()`,
		`$arg1 = m.$1
	}
	return m.draw()`, marker{}.kmax)),
	mutant.New("the share does not rise with the depth", "7", mutant.In((*marker).mark,
		"m.pmaxScaled*uint64(depth-m.kmin)/uint64(m.kmax-m.kmin)",
		"m.pmaxScaled")),
	mutant.New("the packet is marked before it is copied", "7", mutant.In((*worker).copy,
		"p.mark(out[l2Len:n])",
		""), mutant.In((*worker).copy,
		`		w.deferCopy(p, c)
		return false
	}
	addr := ds[0].Addr + uint64(f.L3Offset()) - uint64(l2Len)`,
		`		w.deferCopy(p, c)
		return false
	}
	p.$1(f.$2())
	addr := ds[0].Addr + uint64(f.L3Offset()) - uint64(l2Len)`, (*egress).mark, (*rocev2.Frame).L3)),
	mutant.New("an idle link saves up time", "7", mutant.In((*egressQueue).release,
		"if q.idle {",
		"if q.idle && q.$1 < 0 {", egressQueue{}.rate)),
	mutant.New("a late worker loses the link's time", "7", mutant.In((*egressQueue).release,
		"least := now - maxCatchUp",
		"least := now")),
	mutant.New("preamble and gap cost nothing", "7", mutant.In(linkOverhead,
		"const linkOverhead = 4 + 8 + 12",
		"const linkOverhead = 4")),
	mutant.New("parts of a nanosecond are lost", "7", mutant.In((*egressQueue).charge,
		"q.linkFraction = t % q.rate",
		"q.linkFraction = 0")),
	mutant.New("data takes the room of replies", "7", mutant.In((*egressQueue).fits,
		"return q.len()+q.inTXRing+buffers <= q.maxFrames && q.bytes+q.remoteBytes+linkBytes(n) <= q.maxBytes",
		"return q.len()+q.inTXRing+buffers <= q.maxFrames+$1 && q.bytes+q.remoteBytes+linkBytes(n) <= q.maxBytes+$2", reservedReplyFrames, reservedReplyBytes)),
	mutant.New("a merged ACK forgets the BECN of the first", "R32", mutant.In((*worker).stageFeedback,
		", txIndex: n - 1, becn: pkt.BECN}",
		", txIndex: n - 1}")),
	mutant.New("closures' frames wait for the next batch", "Who owns what", mutant.In((*worker).runBatch,
		`closures := w.runClosures()
	if closures {
		w.flush()
	}`,
		`closures := w.runClosures()`)),
	mutant.New("a worker sleeps on staged frames", "Who owns what", mutant.In((*worker).sleepTime,
		`if p.hasStaged() {
			return 0`,
		`if p.hasStaged() && p.$1 {
			return 0`, port{}.down)),
	mutant.New("a worker sleeps on packets that it has not posted", "Who owns what", mutant.In((*worker).sleepTime,
		"if r != nil && r.Unpublished() > 0 {",
		"if r != nil && r.Unpublished() < 0 {")),
}
