// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"math"
	"strconv"
	"time"

	"github.com/gleam-rdma/gleam/host/rc"
	"github.com/gleam-rdma/gleam/host/rc/dcqcn"
	"github.com/gleam-rdma/gleam/lab/sim"
	"github.com/gleam-rdma/gleam/lab/sim/topology"
	"github.com/gleam-rdma/gleam/lab/sim/workload"
	"github.com/gleam-rdma/gleam/mcast"
)

// check reads all values that need no network.
func (p *Point) check() {
	r, f := p.reader, &p.file
	p.seed = uint64(r.integer("seed", f.Seed, 0, math.MaxInt64))
	p.checkTopology()
	p.cfg = sim.Config{Seed: p.seed}
	p.checkSwitches()
	p.checkHosts()
	p.checkTrains()
	if len(f.Phases) == 0 {
		r.fail("phases", "", "want at least one phase")
	}
	for i := range f.Phases {
		key := "phases[" + itoa(i) + "]"
		if len(f.Phases[i].Programs) == 0 {
			r.fail(key, "", "want at least one program")
		}
		for j := range f.Phases[i].Programs {
			r.checkProgram(key+".programs["+itoa(j)+"]", &f.Phases[i].Programs[j])
		}
	}
}

func (p *Point) checkSwitches() {
	r, s := p.reader, &p.file.Switches
	p.cfg.Queue = r.bytes("switches.queue", s.Queue)
	p.cfg.ECN = sim.ECN{Min: r.bytes("switches.ecn.min", s.ECN.Min), Max: r.bytes("switches.ecn.max", s.ECN.Max), Probability: r.part("switches.ecn.probability", s.ECN.Probability)}
	if f := s.PFC; f.XOff != "" || f.XOn != "" {
		p.cfg.PFC = sim.PFC{XOff: r.bytes("switches.pfc.xoff", f.XOff), XOn: r.bytes("switches.pfc.xon", f.XOn)}
		if p.cfg.PFC.XOn >= p.cfg.PFC.XOff {
			r.fail("switches.pfc", "", "want xoff, and xon below it")
		}
	}
	p.cfg.Trees = []sim.TreeChoice{sim.LeastUsed, sim.Hashed, sim.Random}[r.oneOf("switches.trees", s.Trees, "least-used", "hashed", "random")]
	p.cfg.AllCNPs = r.oneOf("switches.cnps", s.CNPs, "filtered", "all") == 1
	if s.Detect != "" {
		if p.cfg.Detect = r.time("switches.detect", s.Detect); p.cfg.Detect <= 0 {
			r.fail("switches.detect", s.Detect, "want more than 0")
		}
	}
	if s.DeadAfter != "never" {
		p.cfg.DeadAfter = r.duration("switches.dead_after", s.DeadAfter)
	}
	p.cfg.Repair.Bytes = r.bytes("switches.repair.group_bytes", s.Fix.GroupBytes)
	p.cfg.RepairBytes = r.bytes("switches.repair.switch_bytes", s.Fix.SwitchBytes)
	if p.cfg.Repair.Bytes > 0 {
		p.cfg.Repair.Timeout = r.duration("switches.repair.timeout", s.Fix.Timeout)
		p.cfg.Repair.Tries = r.count("switches.repair.tries", s.Fix.Tries, 255)
		if s.Fix.Room != "auto" {
			p.cfg.RepairRoom = r.count("switches.repair.room", s.Fix.Room, 1<<20)
		}
	} else {
		p.cfg.Repair = mcast.RepairSpec{}
	}
}

func (p *Point) checkTrains() {
	r, t := p.reader, &p.file.Trains
	if t.Packets == "" && t.Inexact == "" {
		return
	}
	p.cfg.Train = r.count("trains.packets", t.Packets, 32)
	if t.Inexact != "" {
		p.inexact = r.oneOf("trains.inexact", t.Inexact, "false", "true") == 1
	}
}

// Inexact reports whether results of trains may differ from those of packets.
func (p *Point) Inexact() bool { return p.inexact }

// personalities returns the words for queue pairs, in the order of rc.Personality.
func personalities() (words []string) {
	for _, p := range rc.Personalities() {
		words = append(words, p.String())
	}
	return words
}

func (p *Point) checkHosts() {
	r, h := p.reader, &p.file.Hosts
	p.cfg.PathMTU = r.count("hosts.mtu", h.MTU, 4096)
	p.cfg.Host = sim.Host{
		Personality: rc.Personality(r.oneOf("hosts.personality", h.Personality, personalities()...)),
		Window:      r.count("hosts.window", h.Window, 1<<23),
		AckEvery:    r.count("hosts.ack_every", h.AckEvery, 1<<16),
		Timeout:     r.duration("hosts.timeout", h.Timeout),
		Retries:     uint8(r.integer("hosts.retries", h.Retries, 1, 7)),

		Write:        r.oneOf("hosts.operation", h.Operation, "send", "write") == 1,
		Receives:     r.count("hosts.receives", h.Receives, 1<<16),
		ReceiveDelay: r.time("hosts.receive_delay", h.ReceiveDelay),
		RNRTimer:     r.duration("hosts.rnr_timer", h.RNRTimer),
	}
	if p.cfg.Host.RNRTimer < 10*time.Microsecond || p.cfg.Host.RNRTimer > 655360*time.Microsecond {
		r.fail("hosts.rnr_timer", h.RNRTimer, "want 10us to 655.36ms; the next longer one of the 32 timers is taken")
	}
	if h.Rate != "none" {
		p.cfg.Host.Rate = r.rate("hosts.rate", h.Rate)
	}
	c := &h.Congestion
	if r.oneOf("hosts.congestion.control", c.Control, "none", "dcqcn") == 0 {
		return
	}
	d := &dcqcn.Config{LineRate: p.clos.HostRate}
	if p.file.Topology.Kind == "file" {
		d.LineRate = 0 // that of the hosts' links, once they are known
	}
	if c.G != "" {
		d.G = r.part("hosts.congestion.g", c.G)
	}
	if c.AlphaTimer != "" {
		d.AlphaTimer = r.duration("hosts.congestion.alpha_timer", c.AlphaTimer)
	}
	if c.IncreaseTimer != "" {
		d.IncreaseTimer = r.duration("hosts.congestion.increase_timer", c.IncreaseTimer)
	}
	if c.AI != "" {
		d.AI = r.rate("hosts.congestion.ai", c.AI)
	}
	if c.HAI != "" {
		d.HAI = r.rate("hosts.congestion.hai", c.HAI)
	}
	if c.CNPInterval != "" {
		d.CNPInterval = r.duration("hosts.congestion.cnp_interval", c.CNPInterval)
	}
	p.cfg.Host.Congestion = d
}

// Phase is a part of a point: its programs run beside each other, and the next phase begins when
// all have ended.
type Phase struct {
	Name     string
	Programs []Program
	Config   sim.Config
}

// Phases returns what is simulated one after another, without the programs of any.
func (p *Point) Phases() int { return len(p.file.Phases) }

// Phase makes a phase on a network. Each phase is a simulation of its own, as its programs have state.
func (p *Point) Phase(t *topology.Topology, i int) (*Phase, error) {
	programs, err := p.programs(t, i, p.seed)
	if err != nil {
		return nil, err
	}
	ph := &Phase{Name: p.file.Phases[i].Name, Programs: programs, Config: p.cfg}
	if ph.Name == "phase" {
		ph.Name += " " + strconv.Itoa(i+1)
	}
	all := make([]workload.Program, len(programs))
	for j := range programs {
		all[j] = programs[j].Program
	}
	ph.Config.Topology, ph.Config.Program = t, all[0]
	if len(all) > 1 {
		if ph.Config.Program, err = workload.NewMix(all...); err != nil {
			return nil, err
		}
	}
	if c := ph.Config.Host.Congestion; c != nil && c.LineRate == 0 {
		known := *c
		known.LineRate = t.Links[t.Ports(0)[0].Link].Rate
		ph.Config.Host.Congestion = &known
	}
	return ph, nil
}
