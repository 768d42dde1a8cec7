// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// Bounds of a Trace, and its default rate.
const (
	MaxTraceSnap     = 8192
	MaxTraceRate     = 1_000_000
	DefaultTraceRate = 10_000
)

// Trace says which packets are recorded: those that fit all that is given. A packet that comes
// is recorded, too, if a copy of it fits.
type Trace struct {
	Group   netip.Addr   `json:"group,omitzero"`
	Members []netip.Addr `json:"members,omitempty"` // one of them has sent the packet, or gets it
	Ports   []string     `json:"ports,omitempty"`   // the packet comes or leaves by one of them
	PSNs    *PSNRange    `json:"psns,omitempty"`
	Opcodes []string     `json:"opcodes,omitempty"` // names such as write-middle or ack, or send, write or data for several
	Drops   bool         `json:"drops,omitempty"`   // only packets that are not served, and copies that are not sent
	Snap    int          `json:"snap,omitempty"`    // bytes of each packet; 0: headers only
	Rate    int          `json:"rate,omitempty"`    // packets a second that may come, with what they cause; 0: DefaultTraceRate
	Count   int          `json:"count,omitempty"`   // ends after this number of packets; 0: no bound
	Seconds float64      `json:"seconds,omitempty"` // ends after this time; 0: no bound
	Slow    bool         `json:"slow,omitempty"`    // true: Group is off the fast path as long as the trace runs
}

// PSNRange is a range of PSNs, both ends included. Last may be below First: the range goes over
// the end of the PSNs then.
type PSNRange struct {
	First PSN `json:"first"`
	Last  PSN `json:"last"`
}

// TraceLine is one line of the answer to a Trace, which is a JSON object a line. One field is
// set: Start in the first line, End in the last one.
type TraceLine struct {
	Start  *TraceStart  `json:"start,omitempty"`
	Packet *TracePacket `json:"packet,omitempty"`
	End    *TraceEnd    `json:"end,omitempty"`
}

// TraceStart says what a trace can see.
type TraceStart struct {
	Time    time.Time `json:"time"`
	Version string    `json:"version,omitempty"` // the version of gleamd
	Ports   []string  `json:"ports"`             // the ports that the switch has now
	Snap    int       `json:"snap"`              // bytes of each packet, as in Trace
	Notes   []string  `json:"notes"`             // what keeps packets from being seen
}

// Directions of a TracePacket.
const (
	TraceIn      = "in"       // a packet that came by the port
	TraceOut     = "out"      // a packet that was put into the port's egress queue
	TraceNotSent = "not-sent" // a copy for the port that was not
)

// TraceDirections are all of them.
var TraceDirections = []string{TraceIn, TraceOut, TraceNotSent}

// Kinds of a TracePacket.
const (
	TraceReceived = "received" // a packet as it came
	TraceCopy     = "copy"     // a copy of the packet that came last
	TraceRepair   = "repair"   // a copy of a packet in the repair store
	TraceOwn      = "own"      // a packet that the switch has made
)

// TracePacket is one recorded packet.
type TracePacket struct {
	Time      time.Time  `json:"time"`
	Port      string     `json:"port"` // empty: of a copy that is not sent as its port is not known
	Direction string     `json:"direction"`
	Kind      string     `json:"kind"`
	From      netip.Addr `json:"from,omitzero"`
	To        netip.Addr `json:"to,omitzero"`
	Opcode    string     `json:"opcode,omitempty"` // the opcode of a RoCEv2 packet, which has the next two fields as well
	PSN       *PSN       `json:"psn,omitempty"`
	QPN       *QPN       `json:"qpn,omitempty"`        // destination
	PSNBefore *PSN       `json:"psn_before,omitempty"` // the PSN of the packet that a copy is made of, as the next field has its QPN
	QPNBefore *QPN       `json:"qpn_before,omitempty"`
	Drop      string     `json:"drop,omitempty"`  // why it is not served, or not sent: a name of docs/COUNTERS.md
	Rules     []string   `json:"rules,omitempty"` // the rules of docs/AGGREGATION.md that apply
	Text      string     `json:"text"`            // what the switch has done, and why
	Length    int        `json:"length"`          // the length of the frame, without FCS
	Data      []byte     `json:"data"`            // its beginning
	Lost      uint64     `json:"lost,omitempty"`  // packets before it that were not recorded: no room, or beyond the rate
}

// TraceEnd is the sum of a trace.
type TraceEnd struct {
	Reason   string `json:"reason"` // count, time or stopped
	Packets  uint64 `json:"packets"`
	Lost     uint64 `json:"lost"`      // packets that were not recorded for lack of room: the reader was too slow
	OverRate uint64 `json:"over_rate"` // packets that were not recorded because they were beyond the rate

	Costs []TraceCost `json:"costs,omitempty"` // members' costs, of those that the group has in the end; absent: the trace was not of one group
}

// TraceCost is what a member has cost its group while a trace ran: counts and the time waited are
// those of the trace, round trips those that were measured lately.
type TraceCost struct {
	Member netip.Addr `json:"member"`
	Switch string     `json:"switch,omitempty"` // neighbour that the member is behind: its members share their costs
	Cost   Cost       `json:"cost"`
}

// Reasons of refusals: there is one trace at a time, and none runs.
const (
	ReasonTraceRuns = "trace_runs"
	ReasonNoTrace   = "no_trace"
)

// Tracer is what a Backend does to record packets.
type Tracer interface {
	// Trace begins a trace. The returned function, which must be called, passes its lines to emit
	// until t's bounds are reached, ctx ends, or emit fails, and ends the trace; more says that
	// the next line follows at once.
	Trace(t *Trace) (func(ctx context.Context, emit func(l *TraceLine, more bool) error) error, error)
	// StopTrace ends the running trace. Its reader gets what was recorded so far, and the end.
	StopTrace() error
}

// Validate returns an error that names what makes no sense in t, whatever the switch has.
func (t *Trace) Validate() error {
	for _, name := range t.Opcodes {
		if _, err := rocev2.ParseOpcodes(name); err != nil {
			return err
		}
	}
	switch p := t.PSNs; {
	case p != nil && max(p.First, p.Last) > PSN(rocev2.PSNMask):
		return fmt.Errorf("PSNs 0x%x to 0x%x: a PSN has 24 bits", p.First, p.Last)
	case t.Snap < 0 || t.Snap > MaxTraceSnap:
		return fmt.Errorf("snap length %d: want 0 (headers only) to %d bytes", t.Snap, MaxTraceSnap)
	case t.Rate < 0 || t.Rate > MaxTraceRate:
		return fmt.Errorf("rate %d: want 1 to %d packets a second, or 0 for %d", t.Rate, MaxTraceRate, DefaultTraceRate)
	case t.Count < 0:
		return fmt.Errorf("count %d: want 1 or more packets, or 0 for no bound", t.Count)
	case t.Seconds < 0 || t.Seconds > maxMS/1000:
		return fmt.Errorf("time %g s: want more than 0 and a day at most, or 0 for no bound", t.Seconds)
	case t.Slow && !t.Group.IsValid():
		return fmt.Errorf("slow needs a group, which is taken off the fast path")
	}
	return nil
}

func (t *Trace) summary() string {
	s := "trace packets"
	if len(t.Ports) > 0 {
		s += " of ports " + strings.Join(t.Ports, " ")
	}
	if t.Snap > 0 {
		s += fmt.Sprintf(", %d bytes of each", t.Snap)
	} else {
		s += ", headers only"
	}
	if t.Slow {
		s += ", off the fast path"
	}
	return s
}

// trace returns the answer as a stream.
func (h *handler) trace(r *http.Request, _ string) (any, error) {
	t := new(Trace)
	if err := decode(r.Body, t, "trace"); err != nil {
		return nil, refuse(http.StatusBadRequest, "%s", err)
	}
	if err := t.Validate(); err != nil {
		return nil, refuse(http.StatusBadRequest, "%s", err)
	}
	describe(r, t.Group, "%s", t.summary())
	if err := workOf(r).poll(); err != nil {
		return nil, err
	}
	run, err := h.backend.Trace(t)
	if err != nil {
		return nil, err
	}
	return stream(func(ctx context.Context, emit func(v any, more bool) error) error {
		return run(ctx, func(l *TraceLine, more bool) error { return emit(l, more) })
	}), nil
}

func (h *handler) stopTrace(r *http.Request, _ string) (any, error) {
	describe(r, netip.Addr{}, "stop the trace")
	return nil, h.backend.StopTrace()
}

// StopTrace ends the running trace, also that of another client.
func (c *Client) StopTrace(ctx context.Context) error {
	return c.call(ctx, http.MethodDelete, "/v1/trace", nil, nil)
}

// Trace has the daemon record packets, and passes each line of its answer to each until the
// trace ends or ctx does; more says that the next line is there already.
func (c *Client) Trace(ctx context.Context, t *Trace, each func(l *TraceLine, more bool) error) error {
	return callStream(ctx, c, "/v1/trace", t, each)
}
