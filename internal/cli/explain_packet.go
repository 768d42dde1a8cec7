// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/rocev2"
)

// packetFlags are the flags that describe a packet.
type packetFlags struct {
	from, op, port        string
	psn, qpn, va, rkey    string
	payload, dmaLen       string
	syndrome, msn         string
	ackReq, becn, badICRC bool

	pcap  string
	frame int
	hex   string
	all   bool
}

func explainPacketCommand(env *Env) *cobra.Command {
	var out output
	var f packetFlags
	c := &cobra.Command{
		Use:   "packet [GROUP]",
		Short: "What the switch would do to a packet, rule by rule",
		Long: `Puts a packet to a copy of the group's present state, and says rule by rule what
the switch would do to it and why, and what would leave with which fields. Nothing
is sent, and the group itself does not change.

The packet is given by flags, as a frame of a capture, or in hexadecimal from the
Ethernet header on. A capture is pcap or pcapng, as tcpdump -w, Wireshark and dumpcap
write them at a host (ports of the switch do not show group traffic), or as gleam
trace -w does at the switch, also compressed by gzip. Without --frame it is the first
frame that is a packet of a queue pair, to GROUP if that is given. With a frame, GROUP
is its destination. Fields that are not given follow from the group: the sender's next
PSN, the window's address and R_Key, the group's QPN. Numbers are decimal, or
hexadecimal after 0x. Only users who may change groups may name an R_Key.`,
		Example: `  gleam explain packet 10.77.254.1 --from 10.77.0.1 --op write-middle --psn 0x10
  gleam explain packet 10.77.254.1 --from 10.77.0.2 --op acknowledge --syndrome 0x60
  gleam explain packet --pcap host.pcapng --frame 3`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 && (f.pcap != "" || f.hex != "") {
				return nil
			}
			return oneGroup(c, args)
		},
		ValidArgsFunction: env.completeGroups,
		RunE: func(c *cobra.Command, args []string) error {
			var group netip.Addr
			if len(args) == 1 {
				group = netip.MustParseAddr(args[0]).Unmap() // oneGroup has parsed it
			}
			p, to, note, err := f.packet(os.Stdin, group)
			if err != nil {
				return err
			}
			if note != "" {
				fmt.Fprintln(env.Stderr, note)
			}
			if to.IsValid() {
				if group.IsValid() && group != to {
					return fmt.Errorf("the frame is for %s, and the group is %s", to, group)
				}
				group = to
			}
			x, err := env.client().Explain(c.Context(), group, p)
			var refused *api.Error
			if errors.As(err, &refused) && refused.Reason == api.ReasonForbidden && p.RKey != nil && f.rkey == "" {
				p.RKey = nil
				fmt.Fprintln(env.Stderr, "the frame's R_Key is replaced by the group's: naming an R_Key needs the right to change groups")
				x, err = env.client().Explain(c.Context(), group, p)
			}
			if err != nil {
				return err
			}
			return out.print(env.Stdout, x, func(w io.Writer) { writeExplanation(w, x, f.all) })
		},
	}
	s := c.Flags()
	s.StringVar(&f.from, "from", "", "`address` of the member that sends it")
	s.StringVar(&f.op, "op", "", "`opcode`, such as write-middle, send-only, acknowledge, cnp")
	s.StringVar(&f.psn, "psn", "", "packet sequence `number`")
	s.StringVar(&f.port, "port", "", "`port` by which it comes (default: where its sender is)")
	s.StringVar(&f.qpn, "qpn", "", "destination QPN, a `number`")
	s.StringVar(&f.payload, "payload", "", "`bytes` of payload")
	s.StringVar(&f.va, "va", "", "virtual address of a WRITE, a `number`")
	s.StringVar(&f.rkey, "rkey", "", "R_Key, a `number`")
	s.StringVar(&f.dmaLen, "dma-len", "", "length of a WRITE, in `bytes`")
	s.StringVar(&f.syndrome, "syndrome", "", "syndrome of an acknowledgement, a `number`: 0x1f ACK, 0x60 to 0x63 NAK, 0x20 to 0x3f RNR NAK")
	s.StringVar(&f.msn, "msn", "", "message sequence `number` of an acknowledgement")
	s.BoolVar(&f.ackReq, "ack-req", false, "it asks for an acknowledgement")
	s.BoolVar(&f.becn, "becn", false, "it has BECN")
	s.BoolVar(&f.badICRC, "bad-icrc", false, "it was damaged: its ICRC is wrong")
	s.StringVar(&f.pcap, "pcap", "", "take it from this capture, a `file`; - reads it from standard input")
	s.IntVar(&f.frame, "frame", 0, "`number` of the frame in the capture, from 1 (default: the first packet of a queue pair)")
	s.StringVar(&f.hex, "hex", "", "take it from these hexadecimal `digits`; - reads them from standard input")
	s.BoolVar(&f.all, "all", false, "show all copies, not the first 16")
	c.RegisterFlagCompletionFunc("op", cobra.FixedCompletions(rocev2.OpcodeNames(), cobra.ShellCompDirectiveNoFileComp))
	out.addTo(c)
	return c
}

// packet returns the packet that the flags describe; for a frame also the group that it is for, and
// what is to be said about it. A frame of a capture that is not given by number is the first for
// wanted, or for any address if that is invalid.
func (f *packetFlags) packet(stdin io.Reader, wanted netip.Addr) (p *api.ExplainPacket, group netip.Addr, note string, err error) {
	switch {
	case f.pcap != "" && f.hex != "", f.from != "" && f.pcap+f.hex != "":
		return nil, group, "", UsageErrorf("a packet is given once: by --from and --op, by --pcap, or by --hex")
	case f.pcap != "":
		file, err := openInput(f.pcap)
		if err != nil {
			return nil, group, "", err
		}
		defer file.Close()
		if p, group, note, err = packetOfCapture(file, f.frame, wanted); err != nil {
			return nil, group, "", fmt.Errorf("%s: %w", f.pcap, err)
		}
		return p, group, note, f.given(p)
	case f.hex != "":
		b, err := parseHex(f.hex, stdin)
		if err == nil {
			p, group, err = packetOfFrame(b, nil)
		}
		if err != nil {
			return nil, group, "", err
		}
		return p, group, "", f.given(p)
	}
	p, err = f.fields()
	return p, group, "", err
}

// given applies the flags that go with a frame.
func (f *packetFlags) given(p *api.ExplainPacket) error {
	p.Port = f.port
	if p.BadICRC = p.BadICRC || f.badICRC; f.op+f.psn+f.qpn+f.payload+f.va+f.rkey+f.dmaLen+f.syndrome+f.msn != "" || f.ackReq || f.becn {
		return UsageErrorf("a frame has all its fields: beside it there are --port and --bad-icrc only")
	}
	return nil
}

// fields returns the packet that flags for its fields describe.
func (f *packetFlags) fields() (*api.ExplainPacket, error) {
	if f.from == "" || f.op == "" {
		return nil, UsageErrorf("which packet? --from has the address of the member that sends it, --op its opcode; or give a frame by --pcap or --hex")
	}
	from, err := parseAddr("member address", f.from)
	if err != nil {
		return nil, err
	}
	if _, err := rocev2.ParseOpcode(f.op); err != nil {
		return nil, UsageErrorf("--op: %s", err)
	}
	p := &api.ExplainPacket{From: from.Unmap(), Op: f.op, Port: f.port, AckReq: f.ackReq, BECN: f.becn, BadICRC: f.badICRC}
	for _, n := range []struct {
		flag, text string
		bits       int
		set        func(uint64)
	}{
		{"psn", f.psn, 24, func(v uint64) { p.PSN = new(uint32(v)) }},
		{"qpn", f.qpn, 24, func(v uint64) { p.QPN = new(uint32(v)) }},
		{"payload", f.payload, 16, func(v uint64) { p.Payload = new(uint16(v)) }},
		{"va", f.va, 64, func(v uint64) { p.VA = new(v) }},
		{"rkey", f.rkey, 32, func(v uint64) { p.RKey = new(uint32(v)) }},
		{"dma-len", f.dmaLen, 32, func(v uint64) { p.DMALen = new(uint32(v)) }},
		{"syndrome", f.syndrome, 8, func(v uint64) { p.Syndrome = new(uint8(v)) }},
		{"msn", f.msn, 24, func(v uint64) { p.MSN = new(uint32(v)) }},
	} {
		if n.text == "" {
			continue
		}
		v, err := strconv.ParseUint(n.text, 0, n.bits)
		if err != nil {
			return nil, UsageErrorf("--%s %q: want a number of at most %d bits, such as 16 or 0x10", n.flag, n.text, n.bits)
		}
		n.set(v)
	}
	return p, nil
}

// maxHex bounds the text of a frame in hexadecimal.
const maxHex = 64 << 10

// parseHex reads hexadecimal digits, with spaces, line ends and colons between them.
func parseHex(text string, stdin io.Reader) ([]byte, error) {
	if text == "-" {
		b, err := io.ReadAll(io.LimitReader(stdin, maxHex+1))
		if err != nil {
			return nil, err
		}
		text = string(b)
	}
	if len(text) > maxHex {
		return nil, fmt.Errorf("the hexadecimal digits are more than %d bytes", maxHex)
	}
	b, err := hex.DecodeString(strings.NewReplacer("\ufeff", "", " ", "", "\n", "", "\r", "", "\t", "", ":", "").Replace(strings.TrimPrefix(strings.TrimSpace(text), "0x")))
	if err != nil {
		return nil, UsageErrorf("--hex: %s", strings.TrimPrefix(err.Error(), "encoding/hex: "))
	}
	return b, nil
}

// shownCopies is how many packets that would leave are shown without --all.
const shownCopies = 16

func writeExplanation(w io.Writer, x *api.Explanation, all bool) {
	p := &x.Packet
	text := fmt.Sprintf("%s of %s", p.Op, p.From)
	if p.Port != "" {
		text += " by port " + p.Port
	}
	text += fmt.Sprintf(", PSN %s, to QPN %s, %d bytes of payload", number24(p.PSN), number24(p.QPN), p.Payload)
	if p.DMALen != 0 {
		text += fmt.Sprintf(", %d bytes from address 0x%x on", p.DMALen, p.VA)
	}
	if p.Syndrome != 0 {
		text += fmt.Sprintf(", syndrome 0x%02x", p.Syndrome)
	}
	for _, f := range []struct {
		is   bool
		name string
	}{{p.AckReq, "AckReq"}, {p.BECN, "BECN"}, {p.BadICRC, "wrong ICRC"}} {
		if f.is {
			text += ", " + f.name
		}
	}
	verdict := x.Verdict
	if x.Reason != "" {
		verdict += ", reason " + x.Reason
	}
	wrap(w, "group", 10, fmt.Sprintf("%s: %s", x.Group, stateText(&x.Before)))
	wrap(w, "packet", 10, text)
	wrap(w, "verdict", 10, verdict)
	fmt.Fprintln(w)
	steps := x.Steps
	if most := 4 * shownCopies; !all && len(steps) > most {
		writeSteps(w, "", steps[:most])
		fmt.Fprintf(w, "%-13s... and %d more: --all shows them\n", "", len(steps)-most)
	} else {
		writeSteps(w, "", steps)
	}
	if len(x.Sent) != 0 {
		fmt.Fprintln(w)
		writeSent(w, x.Sent, all)
	}
	fmt.Fprintln(w)
	wrap(w, "after", 10, stateText(&x.After))
	fmt.Fprintln(w, rulesNote)
}

// writeSent writes the table of packets that would leave.
func writeSent(w io.Writer, sent []api.ExplainedSend, all bool) {
	fmt.Fprintln(w, "LEAVES\tTO\tPORT\tPSN\tQPN\tFIELDS")
	for i := range sent {
		if i == shownCopies && !all {
			fmt.Fprintf(w, "... and %d more: --all shows them\n", len(sent)-i)
			break
		}
		s := &sent[i]
		to := addrText(s.Member)
		if s.Switch != "" {
			to = s.Switch
		}
		kind := s.Kind
		if s.FastPath {
			kind += " (XDP)"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", kind, to, text(s.Port), number24(s.PSN), optionalQPN(s), fieldsText(s))
	}
}

func optionalQPN(s *api.ExplainedSend) string {
	if s.QPN == 0 {
		return "-"
	}
	return number24(s.QPN)
}

// fieldsText shows the other fields of a packet that would leave.
func fieldsText(s *api.ExplainedSend) string {
	var list []string
	add := func(is bool, format string, args ...any) {
		if is {
			list = append(list, fmt.Sprintf(format, args...))
		}
	}
	add(s.Lost != "", "LOST: %s", s.Lost)
	if s.Syndrome != nil {
		add(true, "syndrome 0x%02x MSN %d", *s.Syndrome, s.MSN)
	}
	add(s.VA != 0, "VA 0x%x", s.VA)
	add(s.AckReq, "AckReq")
	add(s.BECN, "BECN")
	add(s.DstMAC != "", "MAC %s", s.DstMAC)
	add(s.VLAN != 0, "VLAN %d", s.VLAN)
	if len(list) == 0 {
		return "-"
	}
	return strings.Join(list, ", ")
}
