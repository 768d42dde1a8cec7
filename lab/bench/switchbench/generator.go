// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package switchbench

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"runtime"
	"time"
	"unsafe"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/gleam-rdma/gleam/rocev2"
)

// pace is the rate of data frames and of ACKs.
type pace struct {
	rate     float64 // data frames a second; 0: as fast as it goes; negative: none
	ackEvery uint32  // packets per ACK of each receiver; 0: no ACKs
	ackJump  uint32  // unacknowledged packets beyond which a receiver acknowledges at once
	window   uint32  // packets that the switch has not acknowledged to the source; 0: any number
}

// burst is the number of frames that are sent at a time where there is a rate: as many
// as a NIC delivers with interrupt coalescing.
const burst = 32

func (p pace) interval() uint64 {
	switch {
	case p.rate < 0:
		return math.MaxInt64 / 2
	case p.rate == 0:
		return 0
	}
	return uint64(burst * 1e9 / p.rate)
}

// generatorTotals are a generator's counts so far.
type generatorTotals struct {
	data, acks uint64
	waited     time.Duration // the time in which it was not time to send yet; CPU time, since waiting is spinning
}

// generator sends the source's frames, and the receivers' ACKs.
type generator interface {
	// start sends at a pace until the thread is stopped.
	start(p pace) (*thread, error)
	// sent reads the counters; at any time.
	sent() (generatorTotals, error)
	// next returns the PSN of the next data frame of all groups, and sets it if it is given.
	next(set ...rocev2.PSN) (rocev2.PSN, error)
	Close() error
}

// templateValue is struct template of replicate.c.
type templateValue struct {
	Words [64]byte
	ICRC  uint32
	Acked uint32

	Patience, Asked uint32
}

// controlValue is struct control of replicate.c.
type controlValue struct {
	Interval, Due, Sent, Acks, Waited, Idle uint64
	Burst, Left, PSN, AckEvery, Jump, Turn  uint32
	Window, Group, TurnGroup, Rest          uint32
}

// liveGenerator runs the BPF program generate.
type liveGenerator struct {
	objects struct {
		Generate  *ebpf.Program `ebpf:"generate"`
		Out       *ebpf.Map     `ebpf:"out"`
		Tables    *ebpf.Map     `ebpf:"psn_tables"`
		Templates *ebpf.Map     `ebpf:"templates"`
		Control   *ebpf.Map     `ebpf:"control"`
	}
	frame []byte
	cpu   int
}

// generatorPort is an interface by which frames are sent; in runs a function in its
// namespace.
type generatorPort struct {
	in      func(func() error) error
	ifindex int
}

// groupFrames are the frames of a group.
type groupFrames struct {
	data  []byte   // the data frame with PSN 0
	acks  [][]byte // the ACK frames by receiver, with PSN 0; may be empty
	acked []rocev2.PSN
}

// generatorConfig has a generator's frames and their ports.
type generatorConfig struct {
	groups  []groupFrames   // frames by group: as many receivers in each, and frames of one length
	out     []generatorPort // the source's, then the receivers'
	arrived *ebpf.Map
	cpu     int
}

func newLiveGenerator(c generatorConfig) (_ *liveGenerator, err error) {
	data := c.groups[0].data
	g := &liveGenerator{frame: data, cpu: c.cpu}
	spec, err := loadReplicate()
	if err != nil {
		return nil, err
	}
	err = errors.Join(spec.Variables["frame_len"].Set(uint32(len(data))),
		spec.Variables["receivers"].Set(uint32(len(c.groups[0].acks))),
		spec.Variables["groups"].Set(uint32(len(c.groups))))
	if err != nil {
		return nil, err
	}
	replace := map[string]*ebpf.Map{}
	if c.arrived != nil {
		replace["arrived"] = c.arrived
	}
	if err := spec.LoadAndAssign(&g.objects, &ebpf.CollectionOptions{MapReplacements: replace}); err != nil {
		return nil, fmt.Errorf("load the generator: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, g.Close())
		}
	}()
	tail := rocev2.EthernetLen + rocev2.IPv4Len + rocev2.UDPLen + rocev2.BTHLen
	put := func(m *ebpf.Map, key int, value any) {
		if err == nil {
			err = m.Put(uint32(key), value)
		}
	}
	put(g.objects.Tables, 0, newPSNTable(dataOp, len(data)-tail-rocev2.ICRCLen))
	put(g.objects.Tables, 1, newPSNTable(rocev2.Acknowledge, 0))
	for k, f := range c.groups {
		put(g.objects.Templates, sinkIndex(0, k), templateOf(f.data, 0))
		for i, a := range f.acks {
			put(g.objects.Templates, sinkIndex(i+1, k), templateOf(a, f.acked[i]))
		}
	}
	put(g.objects.Control, 0, &controlValue{Burst: burst})
	for i, p := range c.out {
		if err == nil {
			err = p.in(func() error { return g.objects.Out.Put(uint32(i), uint32(p.ifindex)) })
		}
	}
	if err != nil {
		return nil, fmt.Errorf("set up the generator: %w", err)
	}
	return g, nil
}

func templateOf(frame []byte, acked rocev2.PSN) *templateValue {
	t := &templateValue{Acked: uint32(acked)}
	copy(t.Words[:], frame)
	t.ICRC = binary.LittleEndian.Uint32(frame[len(frame)-rocev2.ICRCLen:])
	return t
}

func (g *liveGenerator) control() (c controlValue, err error) {
	if err = g.objects.Control.Lookup(uint32(0), &c); err != nil {
		err = fmt.Errorf("read the generator's counters: %w", err)
	}
	return c, err
}

func (g *liveGenerator) sent() (generatorTotals, error) {
	c, err := g.control()
	return generatorTotals{data: c.Sent, acks: c.Acks, waited: time.Duration(c.Waited)}, err
}

func (g *liveGenerator) next(set ...rocev2.PSN) (rocev2.PSN, error) {
	c, err := g.control()
	if err != nil {
		return 0, err
	}
	next := rocev2.PSN(c.PSN)
	if c.Group != 0 { // some groups have had that one
		next = next.Next()
	}
	if len(set) > 0 {
		next = set[0]
	}
	c.PSN, c.Group = uint32(next), 0
	return next, g.objects.Control.Put(uint32(0), &c)
}

// start implements generator. The counters stay.
func (g *liveGenerator) start(p pace) (*thread, error) {
	c, err := g.control()
	if err != nil {
		return nil, err
	}
	now, err := monotonic()
	if err != nil {
		return nil, err
	}
	c.Interval, c.Burst, c.Left, c.Idle, c.AckEvery, c.Jump, c.Window = p.interval(), burst, 0, 0, p.ackEvery, p.ackJump, p.window
	c.Due = uint64(now)
	if p.rate < 0 {
		c.Due = math.MaxInt64
	}
	if err := g.objects.Control.Put(uint32(0), &c); err != nil {
		return nil, err
	}
	return onCPU(g.cpu, func(stopped <-chan struct{}) error {
		for {
			if err := g.run(); err != nil && !errors.Is(err, unix.EINTR) {
				return fmt.Errorf("run the generator (BPF_PROG_TEST_RUN with live frames needs Linux 5.18): %w", err)
			}
			select {
			case <-stopped:
				return nil
			default:
			}
		}
	}), nil
}

// testRun is the kernel's union bpf_attr for BPF_PROG_TEST_RUN.
type testRun struct {
	progFD, retval            uint32
	dataSizeIn, dataSizeOut   uint32
	dataIn, dataOut           uint64
	repeat, duration          uint32
	ctxSizeIn, ctxSizeOut     uint32
	ctxIn, ctxOut             uint64
	flags, cpu, batchSize, _p uint32
}

const (
	bpfProgTestRun  = 10     // enum bpf_cmd
	liveFrames      = 1 << 1 // BPF_F_TEST_XDP_LIVE_FRAMES
	liveFramesBatch = 64
	// Each call costs some 20 ms when it ends, so there should be few of them.
	liveFramesRepeat = 1 << 31
)

// run is one call of BPF_PROG_TEST_RUN. ebpf.Program.Run starts again when a
// signal interrupts it, and so could not be stopped.
func (g *liveGenerator) run() error {
	a := testRun{
		progFD: uint32(g.objects.Generate.FD()), dataSizeIn: uint32(len(g.frame)),
		dataIn: uint64(uintptr(unsafe.Pointer(&g.frame[0]))), repeat: liveFramesRepeat,
		flags: liveFrames, batchSize: liveFramesBatch,
	}
	_, _, e := unix.Syscall(unix.SYS_BPF, bpfProgTestRun, uintptr(unsafe.Pointer(&a)), unsafe.Sizeof(a))
	runtime.KeepAlive(g.frame)
	if e != 0 {
		return e
	}
	return nil
}

// Close unloads the program.
func (g *liveGenerator) Close() error {
	return closeAll(g.objects.Generate, g.objects.Out, g.objects.Tables, g.objects.Templates, g.objects.Control)
}

// closeAll closes all of them.
func closeAll(all ...interface{ Close() error }) error {
	var errs []error
	for _, c := range all {
		errs = append(errs, c.Close()) // a nil Map or Program closes as nothing
	}
	return errors.Join(errs...)
}
