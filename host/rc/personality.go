// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package rc

import (
	"fmt"
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// Personality selects the implementation that a QP imitates; see the package comment.
type Personality uint8

// Personalities.
const (
	RXE            Personality = iota // Linux soft-RoCE
	Strict                            // careful hardware, after qib
	ConnectX                          // mlx5 as it is delivered: adaptive retransmission
	ConnectXExact                     // mlx5 with adaptive retransmission and its floor off
	ConnectXRepeat                    // mlx5 with selective repeat and out-of-order placement
	IRDMA                             // Intel E810: credit code 0x1E, 1024 packets on their way
	EachPacket                        // a QP that asks for an ACK with each packet, as NVSHMEM sets it
	Mthca                             // a QP that asks for an ACK with each 1024th packet
	numPersonalities
)

// Personalities returns all of them.
func Personalities() []Personality {
	list := make([]Personality, numPersonalities)
	for i := range list {
		list[i] = Personality(i)
	}
	return list
}

// String returns the name that configurations have, such as "rxe" and "strict".
func (p Personality) String() string {
	if p < numPersonalities {
		return allTraits[p].name
	}
	return fmt.Sprintf("Personality(%d)", uint8(p))
}

// completer is the way in which a requester serves acknowledgements and timeouts.
type completer uint8

const (
	checkingCompleter completer = iota // qib_rc.c: what was never sent is not acknowledged; timeouts alone cost retries
	rxeCompleter                       // rxe_comp.c
)

// traits is what personalities differ in. RC.md §11 has the source of each.
type traits struct {
	name string

	// Requester.
	completer      completer
	window         int  // the default of MaxUnacked
	askEvery       int  // the default of AckReqEvery
	asksByCount    bool // AckReqEvery counts packets sent, also across restarts; else places in the message
	sendsInRNRWait bool // new packets go out while the RNR timer runs
	rnrWait        int  // the wait after an RNR NAK, in times of what it asks for
	adaptive       bool // repetitions come early, and the regular ones late
	repeatsOne     bool // a sequence NAK repeats one packet

	// Responder.
	forgetsNAKEarly    bool // an expected packet ends a NAK before it is checked
	acksEveryDuplicate bool // a duplicate is acknowledged also without AckReq, and does not end a NAK
	acksFromZero       bool // a duplicate before the first accepted packet is acknowledged with PSN 0xFFFFFF
	silentAfterRNR     bool // no sequence NAK follows an RNR NAK
	unknownKeyFails    bool // SEND with invalidate of an unknown R_Key ends the QP
	tooLongSyndrome    rocev2.Syndrome
	tooLongStatus      Status          // status, with tooLongSyndrome, of a SEND that its receive has no room for
	checksWritesByPart bool            // the bounds of a WRITE are checked packet by packet
	ackDelay           time.Duration   // how long the ACK inside a message waits for more packets; 0: not at all
	ackSyndrome        rocev2.Syndrome // syndrome of an ACK
	credits            bool            // ACKs have the credit code of the posted receives
	keeps              int             // how far behind a gap packets are kept; a power of two, or 0
}

// hardware has what RNICs have in common as far as nothing else is known: Strict's traits.
var hardware = traits{
	window: 128, askEvery: 16, rnrWait: 1, silentAfterRNR: true,
	tooLongSyndrome: rocev2.SyndromeNAKInvalid, tooLongStatus: LocLenErr, ackSyndrome: rocev2.SyndromeACK,
}

// allTraits has the traits of each personality.
var allTraits = [numPersonalities]traits{
	RXE: {
		name: "rxe", completer: rxeCompleter, window: 128, askEvery: 66, asksByCount: true, sendsInRNRWait: true, rnrWait: 1,
		forgetsNAKEarly: true, acksEveryDuplicate: true, acksFromZero: true, unknownKeyFails: true,
		// rdma_rxe 6.12, as seen on the wire: the receive's buffer cannot take the copy
		// (RESPST_ERR_LENGTH is not where it notices).
		tooLongSyndrome: rocev2.SyndromeNAKOpErr, tooLongStatus: LocQPOpErr, ackSyndrome: rocev2.SyndromeACK,
	},
	Strict: hardware.but("strict", func(*traits) {}),
	ConnectX: hardware.but("connectx", func(t *traits) {
		connectX(t)
		t.adaptive = true
	}),
	ConnectXExact: hardware.but("connectx-exact", connectX),
	ConnectXRepeat: hardware.but("connectx-repeat", func(t *traits) {
		connectX(t)
		t.adaptive, t.repeatsOne, t.keeps = true, true, 256
	}),
	IRDMA: hardware.but("irdma", func(t *traits) { t.window, t.ackSyndrome = 1024, 0x1E }),
	EachPacket: hardware.but("each-packet", func(t *traits) {
		connectX(t)
		t.askEvery = 1
	}),
	Mthca: hardware.but("mthca", func(t *traits) { t.window, t.askEvery, t.asksByCount = 2048, 1024, true }),
}

// but returns t with another name and a change.
func (t traits) but(name string, change func(*traits)) traits {
	t.name = name
	change(&t)
	return t
}

// connectX sets what all of mlx5 have. A ConnectX has no window of packets; the one here
// bounds a model.
func connectX(t *traits) {
	t.window, t.askEvery, t.asksByCount, t.rnrWait = 1024, 256, true, 2
	t.checksWritesByPart, t.ackDelay, t.credits = true, 8*time.Microsecond, true
}

// traits returns the traits of p; those of RXE if there is no such personality.
func (p Personality) traits() *traits {
	if p < numPersonalities {
		return &allTraits[p]
	}
	return &allTraits[RXE]
}

// Adaptive retransmission, as it was measured (RC.md §11, P1 and P2).
const (
	adaptiveFirst  = 12 * time.Millisecond // the shortest wait before the first repetition after a post
	adaptiveSpread = 59 * time.Millisecond // how much longer than adaptiveFirst it can be
	adaptiveShrink = 8                     // progress shortens the wait down to this part of the first
	adaptiveEarly  = 96 * time.Millisecond // the early repetitions end so long before the first regular one is due
	adaptiveFloor  = 16                    // the least timeout code that counts
)

// adaptive is the timer of early repetitions.
type adaptive struct {
	wait  time.Duration `state:"duration"` // time until the next early repetition
	left  time.Duration `state:"duration"` // rest of the time of early repetitions; 0: it is over
	early bool          `state:"encoded"`  // one has been sent without an answer since
}

// regularInterval returns the time between regular repetitions: twice the timeout, and not
// less than twice that of code 16.
func (c *Config) regularInterval() time.Duration {
	return 2 * max(c.Timeout, rocev2.AckTimeout(adaptiveFloor))
}

// firstWait returns the wait before the first repetition, which looks random from one QP to
// the next (splitmix64).
func (c *Config) firstWait() time.Duration {
	z := (uint64(c.LocalQPN)<<24 | uint64(c.DestQPN)) + 0x9E3779B97F4A7C15
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	return adaptiveFirst + time.Duration((z^z>>31)%uint64(adaptiveSpread))
}

func (a *adaptive) init(c *Config) {
	a.wait, a.left = c.firstWait(), c.regularInterval()-adaptiveEarly
}

// answered shortens the wait, and lets repetitions be early again.
func (a *adaptive) answered(c *Config) {
	a.wait = max(a.wait/2, c.firstWait()/adaptiveShrink)
	a.left, a.early = c.regularInterval()-adaptiveEarly, false
}

// retryInterval returns the time from now on after which the oldest packet is repeated.
func (r *requester) retryInterval() time.Duration {
	switch {
	case !r.traits.adaptive:
		return r.cfg.Timeout
	case r.adaptive.left > 0:
		return min(r.adaptive.wait, r.adaptive.left)
	}
	return r.cfg.regularInterval()
}

// repeatsEarly reports whether the timeout that has come is an early repetition, and counts
// it. All early ones together cost one retry; the last of their time is a regular one.
func (r *requester) repeatsEarly() (early, free bool) {
	a := &r.adaptive
	if !r.traits.adaptive || a.left == 0 {
		return false, false
	}
	a.left -= min(a.wait, a.left)
	a.wait = min(2*a.wait, r.cfg.regularInterval())
	if a.left == 0 {
		return false, false
	}
	free, a.early = a.early, true
	return true, free
}

// retryCount returns the number of retries. Adaptive retransmission takes 0 for 7.
func (r *requester) retryCount() uint8 {
	if r.traits.adaptive && r.cfg.RetryCnt == 0 {
		return 7
	}
	return r.cfg.RetryCnt
}
