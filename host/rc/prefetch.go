// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package rc

// Prefetch reads what a request touches first, for drivers that know the queue pairs of the next packets:
// reads for several packets overlap, while those of Input wait for each other. The sum has no meaning;
// it keeps the reads.
func (q *QP) Prefetch() uint64 {
	return uint64(q.cfg.LocalQPN) + uint64(q.state) + q.stats.PacketsReceived + q.stats.AcksSent + uint64(q.responder.recvQueue.count) + uint64(q.responder.bytesLeft)
}
