// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/mcast"
)

// Result has the demo's measurements; its JSON is the output of -o json.
type Result struct {
	OK           bool    `json:"ok"` // every receiver has the source's bytes, by the group and by unicast
	PayloadBytes int64   `json:"payload_bytes"`
	SHA256       string  `json:"sha256"`
	Op           string  `json:"op"`
	MessageSize  int64   `json:"message_size"`
	PathMTU      int     `json:"path_mtu"`
	Members      int     `json:"members"`
	Loss         float64 `json:"loss"`
	Group        string  `json:"group"`
	FastPath     bool    `json:"fast_path,omitempty"` // true: the fast path is on

	Receivers      []Receiver      `json:"receivers"`
	Killed         *Killed         `json:"killed,omitempty"`          // the killed receiver, with --kill-member
	TargetMessages *TargetMessages `json:"target_messages,omitempty"` // the cost of target messages, with --targets
	Turns          []SourceTurn    `json:"turns,omitempty"`           // the turns, with --rotate; the counts below are then of all of them
	Seconds        float64         `json:"seconds"`                   // the time from the first post to the last completion at the sender
	Messages       int             `json:"messages"`                  // completions at the sender, one each

	SenderLinkBytes     int64  `json:"sender_link_bytes"` // frames on the sender's link, both ways' headers included, out only
	SenderRetransmitted uint64 `json:"sender_retransmitted_packets"`
	Switch              Switch `json:"switch"`
	// Repair is gleamd's local repair of losses; nil with --repair=false, and if the
	// group has failed.
	Repair                 *api.Repair `json:"repair,omitempty"`
	Unicast                Unicast     `json:"unicast"` // zero with --rotate
	UnicastSenderLinkBytes int64       `json:"unicast_sender_link_bytes"`

	Tree         *Tree         `json:"tree,omitempty"`         // the tree, with --topology; Switch is then that of the source
	Disturbances []Disturbance `json:"disturbances,omitempty"` // the disturbances in mid-transfer

	Kept string `json:"kept,omitempty"` // name of the lab that was left up
	svg  string // the file with the picture of the tree
}

// Receiver is the result at one receiver.
type Receiver struct {
	Name    string  `json:"name"`
	IP      string  `json:"ip"`
	OK      bool    `json:"ok"`    // its bytes are the source's
	Bytes   int64   `json:"bytes"` // bytes that have arrived, by completions; for op write, that are right from the start on
	SHA256  string  `json:"sha256"`
	Seconds float64 `json:"seconds"` // the time until it had the last byte; for op write, which receivers cannot see, until the sender's completion
	Goodput float64 `json:"goodput"` // bytes per second
}

// Switch has gleamd's counts of the group transfer.
type Switch struct {
	Rx          uint64            `json:"rx"`                    // data packets in
	Copies      uint64            `json:"copies"`                // data packets out
	FastRx      uint64            `json:"fast_rx,omitempty"`     // packets of Rx that XDP replicated; with --fast-path
	FastReason  string            `json:"fast_reason,omitempty"` // why FastRx is 0, as `gleam group show` says it
	FeedbackIn  uint64            `json:"feedback_in"`
	FeedbackOut uint64            `json:"feedback_out"`
	Drops       map[string]uint64 `json:"drops"`
}

// Unicast is the same payload sent to every receiver by a queue pair of its own,
// over the same hosts, the switch's kernel bridging; with --topology to the last one alone.
type Unicast struct {
	OK      bool    `json:"ok"`
	Seconds float64 `json:"seconds"`
}

// writeTable writes r for people.
func (r *Result) writeTable(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	if r.Turns != nil {
		fmt.Fprintf(t, "\nTURN\tSOURCE\tSHA-256\tALL OTHERS SAME\tSECONDS\n")
		for i, v := range r.Turns {
			fmt.Fprintf(t, "%d\t%s\t%.16s…\t%s\t%.2f\n", i+1, v.Source, v.SHA256, yesNo(v.OK), v.Seconds)
		}
	}
	fmt.Fprintf(t, "\nRECEIVER\tADDRESS\tBYTES\tSHA-256\tSAME\tGOODPUT\n")
	for _, v := range r.Receivers {
		fmt.Fprintf(t, "%s\t%s\t%d\t%.16s…\t%s\t%s\n", v.Name, v.IP, v.Bytes, v.SHA256, yesNo(v.OK), rate(v.Goodput))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	s := &r.Switch
	fmt.Fprintf(t, "\nswitch\tdata in %d\tcopies out %d\tfeedback in %d\tfeedback out %d\n", s.Rx, s.Copies, s.FeedbackIn, s.FeedbackOut)
	if r.FastPath {
		behind := s.Drops[mcast.BehindGap.String()]
		fmt.Fprintf(t, "fast path\treplicated by XDP %d\tof the data in order %.1f %%\n", s.FastRx, 100*float64(s.FastRx)/float64(max(s.Rx-behind, 1)))
		if s.FastReason != "" {
			fmt.Fprintf(t, "\twhy\t%s\n", s.FastReason)
		}
	}
	if p := r.Repair; p != nil && p.Copies > 0 {
		fmt.Fprintf(t, "repaired\tNAKs answered %d\tcopies %d\tprobes %d\tmost retained %d KiB\n", p.NAKs, p.Copies, p.Probes, p.MaxRetainedBytes>>10)
	}
	if r.SenderRetransmitted > 0 {
		fmt.Fprintf(t, "sender\tsent again %d\n", r.SenderRetransmitted)
	}
	if len(s.Drops) > 0 {
		fmt.Fprintf(t, "not forwarded\t")
		for _, name := range slices.Sorted(maps.Keys(s.Drops)) {
			fmt.Fprintf(t, "%s %d\t", name, s.Drops[name])
		}
		fmt.Fprintln(t)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(t, "\nSENDER'S LINK\tBYTES\tOF PAYLOAD\tSECONDS\n")
	fmt.Fprintf(t, "one group\t%d\t%s\t%.2f\n", r.SenderLinkBytes, ratio(r.SenderLinkBytes, r.PayloadBytes), r.Seconds)
	if u := r.TargetMessages; u != nil {
		fmt.Fprintf(t, "the group, with target messages\t%d\t%s\t%.2f\n", u.SenderLinkBytes, ratio(u.SenderLinkBytes, r.PayloadBytes), u.Seconds)
	}
	if r.Unicast.Seconds > 0 {
		unicasts := len(r.Receivers)
		if r.Tree != nil {
			unicasts = 1
		}
		fmt.Fprintf(t, "%s\t%d\t%s\t%.2f\n", plural(unicasts, "unicast"), r.UnicastSenderLinkBytes,
			ratio(r.UnicastSenderLinkBytes, r.PayloadBytes), r.Unicast.Seconds)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if r.Tree != nil {
		if err := r.Tree.write(w, r.svg != ""); err != nil {
			return err
		}
	}
	if err := r.writeDisturbances(w); err != nil {
		return err
	}
	verdict := fmt.Sprintf("ok: %d receivers have the sender's bytes (%d messages, one completion each)", len(r.Receivers), r.Messages)
	if r.Turns != nil {
		verdict = fmt.Sprintf("ok: in each of %d turns all others have the source's bytes (%d messages, one completion each)", len(r.Turns), r.Messages)
	}
	if k := r.Killed; k != nil {
		verdict = k.String()
	}
	if u := r.TargetMessages; u != nil {
		fmt.Fprintf(w, "\na target message before each WRITE of %d bytes: %.1f more bytes on the sender's link for each, %.2f %%",
			r.MessageSize, u.ExtraPerWrite, 100*u.ExtraPerWrite/float64(r.MessageSize))
		if n := u.Retransmitted + r.SenderRetransmitted; n > 0 {
			fmt.Fprintf(w, " (not exact: %d and %d packets were sent again)", r.SenderRetransmitted, u.Retransmitted)
		}
		fmt.Fprintln(w)
	}
	if !r.OK {
		verdict = "FAILED: not every receiver has the sender's bytes"
	}
	_, err := fmt.Fprintf(w, "\n%s\n", verdict)
	return err
}

func ratio(n, of int64) string {
	if of == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2fx", float64(n)/float64(of))
}

func rate(bytesPerSecond float64) string { return fmt.Sprintf("%.1f MB/s", bytesPerSecond/1e6) }

func yesNo(ok bool) string {
	if ok {
		return "yes"
	}
	return "NO"
}
