// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"strconv"
	"sync"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/internal/observe/watch"
)

// Backend has what the metrics are made of.
type Backend interface {
	// BusiestGroups returns at most n groups, and how many others there are.
	BusiestGroups(n int) (list []api.Group, leftOut int, err error)
	Ports() ([]api.Port, error)
	Stats() (*api.Stats, error)
}

// Config is what the metrics are of.
type Config struct {
	Groups  int // the most that have metrics of their own
	Version api.Version
	// Drops and Unneeded are the reasons that have a series before they occur, so that their
	// first occurrence is an increase.
	Drops, Unneeded []string
}

// Limits of the work for scrapers: a sample serves all that ask within minAge, and no more than
// a tenth of the time is spent on samples.
const (
	minAge = 500 * time.Millisecond
	share  = 10
)

// collector collects the metrics of a switch.
type collector struct {
	backend Backend
	config  Config

	mu    sync.Mutex
	last  *sample
	until time.Time // when last is too old
}

// sample is the switch at one moment.
type sample struct {
	groups  []api.Group
	leftOut int
	ports   []api.Port
	stats   *api.Stats
	err     error
}

// take asks the switch, or returns the last answer if that is new enough.
func (c *collector) take() *sample {
	c.mu.Lock()
	defer c.mu.Unlock()
	begin := time.Now()
	if c.last != nil && begin.Before(c.until) {
		return c.last
	}
	s := new(sample)
	if s.groups, s.leftOut, s.err = c.backend.BusiestGroups(c.config.Groups); s.err == nil {
		s.ports, s.err = c.backend.Ports()
	}
	if s.err == nil {
		s.stats, s.err = c.backend.Stats()
	}
	end := time.Now()
	c.last, c.until = s, end.Add(max(minAge, share*end.Sub(begin)))
	return s
}

// collect returns the metrics as they are now.
func (c *collector) collect() out {
	o, s := make(out), c.take()
	o.put(buildInfo, 1, c.config.Version.Version, c.config.Version.Commit, c.config.Version.Go)
	o.put(startTime, float64(c.config.Version.Started.UnixMilli())/1000)
	if o.flag(scrapeFailed, s.err != nil); s.err != nil {
		return o
	}
	o.put(groupLimit, float64(c.config.Groups))
	o.put(groupsLeftOut, float64(s.leftOut))
	c.switchOf(o, s.stats)
	o.workers(s.stats)
	for i := range s.ports {
		o.port(&s.ports[i])
	}
	for i := range s.groups {
		o.group(&s.groups[i])
		o.members(&s.groups[i])
	}
	return o
}

// withZeros returns counts with an entry for each of names.
func withZeros(counts map[string]uint64, names []string) map[string]uint64 {
	all := make(map[string]uint64, len(counts)+len(names))
	for _, name := range names {
		all[name] = 0
	}
	for name, n := range counts {
		all[name] = n
	}
	return all
}

func (c *collector) switchOf(o out, s *api.Stats) {
	o.count(epoch, s.Epoch)
	o.put(groups, float64(s.Groups))
	o.count(dataPackets, s.Rx)
	o.count(dataBytes, s.RxBytes)
	o.count(copies, s.Copies)
	o.count(resent, s.Resent)
	o.count(ceMarked, s.CEMarked)
	o.count(feedbackIn, s.FeedbackIn)
	o.count(feedbackOut, s.FeedbackOut)
	o.count(psnProbes, s.PSNProbes)
	o.count(neighbour, s.Neighbour)
	o.count(envelopesIn, s.EnvelopeIn)
	o.count(envelopesOut, s.EnvelopeOut)
	o.each(dropped, withZeros(s.Drops, c.config.Drops))
	o.each(unneeded, withZeros(s.Normal, c.config.Unneeded))
	o.put(umemFrames, float64(s.Frames))
	o.put(umemFree, float64(s.FramesFree))
	o.each(eventCount, withZeros(s.Events, api.EventKinds))
	o.each(registrations, withZeros(s.Registrations, []string{api.OutcomeAccepted, api.OutcomeUnchanged}))
	o.count(moves, s.Moves.Confirmed, "confirmed")
	o.count(moves, s.Moves.Unconfirmed, "unconfirmed")
	o.histogram(registrationTime, &s.Times.Registration)
	o.histogram(ackTime, &s.Times.ACK)
	o.histogram(stallTime, &s.Times.Stall)
}

func (o out) workers(s *api.Stats) {
	for i := range s.Workers {
		w := &s.Workers[i]
		name := strconv.Itoa(w.Worker)
		o.put(workerTime, w.Seconds, name)
		o.put(workerBusy, w.Busy, name)
		o.put(workerAsleep, w.Asleep, name)
		o.put(workerPaused, w.Paused, name)
		o.count(workerBatches, w.Batches, name)
		o.count(workerPackets, w.Packets, name)
		o.put(workerGroups, float64(w.Groups), name)
		o.ring(handoffUsed, handoffSize, w.Handoff, name)
	}
	o.ring(queueUsed, queueSize, s.Queues.Renewals, "renewals")
	o.ring(queueUsed, queueSize, s.Queues.Requests, "requests")
	o.ring(queueUsed, queueSize, s.Queues.Relays, "relays")
	o.count(iterations, s.Control.Iterations)
	o.put(longest, s.Control.LongestIteration)
	o.count(lookups, s.Control.Lookups)
	o.put(hosts, float64(s.Control.Hosts))
	o.count(resyncs, s.Control.Resyncs)
	if f := s.Control.State; f != nil {
		o.count(stateWrites, f.Writes)
		o.count(stateErrors, f.Errors)
		o.flag(stateFailing, f.Failing != "")
	}
}

func (o out) port(p *api.Port) {
	mode := "copy"
	if p.ZeroCopy {
		mode = "zero-copy"
	}
	e := &p.Egress
	o.put(portInfo, 1, p.Name, p.Driver, p.XDPMode, mode)
	o.flag(portUp, p.Up, p.Name)
	o.flag(portBlocked, p.Blocked, p.Name)
	o.flag(portUnheard, p.Unheard != "", p.Name)
	o.count(portDowns, p.Downs, p.Name)
	o.count(portReopened, p.Reopened, p.Name)
	o.count(portRxFrames, p.RxFrames, p.Name)
	o.count(portRxBytes, p.RxBytes, p.Name)
	o.count(portTxFrames, p.TxFrames, p.Name)
	o.count(portTxBytes, p.TxBytes, p.Name)
	o.each(portXDP, p.XDP, p.Name)
	if f := p.FastPath; f != nil {
		o.count(portFastSent, f.Sent, p.Name)
		o.count(portFastLost, f.Lost, p.Name)
	}
	o.put(egressBytes, float64(e.Bytes), p.Name)
	o.put(egressFrames, float64(e.Frames), p.Name)
	o.put(egressLimit, float64(e.MaxBytes), p.Name)
	o.put(egressHighest, float64(e.MaxDepthBytes), p.Name)
	o.count(egressDropped, e.Dropped, p.Name)
	o.count(egressDeferred, e.Deferred, p.Name)
	o.count(egressMarked, e.CEMarked, p.Name)
	if p.Rate > 0 {
		o.put(rate, float64(p.Rate)/8, p.Name)
	}
	if d := p.Device; d != nil {
		o.count(deviceRxPackets, d.RXPackets, p.Name)
		o.count(deviceTxPackets, d.TXPackets, p.Name)
		o.count(deviceRxBytes, d.RXBytes, p.Name)
		o.count(deviceTxBytes, d.TXBytes, p.Name)
		o.count(deviceErrors, d.RXErrors, p.Name, "receive")
		o.count(deviceErrors, d.TXErrors, p.Name, "send")
		o.count(deviceDropped, d.RXDropped, p.Name, "receive")
		o.count(deviceDropped, d.TXDropped, p.Name, "send")
		o.count(deviceMissed, d.RXMissed, p.Name)
		o.count(deviceOverruns, d.RXOverruns, p.Name)
	}
	for i := range p.Sockets {
		o.socket(p.Name, &p.Sockets[i])
	}
}

func (o out) socket(port string, s *api.Socket) {
	q, k := strconv.Itoa(s.Queue), &s.Kernel
	o.ring(ringUsed, ringSize, s.RX, port, q, "rx")
	o.ring(ringUsed, ringSize, s.Fill, port, q, "fill")
	o.ring(ringUsed, ringSize, s.TX, port, q, "tx")
	o.ring(ringUsed, ringSize, s.Completion, port, q, "completion")
	o.count(socketDropped, k.RXRingFull, port, q, "rx_ring_full")
	o.count(socketDropped, k.FillEmpty, port, q, "fill_ring_empty")
	o.count(socketDropped, k.RXDropped, port, q, "other")
	o.count(socketInvalid, k.RXInvalid, port, q, "fill")
	o.count(socketInvalid, k.TXInvalid, port, q, "tx")
	o.count(socketTxEmpty, k.TXRingEmpty, port, q)
}

func (o out) group(g *api.Group) {
	ip := g.IP.String()
	o.put(groupInfo, 1, ip, g.Policy, g.Origin, g.Master, strconv.Itoa(g.Worker))
	for _, state := range [...]string{"idle", "running", "failed"} {
		o.flag(groupState, g.State == state, ip, state)
	}
	o.count(groupData, g.Counters.DataIn, ip)
	o.count(groupRepeated, g.Counters.Repeated, ip)
	o.count(groupBytes, g.Counters.DataBytes, ip)
	o.count(groupGood, g.Counters.GoodBytes, ip)
	o.count(groupCopies, g.Counters.Copies, ip)
	o.count(groupFeedIn, g.Counters.FeedbackIn, ip)
	o.count(groupFeedOut, g.Counters.FeedbackOut, ip)
	if r := g.Repair; r != nil {
		o.count(groupResent, r.Copies, ip)
		o.count(groupNAKs, r.NAKs, ip)
		o.count(groupProbes, r.Probes, ip)
		o.count(groupLost, r.NotRetained, ip)
		o.put(groupRetained, float64(r.Bytes), ip)
	}
	o.each(groupDropped, g.Drops, ip)
	live, lag := 0, 0
	for i := range g.Members {
		if m := &g.Members[i]; m.Live {
			live, lag = live+1, max(lag, m.Lag)
		}
	}
	o.put(groupMembers, float64(len(g.Members)), ip)
	o.put(groupLive, float64(live), ip)
	o.put(groupUnacked, float64(g.Unacknowledged()), ip)
	o.put(groupLag, float64(lag), ip)
	o.put(groupStalled, g.StallSeconds, ip)
	if g.WaitsFor.IsValid() && g.Unacknowledged() > 0 {
		o.put(groupWaitsFor, 1, ip, g.WaitsFor.String(), watch.PortOf(g, g.WaitsFor))
	}
	if g.SlowedBy.IsValid() {
		o.put(groupSlowedBy, 1, ip, g.SlowedBy.String(), watch.PortOf(g, g.SlowedBy), g.SlowCause)
	}
	if f := g.FastPath; f != nil {
		o.flag(groupFast, f.Way == api.WayFast, ip)
	}
}

// memberSeries is the most members of a group that have metrics of their own.
const memberSeries = 16

// members are those that cost the group most.
func (o out) members(g *api.Group) {
	ip := g.IP.String()
	list, leftOut := watch.Costliest(g, memberSeries)
	o.put(memberLeftOut, float64(leftOut), ip)
	for _, m := range list {
		c, who := m.Cost, m.IP.String()
		if m.Slow != "" {
			o.put(memberSlow, 1, ip, who, m.Port, m.Slow)
		}
		o.put(memberWaited, c.Waited, ip, who)
		o.count(memberNAKs, c.NAKs, ip, who)
		o.count(memberRNRs, c.RNRNAKs, ip, who)
		o.count(memberRepaired, c.Repaired, ip, who)
		o.count(memberProbes, c.Probes, ip, who)
		if c.RTTp50 > 0 {
			o.put(memberRTT, c.RTTp50, ip, who)
			o.put(memberRTT99, c.RTTp99, ip, who)
		}
		o.put(memberLag, float64(m.Lag), ip, who)
	}
}
