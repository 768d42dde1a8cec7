// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"time"

	"github.com/spf13/cobra"

	"github.com/gleam-rdma/gleam/envelope/cm"
	"github.com/gleam-rdma/gleam/rocev2"
)

// decoded is one management datagram of a capture.
type decoded struct {
	Time     time.Time  `json:"time"`
	From     netip.Addr `json:"from"`
	To       netip.Addr `json:"to"`
	Message  string     `json:"message,omitempty"`
	LocalID  uint32     `json:"local_id"`
	RemoteID uint32     `json:"remote_id"`
	Detail   string     `json:"detail,omitempty"`
	Refused  string     `json:"refused,omitempty"` // the reason why it is no message
}

func decodeCommand(env *Env) *cobra.Command {
	var out output
	c := &cobra.Command{
		Use:   "decode FILE",
		Short: "The messages of RDMA-CM in a capture",
		Long: `Prints the messages of the RDMA communication manager, by which hosts connect
their queue pairs, that are in a capture: pcap or pcapng, as tcpdump -w, Wireshark, dumpcap and gleam
trace -w write them, also compressed by gzip; - reads standard input. Other frames
are counted. It asks no daemon.`,
		Example: `  tcpdump -i eth0 -w cm.pcap udp port 4791
  gleam decode cm.pcap`,
		Args: oneFile,
		RunE: func(_ *cobra.Command, args []string) error {
			f, err := openInput(args[0])
			if err != nil {
				return err
			}
			defer f.Close()
			list, others, ends := decodeCapture(f)
			if list == nil {
				return fmt.Errorf("%s: %w", args[0], ends)
			}
			fmt.Fprintf(env.Stderr, "%d messages of RDMA-CM, %d other frames\n", len(list), others)
			if err := out.print(env.Stdout, list, func(w io.Writer) { decodedTable(w, list) }); err != nil || ends == nil {
				return err
			}
			ends = fmt.Errorf("%s: %w", args[0], ends)
			if errors.As(ends, new(cutError)) {
				fmt.Fprintf(env.Stderr, "gleam: %s\n", ends)
				return nil
			}
			return ends
		},
	}
	out.addTo(c)
	return c
}

func oneFile(c *cobra.Command, args []string) error {
	if len(args) != 1 {
		return usageError{fmt.Errorf("%s takes one argument, a capture; %d are given", c.CommandPath(), len(args))}
	}
	return nil
}

// decodeCapture returns the management datagrams of a capture, nil if it is none, the number of
// other frames, and the error that ended it before its end. What came before is returned with it.
func decodeCapture(r io.Reader) (list []decoded, others int, err error) {
	c, err := openCapture(r)
	if err != nil {
		return nil, 0, err
	}
	list = []decoded{}
	var foreign error
	var f rocev2.Frame
	var m cm.Message
	for {
		x, err := c.next()
		switch {
		case errors.Is(err, io.EOF) && foreign != nil && len(list) == 0:
			return nil, others, foreign
		case errors.Is(err, io.EOF):
			return list, others, nil
		case err != nil:
			return list, others, err
		case x.foreign != nil:
			foreign = fmt.Errorf("frame %d: %w", x.number, x.foreign)
			others++
			continue
		}
		if rocev2.Decode(append(x.data, x.lacking()...), &f) != rocev2.OK || f.Kind != rocev2.KindMAD {
			others++
			continue
		}
		d := decoded{Time: x.at, From: f.Src(), To: f.Dst()}
		switch r := cm.Decode(f.MAD(), &m); {
		case x.missing > 0:
			d.Refused = fmt.Sprintf("the capture lacks %d bytes of it: capture whole frames, by tcpdump -s 0 or gleam trace --snap 8192", x.missing)
		case !f.VerifyMAD():
			d.Refused = "bad_icrc"
		case r != cm.OK:
			d.Refused = r.String()
		default:
			d.Message, d.LocalID, d.RemoteID, d.Detail = m.Attribute.String(), uint32(m.LocalID), uint32(m.RemoteID), m.Detail()
		}
		list = append(list, d)
	}
}

func decodedTable(w io.Writer, list []decoded) {
	fmt.Fprintln(w, "TIME\tFROM\tTO\tMESSAGE\tLOCAL ID\tREMOTE ID\tDETAIL")
	for i := range list {
		d := &list[i]
		at := d.Time.Format("15:04:05.000000")
		if d.Refused != "" {
			fmt.Fprintf(w, "%s\t%s\t%s\t-\t-\t-\trefused: %s\n", at, d.From, d.To, d.Refused)
			continue
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%08x\t%08x\t%s\n", at, d.From, d.To, d.Message, d.LocalID, d.RemoteID, d.Detail)
	}
}
