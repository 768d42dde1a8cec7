// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package soft

import (
	"bytes"
	"testing"

	"github.com/gleam-rdma/gleam/host/endpoint"
)

// BenchmarkWrite measures 64 MiB in RDMA WRITEs of 1 MiB from one host to another, over
// two veths and a bridge; both devices are in this process. data-frames/s counts the
// requests sent, retransmissions included; frames/write is the mean number of frames per
// write system call.
func BenchmarkWrite(b *testing.B) {
	const size, message = 64 << 20, 1 << 20
	for _, c := range []struct {
		name string
		pair pairConfig
	}{
		{"ipv4/mtu1024", pairConfig{pathMTU: 1024}},
		{"ipv4/mtu4096", pairConfig{pathMTU: 4096, linkMTU: 4096 + maxHeaders}},
		{"ipv6/mtu1024", pairConfig{pathMTU: 1024, v6: true}},
		{"window1024", pairConfig{pathMTU: 1024, device: Config{MaxUnacked: 1024}}},
		{"loss1%", pairConfig{pathMTU: 1024, device: Config{Loss: 0.01, Seed: 1}, qp: endpoint.QPConfig{Timeout: 8}}},
	} {
		b.Run(c.name, func(b *testing.B) {
			c.pair.memory = size
			p := newPair(b, c.pair)
			fill(p.send.Bytes(), 1)
			before := p.dev[0].Stats()
			b.SetBytes(size)
			b.ReportAllocs()
			b.ResetTimer()
			for range b.N {
				p.writeAll(b, message)
			}
			b.StopTimer()
			if !bytes.Equal(p.send.Bytes(), p.recv.Bytes()) {
				b.Fatal("other bytes arrived")
			}
			after := p.dev[0].Stats()
			frames := float64(after.TxFrames - before.TxFrames)
			b.ReportMetric(frames/b.Elapsed().Seconds(), "data-frames/s")
			b.ReportMetric(frames/float64(after.TxBatches-before.TxBatches), "frames/write")
		})
	}
}

// writeAll writes all of host 0's memory to host 1's.
func (p *pair) writeAll(b *testing.B, message int) {
	b.Helper()
	for off := 0; off < p.send.Len(); off += message {
		_, err := p.qp[0].PostSend(endpoint.SendWR{
			ID: uint64(off), Op: endpoint.Write, Local: endpoint.Segment{MR: p.send, Offset: off, Len: message},
			RemoteAddr: p.recv.Addr() + uint64(off), RKey: p.recv.RKey(),
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	poll(b, p.ctx, p.qp[0], p.send.Len()/message)
}
