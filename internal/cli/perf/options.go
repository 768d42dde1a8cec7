// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package perf

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"time"

	"github.com/gleam-rdma/gleam/config/linkrate"
	"github.com/gleam-rdma/gleam/host/endpoint"
	"github.com/gleam-rdma/gleam/host/endpoint/oob"
	"github.com/gleam-rdma/gleam/internal/cli/port"
	"github.com/gleam-rdma/gleam/rocev2"
)

// Tests, as the command line names them.
const (
	WriteBW   = "write-bw"
	WriteLat  = "write-lat"
	SendBW    = "send-bw"
	SendLat   = "send-lat"
	Replicate = "replicate" // writes of a store to its replicas
	Rotate    = "rotate"    // WRITEs of each member in turn, to one group
)

// Tests are all tests.
var Tests = []string{WriteBW, WriteLat, SendBW, SendLat, Replicate, Rotate}

// Modes: the ways of a message from the sender to all receivers.
const (
	Group    = "group"    // one message to the group
	Unicasts = "unicasts" // one message to every receiver
	Chain    = "chain"    // one message to the first receiver; each receiver forwards to the next
	Tree     = "tree"     // binomial: in each round, every host with the message sends it to one without
)

// Modes are all modes.
var Modes = []string{Group, Unicasts, Chain, Tree}

// DefaultPort is the TCP port of receivers, as in perftest.
const DefaultPort = 18515

// Bounds of parameters.
const (
	maxSize     = 1 << 30 // bytes of a message
	minAllSizes = 2       // -a: the smallest size
	maxAll      = 8 << 20 // -a: the largest size
	maxLanes    = 64
	maxDepth    = 1024 // queue pairs have four times as many receives
	minChunk    = 256
)

// Params are the parameters that sender and receivers must agree on. If Iterations and
// Duration are zero, the number of iterations depends on the size.
type Params struct {
	Test       string        `json:"test"`
	Mode       string        `json:"mode"`
	Size       int           `json:"size"` // bytes of a message
	All        bool          `json:"all"`  // all sizes from 2 to 8 MiB instead
	Iterations int           `json:"iterations"`
	Duration   time.Duration `json:"duration_ns"`
	PathMTU    int           `json:"mtu"`
	Lanes      int           `json:"qps"`      // groups, or sets of queue pairs, at once
	Depth      int           `json:"tx_depth"` // most messages outstanding in a lane
	Chunk      int           `json:"chunk"`    // bytes that chain and tree forward at a time
	Verify     bool          `json:"verify"`
	Seed       uint64        `json:"seed"`                    // the seed of the verified bytes
	Congestion bool          `json:"dcqcn,omitempty"`         // congestion control, of the soft backend
	Rate       linkrate.Rate `json:"rate_bit_s,omitempty"`    // bound on each queue pair's rate, of the soft backend
	Slots      int           `json:"slots,omitempty"`         // Replicate: slots of a replica's window, each for one write
	Immediate  bool          `json:"immediate,omitempty"`     // Replicate: each write has immediate data
	DeadAfter  time.Duration `json:"dead_after_ns,omitempty"` // silence after which the group goes on without a receiver; 0: it fails
}

// Defaults returns the default parameters of a test.
func Defaults(test string) Params {
	p := Params{Test: test, Mode: Group, Size: 64 << 10, PathMTU: 1024, Lanes: 1, Depth: 128, Chunk: 64 << 10, Seed: 1}
	switch {
	case p.latency():
		p.Size = 2
	case p.replicates():
		p.Size, p.Depth, p.Slots = 8<<10, 32, 256
	case p.rotates():
		p.Verify = true
	}
	return p
}

func (p *Params) latency() bool { return p.Test == WriteLat || p.Test == SendLat }
func (p *Params) write() bool {
	return p.Test == WriteBW || p.Test == WriteLat || p.replicates() || p.rotates()
}
func (p *Params) replicates() bool { return p.Test == Replicate }
func (p *Params) rotates() bool    { return p.Test == Rotate }
func (p *Params) forwards() bool   { return p.Mode == Chain || p.Mode == Tree }

// needsAnswers reports whether receivers answer the messages that they get a completion for.
func (p *Params) needsAnswers() bool {
	return p.latency() || p.forwards() || p.Verify && !p.rotates() || p.replicates()
}

// notices reports whether receivers get a completion for every message.
func (p *Params) notices() bool {
	if p.replicates() {
		return p.forwards() || p.Immediate
	}
	return p.needsAnswers() || p.rotates() || !p.write()
}

// completes reports whether the sender's completion says that a receiver has the message.
// Else its answer does.
func (p *Params) completes() bool {
	return !p.needsAnswers() || p.replicates() && !p.forwards()
}

// noticeEvery returns after how many messages of size receivers get a completion.
func (p *Params) noticeEvery(size int) int {
	switch {
	case p.notices():
		return 1
	case p.replicates(): // four times in each turn of the slots, so that the sender need not wait for free ones
		return max(1, p.slots(size)/4)
	}
	return math.MaxInt // the first and the last message alone
}

// noticed reports whether receivers get a completion for message m of the run.
func (p *Params) noticed(size, m int, last bool) bool {
	return m == 0 || last || (m+1)%p.noticeEvery(size) == 0
}

// noticesOf returns the number of messages that receivers get a completion for, of a run
// without chain or tree.
func (p *Params) noticesOf(size, iterations int) int {
	every := p.noticeEvery(size)
	n := iterations / every
	if iterations%every > 0 {
		n++ // the last
	}
	if every > 1 && iterations > 1 {
		n++ // the first
	}
	return n
}

// sizes are the message sizes of the test, in order.
func (p *Params) sizes() []int {
	if !p.All {
		return []int{p.Size}
	}
	var list []int
	for n := minAllSizes; n <= maxAll; n *= 2 {
		list = append(list, n)
	}
	return list
}

// defaultMoved bounds the bytes of a run without a given number of iterations, so that -a
// ends soon enough.
const defaultMoved = 512 << 20

// iterations returns the number of messages of size on each lane; 0 with a duration.
func (p *Params) iterations(size int) int {
	switch {
	case p.rotates(): // all messages of a turn: receivers free no slot before its end
		return cmp.Or(p.Iterations, p.slots(size))
	case p.Duration > 0:
		return 0
	case p.Iterations > 0:
		return p.Iterations
	case p.latency():
		return max(16, min(1000, defaultMoved/size))
	}
	return max(16, min(5000, defaultMoved/size))
}

// slotMemory bounds the memory of a lane's slots, unless two messages already exceed it.
const slotMemory = 64 << 20

// slots returns the number of messages of size that a lane's memory has room for. The bytes of a slot
// are not changed before all receivers have done with them.
func (p *Params) slots(size int) int {
	n := p.Depth
	switch {
	case p.latency():
		return 1
	case p.replicates():
		n = p.Slots
	}
	return max(min(n, slotMemory/size), min(n, 2))
}

// memory returns the bytes of a lane's memory: enough for the slots of any size.
func (p *Params) memory() int {
	need := 0
	for _, n := range p.sizes() {
		need = max(need, n*p.slots(n))
	}
	return need
}

// maxWork bounds the work requests that may be outstanding on a queue pair.
const maxWork = 4096

// work returns how many work requests may be outstanding on a queue pair to a receiver: of replicated writes, all
// pieces of --tx-depth of them.
func (p *Params) work() int {
	if !p.replicates() {
		return p.Depth
	}
	most := 1
	for _, n := range p.sizes() {
		most = max(most, p.chunks(n))
	}
	return max(p.Depth, min(p.Depth*most, maxWork))
}

// chunks returns the number of pieces of a message of size: one, unless receivers forward
// messages.
func (p *Params) chunks(size int) int {
	if !p.forwards() {
		return 1
	}
	return (size + p.Chunk - 1) / p.Chunk
}

// check reports the first parameter with an impossible value.
func (p *Params) check() error {
	switch {
	case !slices.Contains(Tests, p.Test):
		return fmt.Errorf("test %q: want one of %v", p.Test, Tests)
	case !slices.Contains(Modes, p.Mode):
		return fmt.Errorf("--mode %q: want one of %v", p.Mode, Modes)
	case p.Size < 1 || p.Size > maxSize:
		return fmt.Errorf("--size %d: want 1 byte to 1G", p.Size)
	case p.Iterations < 0 || p.Iterations > 1<<30:
		return fmt.Errorf("--iters %d: want 1 to %d", p.Iterations, 1<<30)
	case p.Duration < 0 || p.Duration > 24*time.Hour:
		return fmt.Errorf("--duration: want at most a day")
	case p.Duration > 0 && p.All:
		return errors.New("--duration goes with one size: not with --all")
	case p.Duration > 0 && p.Iterations > 0 && !p.rotates():
		return errors.New("either --iters or --duration")
	case !rocev2.ValidPathMTU(p.PathMTU):
		return fmt.Errorf("--mtu %d: want %s", p.PathMTU, rocev2.PathMTUText)
	case p.Lanes < 1 || p.Lanes > maxLanes:
		return fmt.Errorf("--qps %d: want 1 to %d", p.Lanes, maxLanes)
	case p.Depth < 1 || p.Depth > maxDepth:
		return fmt.Errorf("--tx-depth %d: want 1 to %d", p.Depth, maxDepth)
	case p.replicates() && (p.Slots < p.Depth || p.Slots > recvDepth):
		return fmt.Errorf("--slots %d: want %d (--tx-depth) to %d", p.Slots, p.Depth, recvDepth)
	case p.Chunk < minChunk || p.Chunk > maxSize:
		return fmt.Errorf("--chunk %d: want %d bytes to 1G", p.Chunk, minChunk)
	case p.rotates() && p.Mode != Group:
		return fmt.Errorf("%s is for --mode group", Rotate)
	case p.rotates() && slices.ContainsFunc(p.sizes(), func(size int) bool { return p.Iterations > p.slots(size) }):
		return fmt.Errorf("--iters %d: want at most as many messages of a turn as there is room for, --tx-depth and 64 MiB", p.Iterations)
	case p.DeadAfter < 0 || p.DeadAfter > 0 && p.Mode != Group:
		return errors.New("--dead-after: want no negative time, and --mode group")
	case p.Rate.Validate() != nil:
		return fmt.Errorf("--rate: %w", p.Rate.Validate())
	}
	return nil
}

// mismatch compares the given flags of a receiver with the sender's parameters. Flags
// that were not given follow the sender.
func mismatch(own, sender *Params, given []string) error {
	if own.Test != sender.Test {
		return fmt.Errorf("the sender runs %s, this receiver was started for %s: start both for the same test", sender.Test, own.Test)
	}
	for _, f := range []struct {
		name      string
		own, sent any
	}{
		{"mode", own.Mode, sender.Mode}, {"size", own.Size, sender.Size}, {"all", own.All, sender.All},
		{"iters", own.Iterations, sender.Iterations}, {"duration", own.Duration, sender.Duration},
		{"mtu", own.PathMTU, sender.PathMTU}, {"qps", own.Lanes, sender.Lanes}, {"tx-depth", own.Depth, sender.Depth},
		{"chunk", own.Chunk, sender.Chunk}, {"verify", own.Verify, sender.Verify}, {"seed", own.Seed, sender.Seed},
		{"dcqcn", own.Congestion, sender.Congestion}, {"rate", own.Rate, sender.Rate},
		{"slots", own.Slots, sender.Slots}, {"imm", own.Immediate, sender.Immediate}, {"dead-after", own.DeadAfter, sender.DeadAfter},
	} {
		if slices.Contains(given, f.name) && f.own != f.sent {
			return fmt.Errorf("--%s: the sender has %v, this receiver was started with %v: give both the same, or leave it out here",
				f.name, f.sent, f.own)
		}
	}
	return nil
}

// Local has the parameters that sender and receivers each choose for themselves.
type Local struct {
	Backend   string // port.Soft or port.Verbs
	Interface string // network interface [the one of the connection to the other side]
	Device    string // RDMA device, for Verbs [the first that fits]
	Host      endpoint.HostConfig
	QPTimeout uint8         // retransmission after 4.096 µs * 2^QPTimeout [14]
	Timeout   time.Duration // longest wait without progress
	// OtherNetwork says that the connections between sender and receivers use another
	// network than the group.
	OtherNetwork bool
}

func (l *Local) check() error {
	if l.Timeout <= 0 {
		return fmt.Errorf("--timeout %v: want more than 0", l.Timeout)
	}
	return port.CheckDevice(l.Backend, l.Device, l.QPTimeout)
}

// identity returns the Identity for the connections between sender and receivers.
func (l *Local) identity() (*oob.Identity, error) {
	id, err := oob.NewIdentity(l.Host.Auth)
	if err != nil {
		return nil, err
	}
	id.Log = l.Host.Log
	return id, nil
}

// groups returns n consecutive GroupIPs from first.
func groups(first netip.Addr, n int) ([]netip.Addr, error) {
	var list []netip.Addr
	for ip := first; len(list) < n; ip = ip.Next() {
		if !ip.IsValid() || ip.IsMulticast() {
			return nil, fmt.Errorf("--group %s: there are no %d addresses from there on", first, n)
		}
		list = append(list, ip)
	}
	return list, nil
}
