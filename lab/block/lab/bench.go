// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/gleam-rdma/gleam/config/linkrate"
	"github.com/gleam-rdma/gleam/lab/block/rig"
)

type options struct {
	bench   string
	rate    string
	rounds  int
	mtu     int
	sizes   string
	depths  string
	time    time.Duration
	timeout int
	dead    time.Duration
	config  rig.Config
}

func (o *options) flags() {
	flag.StringVar(&o.bench, "bench", "", "copies (against one copy and unicasts), loss, or death (of replicas)")
	flag.StringVar(&o.rate, "rate", "100mbit", "of each host's link, for what it sends")
	flag.IntVar(&o.rounds, "rounds", 3, "measure everything so often, and take medians")
	flag.IntVar(&o.mtu, "mtu", 1024, "path MTU")
	flag.StringVar(&o.sizes, "sizes", "4096,8192,65536,524288", "bytes of a write, with -bench copies")
	flag.StringVar(&o.depths, "depths", "1,32", "writes under way, with -bench copies")
	flag.DurationVar(&o.time, "time", 2*time.Second, "of a measurement")
	flag.IntVar(&o.timeout, "timeout", 16, "of queue pairs: 4.096 us * 2^n")
	flag.DurationVar(&o.dead, "dead-after", 400*time.Millisecond, "silence after which the switch removes a replica")
}

// setup is a device to be measured.
type setup struct {
	name     string
	replicas int
	unicast  bool
	loss     float64
}

func (o *options) start(ctx context.Context, s setup) (*rig.Device, error) {
	rate, err := linkrate.Parse(o.rate)
	if err != nil {
		return nil, err
	}
	c := o.config
	c.Replicas = s.replicas
	timeout := fmt.Sprint(o.timeout)
	c.Gateway = []string{"-timeout", timeout, "-dead-after", o.dead.String()}
	c.Replica = []string{"-timeout", timeout, "-loss", fmt.Sprint(s.loss)}
	if s.unicast {
		c.Gateway = append(c.Gateway, "-unicast")
	}
	d, err := rig.Start(ctx, c)
	if err != nil {
		return nil, err
	}
	for _, h := range d.Bed.Star.Hosts {
		if err := h.NS.SetRate(h.Interface, rate); err != nil {
			return nil, errors.Join(err, d.Close())
		}
	}
	return d, nil
}

type measured struct {
	setup
	size, depth int
}

// matrix returns the sizes and depths that are measured.
func (o *options) matrix() (sizes, depths []int, err error) {
	for flag, to := range map[*string]*[]int{&o.sizes: &sizes, &o.depths: &depths} {
		for s := range strings.SplitSeq(*flag, ",") {
			n, err := strconv.Atoi(s)
			if err != nil || n < 1 {
				return nil, nil, fmt.Errorf("-sizes and -depths want numbers with commas between, not %q", *flag)
			}
			*to = append(*to, n)
		}
	}
	return sizes, depths, nil
}

// bench measures each setup in each round, and prints medians, and the medians of the rounds' ratios.
func bench(ctx context.Context, o *options) error {
	var setups []setup
	sizes, depths, err := o.matrix()
	if err != nil {
		return err
	}
	switch o.bench {
	case "copies":
		setups = []setup{{name: "one copy", replicas: 1}, {name: "3 copies, group", replicas: 3}, {name: "3 copies, unicasts", replicas: 3, unicast: true}, {name: "8 copies, group", replicas: 8}}
	case "loss":
		setups = []setup{{name: "3 copies", replicas: 3}, {name: "3 copies, 0.1 % lost", replicas: 3, loss: 0.001}}
		sizes = []int{8 << 10}
	case "death":
		return death(ctx, o)
	default:
		return fmt.Errorf("-bench %s: want copies, loss or death", o.bench)
	}
	all := make(map[measured][]*rig.Figures)
	for round := range o.rounds {
		for _, s := range setups {
			d, err := o.start(ctx, s)
			if err != nil {
				return err
			}
			for _, size := range sizes {
				for _, depth := range depths {
					f, err := d.Fio(ctx, rig.Job{Size: size, Depth: depth, Time: o.time, Ramp: o.time / 4})
					if err != nil {
						return errors.Join(err, d.Close())
					}
					m := measured{s, size, depth}
					all[m] = append(all[m], f)
				}
			}
			if err := d.Close(); err != nil {
				return err
			}
		}
		fmt.Fprintf(os.Stderr, "round %d of %d\n", round+1, o.rounds)
	}
	t := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "SIZE\tDEPTH\t\tIOPS\tMB/s\tP50\tP99\tP99.9\tIOPS OF %s\tP50 OF IT\tCORES\tCPU/WRITE\n", setups[0].name)
	for _, size := range sizes {
		for _, depth := range depths {
			base := all[measured{setups[0], size, depth}]
			for _, s := range setups {
				fs := all[measured{s, size, depth}]
				mid := func(of func(i int) float64) float64 {
					var x []float64
					for i := range fs {
						x = append(x, of(i))
					}
					slices.Sort(x)
					return x[len(x)/2]
				}
				ms := func(of func(f *rig.Figures) time.Duration) string {
					return fmt.Sprintf("%.2f ms", mid(func(i int) float64 { return of(fs[i]).Seconds() * 1000 }))
				}
				fmt.Fprintf(t, "%d\t%d\t%s\t%.0f\t%.2f\t%s\t%s\t%s\t%.3f\t%.3f\t%.2f\t%.0f us\n", size, depth, s.name,
					mid(func(i int) float64 { return fs[i].IOPS }), mid(func(i int) float64 { return fs[i].MBs }),
					ms(func(f *rig.Figures) time.Duration { return f.P50 }), ms(func(f *rig.Figures) time.Duration { return f.P99 }),
					ms(func(f *rig.Figures) time.Duration { return f.P999 }),
					mid(func(i int) float64 { return fs[i].IOPS / base[i].IOPS }), mid(func(i int) float64 { return float64(fs[i].P50) / float64(base[i].P50) }),
					mid(func(i int) float64 { return fs[i].Cores }), mid(func(i int) float64 { return 1e6 * fs[i].Cores / fs[i].IOPS }))
			}
		}
	}
	return t.Flush()
}

// death cuts the link of a replica under load, again and again; the switch finds out after dead_after.
func death(ctx context.Context, o *options) error {
	var longest []time.Duration
	for range o.rounds {
		d, err := o.start(ctx, setup{replicas: 3})
		if err != nil {
			return err
		}
		cut := make(chan error, 1)
		go func() {
			time.Sleep(o.time / 2)
			h := d.Bed.Star.Hosts[2]
			cut <- h.NS.SetDown(h.Interface)
		}()
		f, err := d.Fio(ctx, rig.Job{Size: 8 << 10, Depth: 32, Time: o.time})
		if err = errors.Join(err, <-cut, d.Close()); err != nil {
			return err
		}
		longest = append(longest, f.Max)
		fmt.Printf("the link of a replica is cut: %.0f IOPS, the longest write %v, dead_after %v\n", f.IOPS, round(f.Max), o.dead)
	}
	slices.Sort(longest)
	fmt.Printf("longest write: median %v, most %v\n", round(longest[len(longest)/2]), round(longest[len(longest)-1]))
	return nil
}
