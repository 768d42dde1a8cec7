// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/internal/cli/terminal"
	"github.com/gleam-rdma/gleam/rocev2"
)

// traceOptions are the flags of gleam trace.
type traceOptions struct {
	members, opcodes []string
	psn              string
	duration         time.Duration
	file             traceFile
	stop             bool
	request          api.Trace
	out              output
}

func traceCommand(env *Env) *cobra.Command {
	o := &traceOptions{}
	c := &cobra.Command{
		Use:   "trace [GROUP]",
		Short: "Packets of a group or port, before and after the switch has rewritten them",
		Long: `Records packets as they come to the switch and as they leave it, with what the switch
has done to each and why. Without -w it prints a line for each packet. With -w it
writes a pcapng file: each port is three interfaces, PORT in, PORT out and PORT
not-sent, and rules and reasons are packet comments. Without GROUP it records the
packets of all groups. Headers are recorded alone, unless --snap asks for more.
In the end it says what each member of GROUP has cost the group meanwhile.

A packet that comes is recorded if it fits the filters, or if a copy of it does.
There is one trace at a time, for users who may change the switch.

Copies that XDP programs make (the fast path) are not seen: --slow takes GROUP off
the fast path as long as the trace runs. docs/TRACE.md says more.`,
		Example: `  gleam trace 10.77.254.1
  gleam trace 10.77.254.1 --drops
  gleam trace 10.77.254.1 --member 10.77.0.2 --psn 0x10-0x20 --count 100
  gleam trace --port eth1 -w - | tshark -r -
  gleam trace 10.77.254.1 -w ring.pcapng --ring 10 --ring-size 100`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return oneGroup(c, args)
		},
		RunE: func(c *cobra.Command, args []string) error {
			if o.stop {
				return env.client().StopTrace(c.Context())
			}
			if err := o.resolve(args); err != nil {
				return err
			}
			return env.trace(c.Context(), o)
		},
	}
	f := c.Flags()
	f.StringSliceVarP(&o.members, "member", "m", nil, "address of a member that sends or gets the packet; may be repeated")
	f.StringSliceVarP(&o.request.Ports, "port", "p", nil, "port by which the packet comes or leaves; may be repeated")
	f.StringVar(&o.psn, "psn", "", "PSN, or range of PSNs such as 0x10-0x20, as the source or the receiver numbers")
	f.StringSliceVar(&o.opcodes, "op", nil, "opcodes, such as write-middle, ack, cnp, or data for all that a source sends")
	f.BoolVar(&o.request.Drops, "drops", false, "only packets that were not served, and copies that were not sent")
	f.IntVarP(&o.request.Snap, "snap", "s", 0, "bytes of each packet; 0: its headers alone")
	f.IntVar(&o.request.Rate, "rate", api.DefaultTraceRate, "packets a second that may come, each with what it causes; others are counted")
	f.IntVarP(&o.request.Count, "count", "c", 0, "end after this number of packets; 0: do not")
	f.DurationVarP(&o.duration, "duration", "d", 0, "end after this time; 0: do not")
	f.BoolVar(&o.request.Slow, "slow", false, "take GROUP off the fast path as long as the trace runs")
	f.StringVarP(&o.file.name, "write", "w", "", "write pcapng to this file; -: to standard output")
	f.IntVar(&o.file.ring, "ring", 0, "with -w: several files FILE-000001 and so on, of which this many newest ones stay")
	f.IntVar(&o.file.size, "ring-size", 100, "with --ring: MB of each file")
	o.out.addTo(c)
	f.BoolVar(&o.stop, "stop", false, "end the running trace, also that of another user")
	c.RegisterFlagCompletionFunc("op", cobra.FixedCompletions(append(rocev2.OpcodeNames(), "ack", "data", "send", "write"), cobra.ShellCompDirectiveNoFileComp))
	return c
}

// resolve makes the request of the flags.
func (o *traceOptions) resolve(args []string) error {
	t := &o.request
	if len(args) == 1 {
		t.Group = netip.MustParseAddr(args[0])
	}
	for _, m := range o.members {
		ip, err := parseAddr("member address", m)
		if err != nil {
			return err
		}
		t.Members = append(t.Members, ip)
	}
	if o.psn != "" {
		r, err := parsePSNs(o.psn)
		if err != nil {
			return err
		}
		t.PSNs = r
	}
	t.Opcodes, t.Seconds = o.opcodes, o.duration.Seconds()
	if err := t.Validate(); err != nil {
		return UsageErrorf("%s", err)
	}
	switch {
	case o.file.name == "" && o.file.ring != 0:
		return UsageErrorf("--ring needs -w FILE")
	case o.file.name == "-" && o.file.ring != 0:
		return UsageErrorf("--ring needs files: it cannot be standard output")
	case o.file.ring < 0 || o.file.ring == 1 || o.file.size < 1:
		return UsageErrorf("--ring wants 2 files or more, --ring-size 1 MB or more")
	case o.file.name != "" && !o.out.isText():
		return UsageErrorf("-w writes pcapng: it does not go with -o %s", o.out.format)
	}
	return nil
}

// parsePSNs parses a PSN, or two with a hyphen between them.
func parsePSNs(s string) (*api.PSNRange, error) {
	first, last, found := strings.Cut(s, "-")
	if !found {
		last = first
	}
	a, err := strconv.ParseUint(first, 0, 24)
	b, err2 := strconv.ParseUint(last, 0, 24)
	if errors.Join(err, err2) != nil {
		return nil, UsageErrorf("PSNs %q: want a number of 24 bits such as 0x10, or two such as 0x10-0x20", s)
	}
	return &api.PSNRange{First: api.PSN(a), Last: api.PSN(b)}, nil
}

// traceSink takes the lines of a trace.
type traceSink interface {
	start(*api.TraceStart) error
	packet(p *api.TracePacket, more bool) error
	end(sum *api.TraceEnd) error // nil: the trace was cut off
}

func (e *Env) trace(ctx context.Context, o *traceOptions) error {
	client := e.client()
	defer client.Close()
	var sink traceSink = &traceText{w: e.Stdout, out: &o.out}
	if o.file.name != "" {
		o.file.stdout = terminal.Raw(e.Stdout)
		sink = &o.file
	}
	begun := false
	var ended *api.TraceEnd
	reading, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	var silence atomic.Pointer[time.Timer] // the end of the call if nothing comes any more, once the trace is stopped
	defer context.AfterFunc(ctx, func() {
		if stopTrace(client) != nil {
			cancel()
			return
		}
		silence.Store(time.AfterFunc(stopPatience, cancel))
	})()
	err := client.Trace(reading, &o.request, func(l *api.TraceLine, more bool) error {
		if t := silence.Load(); t != nil {
			t.Reset(stopPatience)
		}
		switch {
		case l.Start != nil:
			begun = true
			for _, n := range l.Start.Notes {
				fmt.Fprintf(e.Stderr, "gleam: %s\n", n)
			}
			return sink.start(l.Start)
		case l.Packet != nil:
			return sink.packet(l.Packet, more)
		case l.End != nil:
			ended = l.End
			return e.printTraceSum(l.End)
		}
		return nil
	})
	if begun {
		err = errors.Join(err, sink.end(ended))
	}
	if err == nil && ended == nil {
		return errors.New("gleamd has ended the trace: it stops, or this reader took nothing for 15 s")
	}
	return err
}

// stopPatience is how long gleamd may take to stop a trace, and how long nothing may come of one that is stopped.
const stopPatience = 2 * time.Second

// stopTrace ends the trace of this command, so that what was recorded before comes.
func stopTrace(client *api.Client) error {
	ctx, done := context.WithTimeout(context.Background(), stopPatience)
	defer done()
	return client.StopTrace(ctx)
}

// printTraceSum says what a trace has recorded, and what members have cost its group meanwhile.
func (e *Env) printTraceSum(end *api.TraceEnd) error {
	fmt.Fprintln(e.Stderr, traceSum(end))
	if len(end.Costs) == 0 {
		return nil
	}
	var table bytes.Buffer
	traceCostTable(&table, end.Costs)
	return writeTable(e.Stderr, table.String(), columnsOf(e.Stderr))
}

// traceSum says what a trace has recorded.
func traceSum(end *api.TraceEnd) string {
	s := fmt.Sprintf("%d packets", end.Packets)
	if end.Lost > 0 {
		s += fmt.Sprintf(", %d not recorded for lack of room (a narrower filter, or a faster reader, helps)", end.Lost)
	}
	if end.OverRate > 0 {
		s += fmt.Sprintf(", %d beyond --rate", end.OverRate)
	}
	return s
}

// traceText prints a line for each packet, or as -o says.
type traceText struct {
	w    io.Writer
	out  *output
	port int // width of the widest port
}

func (t *traceText) start(s *api.TraceStart) error {
	for _, p := range s.Ports {
		t.port = max(t.port, len(p))
	}
	return nil
}

func (t *traceText) packet(p *api.TracePacket, _ bool) error {
	if p.Lost > 0 && t.out.isText() {
		if _, err := fmt.Fprintf(t.w, "(%d packets not recorded)\n", p.Lost); err != nil {
			return err
		}
	}
	return t.out.printLine(t.w, p, fmt.Sprintf("%s %-*s %-8s %s > %s %s%s", p.Time.Local().Format("15:04:05.000000"), t.port, text(p.Port), p.Direction, addrText(p.From), addrText(p.To), packetName(p), comment(p)))
}

// end prints the last line of the API's answer, in formats for programs.
func (t *traceText) end(sum *api.TraceEnd) error {
	if sum == nil || t.out.isText() {
		return nil
	}
	return t.out.printLine(t.w, &api.TraceLine{End: sum}, "")
}

// packetName is a packet's opcode with its numbers.
func packetName(p *api.TracePacket) string {
	if p.Opcode == "" || p.PSN == nil || p.QPN == nil {
		return ""
	}
	return fmt.Sprintf("%s psn %s qp %s: ", p.Opcode, number24(*p.PSN), number24(*p.QPN))
}

// comment is what the switch has done to a packet, with the rules.
func comment(p *api.TracePacket) string {
	if len(p.Rules) == 0 {
		return p.Text
	}
	rules := slices.Clone(p.Rules)
	return fmt.Sprintf("%s [%s]", p.Text, strings.Join(rules, " "))
}
