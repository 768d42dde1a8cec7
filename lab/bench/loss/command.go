// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package loss is `gleam bench loss`: the cost of lost packets, with and without repair
// by the switch, and against unicasts.
//
// A sender's RC queue pair sends to a group of receivers in a lab.Star, through a real
// gleamd; the same bytes go by one queue pair to each, through the kernel's bridge, for
// comparison. Frames are lost on the way into each receiver (soft.LossModel), but for
// one, the control receiver, which shows whether others' losses cost it anything.
//
// All hosts and the switch share a few cores, so an unpaced sender would measure these,
// not the network: the sender keeps to a rate that the machine can easily do, like a
// link of that rate. Retransmissions then take from its goodput as on a link. Every
// case is measured once in each round, and rows are compared within the same rounds.
package loss

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/gleam-rdma/gleam/internal/cli"
	"github.com/gleam-rdma/gleam/lab/bench/chart"
	"github.com/gleam-rdma/gleam/lab/bench/machine"
	"github.com/gleam-rdma/gleam/lab/bench/options"
	"github.com/gleam-rdma/gleam/lab/demo"
)

// Command is `gleam bench loss`.
func Command(env *cli.Env) *cobra.Command {
	o := defaults()
	message, size := demo.Size(o.MessageSize), demo.Size(o.Size)
	repair := []string{"on", "off"}
	var svg string
	var res *Result
	b := &options.Bench{
		Use:   "loss",
		Short: "Measure what lost packets cost: goodput, retransmissions, latency",
		Long: `loss sends through a switch in a lab on this machine, to groups of receivers that
lose packets, with and without repair by the switch, and by a queue pair to each
for comparison. One receiver more, the control receiver, loses nothing. The sender's link
has a rate that the machine can easily do, so that the ratios are those of a
network and not of a busy machine. Every byte at every receiver is compared. It
needs root, and 9 minutes; with --quick half a minute.`,
		Example: `  gleam bench loss --quick
  gleam bench loss --receivers 16 --loss 0.001,0.01 --burst 0 --svg loss.svg -o json`,
		Common: &o.Common, Flags: shared, Quick: quick,
		Read: func(c *cobra.Command) (err error) {
			o.MessageSize, o.Size = int64(message), int64(size)
			if o.Repair, err = onOff(repair); err != nil {
				return err
			}
			if !c.Flags().Changed("unicast") { // the default is for those that are measured
				o.Unicast = slices.DeleteFunc(o.Unicast, func(n int) bool { return !slices.Contains(o.Receivers, n) })
			}
			return o.check()
		},
		Run: func(ctx context.Context, here machine.Machine, say io.Writer) (_ any, _ func(io.Writer) error, err error) {
			res, err = Run(ctx, o, here, say)
			return res, res.writeTable, err
		},
		Draw: func() error {
			if svg == "" {
				return nil
			}
			return chart.Save(svg, res.charts()...)
		},
	}
	c := b.Command(env)
	f := c.Flags()
	f.IntSliceVar(&o.Receivers, "receivers", o.Receivers, fmt.Sprintf("receivers that lose packets, 1 to %d", maxReceivers))
	f.Float64SliceVar(&o.Loss, "loss", o.Loss, "probability with which each packet is lost on the way to each receiver; none is always measured")
	f.Float64SliceVar(&o.Burst, "burst", o.Burst, "mean number of packets lost in a row; 0: losses are independent")
	f.StringSliceVar(&repair, "repair", repair, "on, off, or both")
	f.IntSliceVar(&o.Unicast, "unicast", o.Unicast, "measure unicasts with so many of the receivers")
	f.Var(&size, "size", "end a measurement after so many bytes, if that is earlier; 0: never")
	f.Var(&message, "message-size", "bytes of each message, a multiple of 4")
	f.IntVar(&o.Depth, "depth", o.Depth, "messages posted at a time")
	f.DurationVar(&o.RepairTimeout, "repair-timeout", o.RepairTimeout, "gleamd's repair.timeout, after which it probes a silent receiver; by default it has 4ms, for hosts that have a core for themselves")
	f.Uint8Var(&o.Timeout, "timeout", o.Timeout, "of the queue pairs: 4.096 µs * 2^timeout; 14 is 67 ms")
	f.Float64Var(&o.Rate, "rate", o.Rate, "of the sender's link in Mbit/s; 0: --load of what this machine can do")
	f.Float64Var(&o.Load, "load", o.Load, "share of the unpaced maximum that the link's rate is")
	f.Uint64Var(&o.Seed, "seed", o.Seed, "of the losses and the bytes")
	f.StringVar(&svg, "svg", svg, "draw goodput against loss into this file")
	options.Complete(c, "repair", "on", "off", "on,off")
	_ = c.MarkFlagFilename("svg", "svg")
	return c
}

// onOff parses --repair.
func onOff(words []string) (is []bool, err error) {
	for _, w := range words {
		switch w {
		case "on":
			is = append(is, true)
		case "off":
			is = append(is, false)
		default:
			return nil, fmt.Errorf("--repair %q: want on, off, or both", w)
		}
	}
	return is, nil
}
