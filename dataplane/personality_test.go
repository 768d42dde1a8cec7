// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gleam-rdma/gleam/host/rc"
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/test/labtest"
)

// A cell of the matrix: who sends, who receives, and what happens.
type personalityCell struct {
	source    rc.Personality
	receivers string
	situation string
}

// String names the cell.
func (c personalityCell) String() string {
	return fmt.Sprintf("%v/%s/%s", c.source, c.receivers, c.situation)
}

// receiverKinds are the columns: receivers that differ as receivers.
var receiverKinds = []struct {
	name string
	list []rc.Personality
}{
	{"rxe", []rc.Personality{rc.RXE, rc.RXE, rc.RXE}},
	{"strict", []rc.Personality{rc.Strict, rc.Strict, rc.Strict}},
	{"connectx", []rc.Personality{rc.ConnectX, rc.ConnectX, rc.ConnectX}},
	{"repeat", []rc.Personality{rc.ConnectXRepeat, rc.ConnectXRepeat, rc.ConnectXRepeat}},
	{"mixed", []rc.Personality{rc.IRDMA, rc.RXE, rc.ConnectXRepeat}},
}

var personalitySituations = []string{"loss", "evict", "quorum", "change", "restart", "tree"}

// strandedCells are the cells under quorum in which a live receiver does not get all: it
// stays behind for ever, or is removed (R37). The receiver has lost its NAK, so that the
// switch has to ask it, and 1,024 retained packets are 5 ms at 200,000 packets/s: what it
// lacks is freed before. A cell with another verdict fails the test, so that the list
// only shrinks.
var strandedCells = []struct {
	sources   []rc.Personality
	receivers []string
	verdict   string
	reason    string
}{
	{
		[]rc.Personality{rc.RXE, rc.Strict, rc.ConnectX, rc.ConnectXExact, rc.ConnectXRepeat, rc.IRDMA, rc.Mthca}, []string{"rxe"}, "behind",
		"rxe answers the question with an ACK of what it had, and does not repeat its NAK (RC.md §3.4); the next question comes late",
	},
	{[]rc.Personality{rc.EachPacket}, []string{"rxe", "strict"}, "stranded", "the question brings the first missing packet, and its ACK is progress; the NAK of the next comes 1 ms later, when the store is past it"},
}

// strands returns the verdict that is known of the cell, and why; "" is that all is well.
func (c personalityCell) strands() (verdict, reason string) {
	for _, k := range strandedCells {
		if c.situation == "quorum" && slices.Contains(k.sources, c.source) && slices.Contains(k.receivers, c.receivers) {
			return k.verdict, k.reason
		}
	}
	return "", ""
}

// personalityLengths are messages of a window and more, of packets of 256 bytes: SEND, SEND
// with immediate data, WRITE, WRITE with immediate data, and again.
var personalityLengths = []int{1, 700 * 256, 300*256 + 5, 900 * 256, 256, 400 * 256}

// run plays the cell, and returns its verdict: "" if all went as promised.
func (c personalityCell) run(t *testing.T, seed uint64) string {
	cfg := treeConfig{pmtu: 256, seed: seed, hosts: []rc.Personality{c.source}, receive: 1 << 18, loss: 0.01, budget: 8}
	for _, k := range receiverKinds {
		if k.name == c.receivers {
			cfg.hosts = append(cfg.hosts, k.list...)
		}
	}
	switch c.situation {
	case "evict":
		cfg.policy, cfg.deadAfter, cfg.loss = mcast.Evict, 200*time.Millisecond, 0.002
	case "quorum":
		cfg.policy, cfg.quorum, cfg.loss, cfg.budget = mcast.Quorum, 2, 0, 2
	case "restart":
		cfg.stored = true
	case "tree":
		cfg.hosts = append(cfg.hosts, cfg.hosts[1])
	}
	build := newPersonalityNet
	if c.situation == "tree" {
		build = newPersonalityTree
	}
	n := build(t, cfg)
	if c.situation == "quorum" {
		// One receiver loses ten packets, and then its NAK.
		n.outage = func(h *treeHost, sends bool) bool {
			sent := n.hosts[0].qp.Stats().PacketsSent
			return h == n.hosts[3] && sent >= 600 && (sent < 610 || sends && sent < 640)
		}
	}
	verdict := ""
	switch c.situation {
	case "evict":
		verdict = n.send(0, 0, personalityLengths, func(completed int) {
			switch completed {
			case 1:
				n.refuseWrites(3) // the third message is a WRITE
			case 3:
				n.hosts[2].dead = true
			}
		})
	case "restart":
		restarts := 0
		verdict = n.send(0, 0, personalityLengths, func(completed int) {
			if completed%2 == 1 {
				n.restart()
				restarts++
			}
		})
		if verdict == "" && restarts != 3 {
			t.Fatalf("%d restarts, want 3", restarts)
		}
	case "change":
		for _, src := range []int{0, 1, 3, 0} {
			if verdict = n.send(src, 0, personalityLengths[:4], nil); verdict != "" {
				break
			}
		}
	default:
		verdict = n.send(0, cfg.quorum, personalityLengths, nil)
	}
	if verdict == "" {
		verdict = n.wrongRemoval()
	}
	return verdict
}

// TestPersonalities: sources and receivers that behave as RNICs are documented to (package
// rc), through a switch's real workers in virtual time, with losses, with a receiver that
// refuses and another that dies, under a quorum, and while one member after the other
// sends. No completion is false, no member that is well is removed, nothing stalls.
// GLEAM_PERSONALITIES=all plays all cells, else some of each row and column.
func TestPersonalities(t *testing.T) {
	whole := os.Getenv("GLEAM_PERSONALITIES") == "all"
	verdicts := map[personalityCell]string{}
	index := 0
	for _, source := range rc.Personalities() {
		for _, k := range receiverKinds {
			for _, situation := range personalitySituations {
				c := personalityCell{source, k.name, situation}
				if index++; !whole && (index%11 != 0 || !labtest.InTurn(t, index/11, 3)) {
					continue
				}
				t.Run(c.String(), func(t *testing.T) {
					verdicts[c] = "FAIL"
					synctest.Test(t, func(t *testing.T) {
						verdict := c.run(t, uint64(index))
						known, reason := c.strands()
						switch {
						case verdict == known:
						case verdict == "":
							t.Errorf("no receiver is %s any more, so the cell goes out of strandedCells (%s)", known, reason)
						default:
							t.Errorf("%s, want %q", verdict, known)
						}
						verdicts[c] = verdict
					})
				})
			}
		}
	}
	t.Log(personalityTable(verdicts))
}

// personalityTable prints the verdicts: rows are sources, columns are receivers, and each
// entry has the situations in turn. A dot is a cell that was not played.
func personalityTable(verdicts map[personalityCell]string) string {
	var s strings.Builder
	count := map[string]int{}
	for _, v := range verdicts {
		count[v]++
	}
	fmt.Fprintf(&s, "%d cells, %d as promised; each entry: %s\n%-16s", len(verdicts), count[""], strings.Join(personalitySituations, ", "), "source")
	for _, k := range receiverKinds {
		fmt.Fprintf(&s, " %-20s", k.name)
	}
	for _, source := range rc.Personalities() {
		fmt.Fprintf(&s, "\n%-16v", source)
		for _, k := range receiverKinds {
			entry := ""
			for _, situation := range personalitySituations {
				verdict, played := verdicts[personalityCell{source, k.name, situation}]
				switch {
				case !played:
					verdict = "."
				case verdict == "":
					verdict = "ok"
				}
				entry += verdict + " "
			}
			fmt.Fprintf(&s, " %-20s", entry)
		}
	}
	return s.String()
}
