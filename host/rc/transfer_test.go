// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package rc

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/gleam-rdma/gleam/rocev2"
)

var personalities = Personalities()

func drawPlan(t *rapid.T) plan {
	p := plan{
		personality: [2]Personality{
			rapid.SampledFrom(personalities).Draw(t, "sender"),
			rapid.SampledFrom(personalities).Draw(t, "receiver"),
		},
		base:   rapid.SampledFrom([]rocev2.PSN{0, 0x7ffff0, 0xfffff0}).Draw(t, "base"),
		pmtu:   256,
		window: rapid.SampledFrom([]int{1, 2, 16, 128}).Draw(t, "window"),
		faults: faults{
			lossData: rapid.Float64Range(0, 0.15).Draw(t, "lossData"),
			lossAck:  rapid.Float64Range(0, 0.15).Draw(t, "lossAck"),
			dup:      rapid.Float64Range(0, 0.1).Draw(t, "dup"),
			reorder:  rapid.Float64Range(0, 0.1).Draw(t, "reorder"),
		},
		seed:    rapid.Uint64().Draw(t, "seed"),
		credits: rapid.Bool().Draw(t, "credits"),
	}
	sizes := []int{0, 1, p.pmtu - 1, p.pmtu, p.pmtu + 1, 2 * p.pmtu, 5*p.pmtu + 3, slotSize}
	n := rapid.IntRange(1, 20).Draw(t, "messages")
	for range n {
		p.ops = append(p.ops, WROp(rapid.IntRange(0, int(numWROps)-1).Draw(t, "op")))
		p.sizes = append(p.sizes, rapid.SampledFrom(sizes).Draw(t, "size"))
		p.unsignaled = append(p.unsignaled, rapid.Bool().Draw(t, "unsignaled"))
		p.recvDelay = append(p.recvDelay, rapid.SampledFrom([]int{0, 0, 0, 1, 30}).Draw(t, "recvDelay"))
	}
	return p
}

// Every message arrives whole, in order and exactly once, whatever the link
// does and whoever is at its ends.
func TestTransferOverBadLink(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { newBed(t, drawPlan(t)).run() })
}

// All the pairs of personalities, PSN bases and sizes, each seen for certain.
func TestTransferMatrix(t *testing.T) {
	for _, sender := range personalities {
		for _, receiver := range personalities {
			for _, base := range []rocev2.PSN{0, 0x7ffff0, 0xfffff0} {
				for _, loss := range []float64{0, 0.15} {
					t.Run(fmt.Sprintf("%v-%v/%06x/loss=%v", sender, receiver, base, loss), func(t *testing.T) {
						p := plan{personality: [2]Personality{sender, receiver}, base: base, pmtu: 256, window: 128, faults: faults{lossData: loss, lossAck: loss}, seed: 7}
						for _, op := range []WROp{WRSend, WRSendImm, WRSendInv, WRWrite, WRWriteImm} {
							for _, size := range []int{0, 1, 255, 256, 257, slotSize} {
								p.ops, p.sizes = append(p.ops, op), append(p.sizes, size)
								p.unsignaled, p.recvDelay = append(p.unsignaled, false), append(p.recvDelay, len(p.ops)%5)
							}
						}
						b := newBed(t, p)
						b.run()
						if loss > 0 {
							if s := b.qp[0].Stats(); s.Retransmitted == 0 {
								t.Errorf("15 %% loss and nothing was sent again: %+v", s)
							}
							return
						}
						if s := b.qp[0].Stats(); s.Timeouts != 0 {
							t.Errorf("%d timeouts on a perfect link", s.Timeouts)
						}
					})
				}
			}
		}
	}
}
