// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package loss

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/gleam-rdma/gleam/lab/bench/machine"
)

// Result is the result of a run; its JSON is the output of -o json.
type Result struct {
	Machine         machine.Machine `json:"machine"`
	PathMTU         int             `json:"path_mtu"`
	MessageSize     int64           `json:"message_size"`
	Depth           int             `json:"depth"`             // messages posted and not complete
	TimeoutMS       float64         `json:"timeout_ms"`        // the timeout of the queue pairs
	RepairTimeoutMS float64         `json:"repair_timeout_ms"` // gleamd's
	Rounds          int             `json:"rounds"`
	Seconds         float64         `json:"seconds"` // the time of one measurement
	Seed            uint64          `json:"seed"`
	Links           []Link          `json:"links"`
	Rows            []Row           `json:"rows"`
}

// Link is the rate of the sender's link in all measurements with that number of
// receivers, and the maximum without it.
type Link struct {
	Receivers int     `json:"receivers"`
	Mbits     float64 `json:"mbit_per_second"` // whole frames
	Unpaced   []Max   `json:"unpaced"`
}

// Max is the goodput of an unpaced sender without loss: how fast the machine is.
type Max struct {
	Mode    string  `json:"mode"`
	Repair  bool    `json:"repair"`
	Goodput float64 `json:"goodput_bytes_per_second"`
}

// Row is one line of the table. Counts are sums over all rounds.
type Row struct {
	Receivers int     `json:"receivers"` // receivers that lose packets; the control receiver is one more
	Mode      string  `json:"mode"`      // Group or Unicast
	Repair    bool    `json:"repair"`    // true: the switch repairs losses; not with Unicast
	Loss      float64 `json:"loss"`      // share of packets lost on the way to each receiver
	Burst     float64 `json:"burst"`     // mean number of packets lost in a row; 0: independently

	// GoodputRatio is the median goodput of all rounds relative to the median
	// without loss, in the same rounds by the same Mode with the same Repair; min
	// and max are of single rounds.
	GoodputRatio    float64 `json:"goodput_ratio"`
	GoodputRatioMin float64 `json:"goodput_ratio_min"`
	GoodputRatioMax float64 `json:"goodput_ratio_max"`
	Goodput         float64 `json:"goodput_bytes_per_second"` // median, at each receiver

	SenderRetransmissions uint64 `json:"sender_retransmissions"` // packets
	SenderTimeouts        uint64 `json:"sender_timeouts"`
	SenderNAKs            uint64 `json:"sender_naks"`
	SenderRNRs            uint64 `json:"sender_rnrs"`

	// HealthyExtraBytes are frames that came to the control receiver, which loses nothing,
	// beyond one passage of each packet.
	HealthyExtraBytes int64 `json:"healthy_extra_bytes"`

	Messages    int    `json:"messages"`
	Packets     int    `json:"packets"` // packets of these messages, each counted once
	LostPackets uint64 `json:"lost_packets"`

	// With Repair. StoreHighWater is the largest observed packet memory of the group's
	// store, in bytes; see stored.
	StoreHighWater    int64  `json:"store_high_water_bytes"`
	SwitchNAKs        uint64 `json:"switch_naks_served"`    // NAKs that the switch answered and withheld from the sender
	SwitchProbes      uint64 `json:"switch_probes"`         // probes to silent receivers from which an ACK was expected
	SwitchResent      uint64 `json:"switch_resent_packets"` // packets that the switch sent from its store to one receiver
	SwitchNotRetained uint64 `json:"switch_not_retained_packets"`

	// FastPackets are the packets that XDP has replicated, with --fast-path.
	FastPackets uint64 `json:"fast_packets,omitempty"`

	P50 float64 `json:"p50_us"` // the time of a message, from post to completion
	P99 float64 `json:"p99_us"`

	// BytesEqual: every receiver, the control receiver included, had every byte of the
	// sender's. It is never false: such a run fails.
	BytesEqual bool `json:"bytes_equal"`
}

// writeTable writes r for people.
func (r *Result) writeTable(w io.Writer) error {
	fmt.Fprintf(w, "%s\n", r.Machine)
	fmt.Fprintf(w, "SENDs of %d bytes, %d at a time, path MTU %d, timeout %.0f ms, of repair %g ms; medians of %d rounds of %g s; seed %d; every receiver has every byte\n\n",
		r.MessageSize, r.Depth, r.PathMTU, r.TimeoutMS, r.RepairTimeoutMS, r.Rounds, r.Seconds, r.Seed)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "receivers\tsender's link\tunpaced maximum of goodput\t")
	for _, l := range r.Links {
		fmt.Fprintf(t, "%d\t%.1f Mbit/s\t", l.Receivers, l.Mbits)
		for i, m := range l.Unpaced {
			if i > 0 {
				fmt.Fprint(t, ", ")
			}
			fmt.Fprintf(t, "%s %s MB/s", lossCase{mode: m.Mode, repair: m.Repair}.kind(), megabytes(m.Goodput))
		}
		fmt.Fprintln(t, "\t")
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(w)
	t = tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "receivers\tmode\trepair\tloss\tburst\tgoodput\tof no loss\tmin..max\tresent by sender\tby switch\textra to healthy\tlost\tstore\tby XDP\tp50\tp99\t")
	fmt.Fprintln(t, "\t\t\t\tpackets\tMB/s\t%\t%\tpackets\tpackets\tbytes\tpackets\tKiB\t%\tms\tms\t")
	for _, x := range r.Rows {
		x.write(t)
	}
	return t.Flush()
}

func (x *Row) write(w io.Writer) {
	repair, burst, resent, store, fast := "off", "indep.", "-", "-", "-"
	switch {
	case x.Mode == Unicast:
		repair = "-"
	case x.Repair:
		repair = "on"
	}
	switch {
	case x.Loss == 0:
		burst = "-"
	case x.Burst > 0:
		burst = fmt.Sprintf("~%g", x.Burst)
	}
	if x.Repair {
		resent, store = fmt.Sprint(x.SwitchResent), fmt.Sprintf("%.0f", float64(x.StoreHighWater)/1024)
	}
	if x.FastPackets > 0 {
		fast = fmt.Sprintf("%.1f", 100*float64(x.FastPackets)/float64(max(x.Packets, 1)))
	}
	fmt.Fprintf(w, "%d\t%s\t%s\t%g\t%s\t%s\t%.1f\t%.1f..%.1f\t%d\t%s\t%d\t%d\t%s\t%s\t%.2f\t%.2f\t\n", x.Receivers, x.Mode, repair, x.Loss, burst,
		megabytes(x.Goodput), 100*x.GoodputRatio, 100*x.GoodputRatioMin, 100*x.GoodputRatioMax,
		x.SenderRetransmissions, resent, x.HealthyExtraBytes, x.LostPackets, store, fast, x.P50/1000, x.P99/1000)
}

// megabytes shows a number of bytes, or a rate, in units of 10^6.
func megabytes(v float64) string { return fmt.Sprintf("%.2f", v/1e6) }
