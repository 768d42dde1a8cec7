// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/rocev2"
)

// Counter is what one counter counts.
type Counter struct {
	Name  string `json:"name"`
	Where string `json:"where"` // the commands that print it
	Class string `json:"class"` // CounterTotal, CounterNormal or CounterLoss
	Text  string `json:"text"`
}

// Classes of counters.
const (
	CounterTotal  = "total"  // a total, or a present value
	CounterNormal = "normal" // packets that the protocol does not need or brings again: healthy switches have them
	CounterLoss   = "loss"   // packets that were lost, or are a mistake, or an attack
)

// classTexts explain the classes.
var classTexts = map[string]string{
	CounterTotal:  "a total, or a present value",
	CounterNormal: "normal: the protocol has no further use for these, or brings them again by itself",
	CounterLoss:   "loss: these were lost or refused, or come from a mistake or an attack",
}

// totals are the counters of api.Stats that have no reason, in the order of gleam stats.
var totals = []struct {
	name  string                  // the name in JSON
	line  string                  // the line of gleam stats; empty: only in its JSON
	value func(*api.Stats) uint64 // the value of a line that is a number alone; else nil
	text  string
}{
	{"uptime", "uptime", nil, "seconds since gleamd has started"},
	{"groups", "groups", func(s *api.Stats) uint64 { return uint64(s.Groups) }, "groups that are registered"},
	{"rx", "data packets in", func(s *api.Stats) uint64 { return s.Rx }, "data packets of members that came, with repetitions and refused ones"},
	{"rx_bytes", "", nil, "bytes of payload of the data packets that came"},
	{"copies", "copies out", func(s *api.Stats) uint64 { return s.Copies }, "copies that went to receivers, those of the fast path and of the store included"},
	{"resent", "", nil, "of copies, those from packet memory: repairs (R43), packets that waited for a port (R51) and packets that were held (R96)"},
	{"psn_probes", "", nil, "keepalive probes, by which members show which PSN they expect (R52)"},
	{"ce_marked", "copies marked CE", func(s *api.Stats) uint64 { return s.CEMarked }, "copies that were marked for congestion, as the queue of their port was long"},
	{"feedback_in", "feedback in", func(s *api.Stats) uint64 { return s.FeedbackIn }, "ACKs, NAKs, RNR NAKs and CNPs of receivers"},
	{"feedback_out", "feedback out", func(s *api.Stats) uint64 { return s.FeedbackOut }, "ACKs, NAKs, RNR NAKs and CNPs to sources"},
	{"neighbour", "ARP and ND answers", func(s *api.Stats) uint64 { return s.Neighbour }, "answers to ARP requests and neighbour solicitations for group addresses, and announcements"},
	{"envelope_in", "envelopes in", func(s *api.Stats) uint64 { return s.EnvelopeIn }, "messages of the registration protocol that came"},
	{"envelope_partial", "  partial checksum", func(s *api.Stats) uint64 { return s.EnvelopePartial }, "envelopes whose UDP checksum the host has left to its interface, as hosts behind a veth do"},
	{"envelope_out", "envelopes out", func(s *api.Stats) uint64 { return s.EnvelopeOut }, "messages of the registration protocol that went out"},
	{"frames_free", "UMEM frames free", nil, "frames of packet memory that are free; near 0 new packets are dropped as no_frame"},
	{"frames", "UMEM frames free", nil, "frames of packet memory in all: umem.frames of the configuration"},
	{"epoch", "", nil, "the number of this start of gleamd: each later start has a higher one, and counters begin at 0"},
}

func explainCounterCommand(env *Env) *cobra.Command {
	var out output
	c := &cobra.Command{
		Use:   "counter NAME",
		Short: "What a counter counts, and whether it is normal or a loss",
		Long: `Says what a counter of gleam stats, gleam group show or gleam port show counts,
and whether it belongs to normal operation or is a loss. It asks no daemon;
docs/COUNTERS.md has the same texts.`,
		Example: `  gleam explain counter duplicate_data`,
		Args:    oneArg("the counter's name"),
		ValidArgsFunction: func(*cobra.Command, []string, string) (names []string, _ cobra.ShellCompDirective) {
			for _, k := range env.counters() {
				names = append(names, k.Name)
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			list, err := env.findCounters(args[0])
			if err != nil {
				return err
			}
			return out.print(env.Stdout, list, func(w io.Writer) {
				for i, k := range list {
					if i > 0 {
						fmt.Fprintln(w)
					}
					wrap(w, "counter", 10, k.Name)
					wrap(w, "in", 10, k.Where)
					wrap(w, "class", 10, classTexts[k.Class])
					wrap(w, "counts", 10, plain(k.Text))
				}
			})
		},
	}
	out.addTo(c)
	return c
}

// counters returns all counters.
func (e *Env) counters() (list []Counter) {
	for _, t := range totals {
		k := Counter{Name: t.name, Where: "gleam stats", Class: CounterTotal, Text: t.text}
		if line := strings.TrimSpace(t.line); line == "" {
			k.Where += " -o json"
		} else if line != t.name {
			k.Where += " (" + line + ")"
		}
		list = append(list, k)
	}
	if e.Counters != nil {
		list = append(list, e.Counters()...)
	}
	return list
}

// findCounters returns the counters of a name: a reason may be one of workers and of XDP.
func (e *Env) findCounters(name string) (found []Counter, err error) {
	want := strings.ToLower(strings.ReplaceAll(name, "-", "_"))
	var near []string
	for _, k := range e.counters() {
		if k.Name == want {
			found = append(found, k)
		} else if strings.Contains(k.Name, want) && !slices.Contains(near, k.Name) {
			near = append(near, k.Name)
		}
	}
	switch {
	case len(found) != 0:
		return found, nil
	case len(near) != 0:
		slices.Sort(near)
		return nil, fmt.Errorf("no counter has the name %s: is it %s?", name, strings.Join(near, " or "))
	}
	return nil, fmt.Errorf("no counter has the name %s: gleam stats and docs/COUNTERS.md have the names", name)
}

// nakMeaning is what a syndrome means that goes to a source, or comes from a receiver.
type nakMeaning struct {
	Syndrome uint8  `json:"syndrome"`
	Name     string `json:"name"`
	Text     string `json:"text"`
	Status   int    `json:"status,omitempty"` // the status of the source's work request, if it gets it; 0: none
}

// fatalNAKs are the NAKs that end a work request.
var fatalNAKs = map[rocev2.Syndrome]nakMeaning{
	rocev2.SyndromeNAKInvalid: {Name: "invalid request", Status: 9, Text: "the receiver cannot execute the request, or the switch has refused it (READ, ATOMIC, a payload that does not fit)"},
	rocev2.SyndromeNAKAccess:  {Name: "remote access error", Status: 10, Text: "address or R_Key are not those of the receiver's memory, or not within the group's window; or the sender is registered to receive only"},
	rocev2.SyndromeNAKOpErr:   {Name: "remote operational error", Status: 11, Text: "the receiver has failed by itself; or the switch says that the group has failed, has fewer receivers than its quorum, or was deleted"},
}

// meaningOfSyndrome explains a syndrome of AETH.
func meaningOfSyndrome(s rocev2.Syndrome) nakMeaning {
	m := nakMeaning{Syndrome: uint8(s)}
	switch s.Kind() {
	case rocev2.KindACK:
		m.Name, m.Text = "ACK", "all up to its PSN is acknowledged"
		if n, limited := s.Credits(); limited {
			m.Text += fmt.Sprintf("; it grants %d messages, which the switch does not pass on (R20)", n)
		} else {
			m.Text += "; credits are not limited, as in all ACKs of the switch (R20)"
		}
	case rocev2.KindRNR:
		m.Name, m.Text = "RNR NAK", fmt.Sprintf("no receive is posted at a receiver, or another member has its turn: the packet is to be sent again after %v (R19, R46, R66)", s.RNRCode().Duration())
	case rocev2.KindSequence:
		m.Name, m.Text = "sequence NAK", "packets from its PSN on are missing: they are to be sent again; all before it is acknowledged (R07, R14, R43)"
	case rocev2.KindFatal:
		f := fatalNAKs[s]
		m.Name, m.Text, m.Status = f.Name, f.Text+" (R25, R26)", f.Status
	default:
		m.Name, m.Text = "reserved", "the standard reserves it; between switches 0x41 to 0x5f are selective NAKs, which name missing packets (R106)"
	}
	return m
}

func explainNAKCommand(env *Env) *cobra.Command {
	var out output
	c := &cobra.Command{
		Use:     "nak SYNDROME",
		Aliases: []string{"syndrome"},
		Short:   "What the syndrome of an acknowledgement means",
		Long: `Says what the syndrome of an acknowledgement (ACK, NAK or RNR NAK) means with a
group, and with which status the sender's work request ends, if it does. It asks
no daemon.`,
		Example: `  gleam explain nak 0x62`,
		Args:    oneArg("the syndrome, such as 0x60"), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(_ *cobra.Command, args []string) error {
			v, err := strconv.ParseUint(args[0], 0, 8)
			if err != nil {
				return UsageErrorf("syndrome %q: want a number of 8 bits, such as 0x60", args[0])
			}
			m := meaningOfSyndrome(rocev2.Syndrome(v))
			return out.print(env.Stdout, m, func(w io.Writer) { writeNAK(w, &m) })
		},
	}
	out.addTo(c)
	return c
}

func writeNAK(w io.Writer, m *nakMeaning) {
	wrap(w, "syndrome", 10, fmt.Sprintf("0x%02x, %s", m.Syndrome, m.Name))
	wrap(w, "means", 10, m.Text)
	if m.Status != 0 {
		wrap(w, "status", 10, fmt.Sprintf("%d at the sender: gleam explain status %d", m.Status, m.Status))
	}
	fmt.Fprintln(w, rulesNote)
}
