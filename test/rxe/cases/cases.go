// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/gleam-rdma/gleam/host/endpoint"
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// allCases are the lines of the table.
func allCases() []testCase {
	cs := shapes()
	for _, v6 := range []bool{false, true} {
		spec := groupSpec{number: 1, v6: v6, mtu: 4096, hosts: make([]*host, longHosts)}
		cs = append(cs, testCase{name: spec.String() + ", 0 and 1 % lost", long: v6, run: longPackets(v6)})
	}
	for _, psn := range []rocev2.PSN{0, 0x7ffff0, 0xfffff0} {
		cs = append(cs, testCase{name: fmt.Sprintf("first PSN 0x%06x", psn), run: firstPSN(psn)})
	}
	cs = append(cs,
		testCase{name: "1 % of all packets lost", run: lossy("1%")},
		testCase{name: "5 % of all packets lost", run: lossy("5%")},
		testCase{name: "10 % of all packets lost", run: lossy("10%"), long: true},
		testCase{name: "two groups at once, sharing ports", run: twoGroups},
		testCase{name: "a software endpoint (rc) and rxe receive, 2 % lost", run: softReceiver},
		testCase{name: "a software endpoint (rc) sends to rxe, 2 % lost", run: softSource},
		testCase{name: "a completion waits for the last receiver", run: lastReceiver},
		testCase{name: "negative control: the first ACK instead of the minimum", run: negativeControl},
		testCase{name: "a receiver without a receive posted (RNR)", run: notReady},
		testCase{name: "quirk: RNR NAK followed by a sequence NAK", run: notReadyThenNAK},
		testCase{name: "wrong R_Key at the source", run: wrongKeyAtSource},
		testCase{name: "wrong R_Key registered for one receiver", run: wrongKeyAtReceiver},
		testCase{name: "quirk: duplicate before the first accept is acked 0xffffff", run: earlyDuplicate},
		testCase{name: "quirk: an ACK of what was never sent stops at the switch", run: ackAhead},
		testCase{name: "every member the source in turn, twice, queue pairs untouched", run: rotation},
		testCase{name: "a receiver dies in mid-transfer: policy evict", run: deadReceiver(soon(mcast.Evict, 0))},
		testCase{name: "a receiver dies in mid-transfer: policy quorum:2", run: deadReceiver(soon(mcast.Quorum, 2))},
		testCase{name: "a receiver dies in mid-transfer: policy strict", run: deadReceiver(soon(mcast.Strict, 0))},
		testCase{name: "a receiver dies while the source waits within a message", run: deadReceiver(late)},
		testCase{name: "a receiver joins while messages flow", run: lateJoiner},
		testCase{name: "a member waits for its turn, 3 retries, while another one sends", run: contend},
		testCase{name: "a link flaps in mid-transfer", run: linkFlap},
		testCase{name: "target messages: WRITEs to other memory each time", run: targetMessages},
		testCase{name: "unicast programs on the same ports, at the same time", run: unicastBeside},
		testCase{name: "libgleam: gleam_targets in C, two regions, two sources, three receivers", run: targetsInC},
		testCase{name: "example: weights of a model to three hosts, in Python", run: exampleWeights},
		testCase{name: "example: a replicated log, with a quorum of two of three followers", run: exampleLog},
		testCase{name: "example: a replicated log with fewer followers than the quorum", run: exampleLogFails},
		testCase{name: "example: ext4 on the replicated block device, over verbs, replicas and the switch killed", run: exampleBlock},
		testCase{name: "gleam perf --backend verbs: a group against unicasts, 20 Mbit/s", run: perfAgainstUnicasts},
		testCase{name: "gleam hardware --backend verbs: a source and two receivers", run: hardwareKit},
	)
	cs = append(cs, testCase{name: "interfaces of all kinds as ports: bond, VLAN, MACsec, VXLAN, macvlan, bridge, VRF, trunk", run: portKinds, programs: 10})
	cs = append(cs, testCase{name: "torch.distributed by verbs: sources in turn, ranks are killed, one comes back", run: torchUpdates})
	cs = append(cs, connectCases()...)
	cs = append(cs, dialCases()...)
	cs = append(cs, programCases()...)
	cs = append(cs, treeCases()...)
	cs = append(cs, mpiCases()...)
	cs = append(cs, hplCases()...)
	for _, op := range dataOps {
		cs = append(cs, testCase{name: fmt.Sprintf("%s of all sizes to 8 MiB", op), run: allSizes(op), long: true})
	}
	// Last, and not in every run: it leaves a queue pair of the kernel's with PSNs that
	// cannot be, after which rxe has failed to serve any queue pair.
	cs = append(cs, testCase{name: "quirk: rxe alone believes an ACK of what was never sent", run: ackAheadAlone, long: true})
	return cs
}

var dataOps = []endpoint.WROp{endpoint.Send, endpoint.SendImm, endpoint.Write, endpoint.WriteImm}

// withGroup runs do with a group of its own.
func withGroup(ctx context.Context, spec *groupSpec, do func(*group) error) error {
	g, err := newGroup(ctx, spec)
	if err != nil {
		return err
	}
	return errors.Join(do(g), g.close())
}

// shapes are groups of all sizes, families and path MTUs, with messages of all
// kinds and lengths. Nine of the eighteen have each pair of these once.
func shapes() (cs []testCase) {
	for i, mtu := range []int{256, 1024, 2048} {
		for j, n := range []int{2, 4, 7} {
			for _, v6 := range []bool{false, true} {
				spec := groupSpec{number: 1, v6: v6, mtu: mtu, hosts: make([]*host, n+1)}
				cs = append(cs, testCase{
					name: "SEND, WRITE, with immediate and without: " + spec.String(),
					long: v6 != ((i+j)%2 == 1),
					run: func(ctx context.Context, b *bench) error {
						s := spec
						s.hosts = b.hosts[:n+1]
						return withGroup(ctx, &s, func(g *group) error { return g.transfer(ctx, mixed(0, 1, 1<<20)...) })
					},
				})
			}
		}
	}
	return cs
}

// longPackets transfers at path MTU 4096: packets are longer than a frame of the
// switch's memory. The ports of the other hosts have a smaller MTU.
func longPackets(v6 bool) func(context.Context, *bench) error {
	return func(ctx context.Context, b *bench) error {
		hosts := b.hosts[:longHosts]
		spec := groupSpec{number: 1, v6: v6, mtu: 4096, hosts: hosts, timeout: 16}
		return withGroup(ctx, &spec, func(g *group) error {
			if err := g.transfer(ctx, mixed(0, 1, 3820, 4095, 4096, 4097, 1<<20)...); err != nil {
				return err
			}
			return g.lossy(ctx, hosts, "1%", mixed(100, 200_000, 4097, 0)...)
		})
	}
}

// mixed returns messages of all kinds in each size.
func mixed(sizes ...int) (msgs []message) {
	for _, op := range dataOps {
		for _, size := range sizes {
			msgs = append(msgs, message{op, size})
		}
	}
	return msgs
}

// firstPSN passes a boundary of the PSN space within the transfer.
func firstPSN(psn rocev2.PSN) func(context.Context, *bench) error {
	return func(ctx context.Context, b *bench) error {
		spec := groupSpec{number: 1, hosts: b.hosts[:4], mtu: 1024, first: &psn}
		return withGroup(ctx, &spec, func(g *group) error { return g.transfer(ctx, mixed(5000, 0, 70000)...) })
	}
}

// lossy loses packets at random in both directions at every host: data before
// the switch and behind it, feedback before the switch and behind it.
func lossy(rate string) func(context.Context, *bench) error {
	return func(ctx context.Context, b *bench) error {
		hosts := b.hosts[:4]
		return transferLossy(ctx, hosts, hosts, rate)
	}
}

// transferLossy transfers from hosts[0] to the others while some lose packets.
func transferLossy(ctx context.Context, hosts, losers []*host, rate string) error {
	// A lost NAK is repaired by a timeout only: a short one.
	spec := groupSpec{number: 1, hosts: hosts, mtu: 1024, timeout: 16}
	return withGroup(ctx, &spec, func(g *group) error {
		return g.lossy(ctx, losers, rate, mixed(100, 40000, 1, 40000, 3000, 0, 40000)...)
	})
}

// lossy transfers while some hosts lose packets.
func (g *group) lossy(ctx context.Context, losers []*host, rate string, msgs ...message) (err error) {
	for _, h := range losers {
		err = errors.Join(err, h.lose(rate, rate))
	}
	if err == nil {
		err = g.transfer(ctx, msgs...)
	}
	for _, h := range losers {
		err = errors.Join(err, h.heal())
	}
	return err
}

// softReceiver and softSource put package rc, which is modelled on rxe, beside
// the original.
func softReceiver(ctx context.Context, b *bench) error {
	return transferLossy(ctx, []*host{b.hosts[0], b.soft, b.hosts[1]}, b.hosts[:2], "2%")
}

func softSource(ctx context.Context, b *bench) error {
	return transferLossy(ctx, []*host{b.soft, b.hosts[0], b.hosts[1]}, b.hosts[:2], "2%")
}

// twoGroups has each host but the sources receive from both groups, and the
// sources from each other.
func twoGroups(ctx context.Context, b *bench) error {
	first := groupSpec{number: 1, hosts: []*host{b.hosts[0], b.hosts[1], b.hosts[2], b.hosts[3]}, mtu: 1024}
	second := groupSpec{number: 2, hosts: []*host{b.hosts[3], b.hosts[0], b.hosts[1], b.hosts[4]}, mtu: 2048}
	return withGroup(ctx, &first, func(g1 *group) error {
		return withGroup(ctx, &second, func(g2 *group) error {
			other := make(chan error, 1)
			go func() { other <- repeat(2, func() error { return g2.transfer(ctx, mixed(1<<18, 77)...) }) }()
			err := repeat(2, func() error { return g1.transfer(ctx, mixed(77, 1<<18)...) })
			return errors.Join(err, <-other)
		})
	})
}

func repeat(n int, do func() error) error {
	for range n {
		if err := do(); err != nil {
			return err
		}
	}
	return nil
}

// allSizes sends messages of every power of two.
func allSizes(op endpoint.WROp) func(context.Context, *bench) error {
	return func(ctx context.Context, b *bench) error {
		spec := groupSpec{number: 1, hosts: b.hosts[:4], mtu: 1024}
		return withGroup(ctx, &spec, func(g *group) error {
			for size := 2; size < memory; size *= 2 {
				for _, s := range []int{size - 1, size} {
					if err := g.transfer(ctx, message{op, s}); err != nil {
						return err
					}
				}
			}
			return g.transfer(ctx, message{op, memory - 128})
		})
	}
}
