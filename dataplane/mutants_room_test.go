// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"github.com/gleam-rdma/gleam/rocev2"
	"github.com/gleam-rdma/gleam/test/mutation/mutant"
)

// Wrong ways to share room, so that a port that does not transmit is felt by others.
var _ = []mutant.Mutant{
	mutant.New("a port without room refuses packets for everybody", "R70", mutant.In((*worker).reserve,
		"return maxResendsOf(min(spare, maxResends)), spare >= 0",
		`for _, l := range $recv.$1[$arg1].$2 {
		if p := $recv.$3[max(0, l.$4)]; !p.$5 && p.$6(1500, 1) == 0 {
			return -1, false
		}
	}
	return maxResendsOf(min(spare, maxResends)), spare >= 0`, worker{}.groups, groupTable{}.legs, worker{}.ports, leg{}.port, port{}.down, (*egress).room)),
	mutant.New("feedback needs frames for copies", "R70", mutant.In((*worker).reserve,
		`if op.Is(rocev2.OpRequest) {
		need +=`,
		`if op.Is(rocev2.$1) {
		need +=`, rocev2.OpKnown)),
	mutant.New("no frames are kept for feedback", "R70", mutant.In((*worker).reserve,
		`need := maxFeedback
	if op.Is(rocev2.OpRequest) {`,
		`need := 0
	if op.Is(rocev2.OpRequest) {`)),
	mutant.New("no frames are kept for copies", "R70", mutant.In((*worker).reserve,
		"need += w.groups[id].maxCopies",
		"need += 0")),
	mutant.New("repairs take the frames of first copies", "R70", mutant.In((*worker).reserve,
		`	spare := w.reserveFrames(need+maxResends, max(buffers, w.retained.maxBuffers)) - need // kept packets may be longer
	return maxResendsOf(min(spare, maxResends)), spare >= 0`,
		`	spare := w.reserveFrames(need+maxResends, max(buffers, w.retained.maxBuffers)) - need // kept packets may be longer
	return maxResendsOf(min(spare+need, maxResends)), spare >= 0`)),
	mutant.New("the kernel's ring is read in each batch", "R70", mutant.In((*txRing).kick,
		"if now < r.kickAt && before == r.takenAtKick {",
		"if now < 0 {")),
	mutant.New("the kernel is asked as often as at first", "R70", mutant.In((*progress).retryAt,
		"min(max(minTXRetry, (now-p.last)/retryDivisor), maxTXRetry)",
		"minTXRetry")),
	mutant.New("the kernel is not asked again", "R70", mutant.In((*txRing).kick,
		"r.kickAt = p.retryAt(now)",
		"r.kickAt = 1 << 62")),
	mutant.New("the worker sleeps on what the kernel has not taken", "R70", mutant.In((*port).nextEvent,
		"if p.ring.kickAt > 0 && !p.down && (!ok || p.ring.kickAt < at) {",
		"if p.ring.kickAt < 0 && !p.down && (!ok || p.ring.kickAt < at) {")),
	mutant.New("a port's TX ring takes more than its share", "R70", mutant.In((*worker).complete,
		"min(p.ring.socket.TxRoom(), max(p.queue.maxFrames, p.maxPacketFrames)-p.queue.inTXRing-p.queue.len())",
		"p.ring.socket.TxRoom()")),
	mutant.New("what is in the TX ring leaves the queue its share", "R70", mutant.In((*egressQueue).fits,
		"return q.len()+q.inTXRing+buffers <=",
		"return q.len()+buffers <=")),
	mutant.New("a batch beyond a port's share is lost", "R70", mutant.In((*worker).copy,
		"!w.admitsAfterFlush(p, max(length, minFrame), len(ds))",
		"!p.$1(max(length, minFrame), len(ds))", (*egress).admits)),
	mutant.New("a worker's new table counts members that have gone", "R70", mutant.In((*worker).makeTable,
		"leg: at, gone: d.Gone}",
		"leg: at}")),
}
