// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package copies

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/gleam-rdma/gleam/config/linkrate"
	"github.com/gleam-rdma/gleam/internal/cli/cp"
	"github.com/gleam-rdma/gleam/lab"
	"github.com/gleam-rdma/gleam/lab/bench/machine"
	"github.com/gleam-rdma/gleam/lab/bench/stat"
	"github.com/gleam-rdma/gleam/lab/testbed"
)

const (
	runDir   = "/run/gleam-lab/bench-cp" // a directory for each run
	fileName = "file"
)

var groupIP = netip.MustParseAddr("10.77.254.1")

// Cases, in the order of a round.
const (
	groupOne = "gleam cp, one host"
	groupAll = "gleam cp, all hosts"
	tcpOne   = "TCP, one host"
	tcpTurns = "TCP, one after the other"
	tcpAll   = "TCP, all at once"
	tcpChain = "TCP, a chain"
	scpOne   = "scp, one host"
	scpTurns = "scp, one after the other"
	scpAll   = "scp, all at once"
)

// cases returns the cases of a run.
func (o *Options) cases() []string {
	cs := []string{tcpOne, groupOne, groupAll, tcpChain, tcpTurns, tcpAll}
	if o.SCP {
		cs = append(cs, scpOne, scpTurns, scpAll)
	}
	return slices.DeleteFunc(cs, func(c string) bool {
		return slices.ContainsFunc(o.Without, func(w string) bool { return strings.Contains(c, w) })
	})
}

// run is a run of the benchmark.
type run struct {
	o    *Options
	bed  *testbed.Testbed
	dir  string // the folder of all files
	file string
	s    streams
	scp  *scp // nil without --scp
}

// Run measures every case once in each round. say gets progress messages.
func Run(ctx context.Context, o Options, here machine.Machine, say io.Writer) (_ *Result, err error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	r := &run{o: &o}
	if r.dir, err = os.MkdirTemp(o.Dir, "gleam-bench-cp-"); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(r.dir)) }()
	r.file = filepath.Join(r.dir, fileName)
	if err := writeRandom(r.file, o.Bytes); err != nil {
		return nil, err
	}
	r.bed, err = testbed.Build(ctx, testbed.Config{Dir: runDir, Gleamd: o.Gleamd, Star: lab.StarConfig{Hosts: o.Hosts + 1, MTU: testbed.PortMTU(o.MTU), Rate: o.Rate}})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.bed.Close()) }()
	r.s = streams{bytes: o.Bytes, hosts: r.bed.Star.Hosts}
	for _, h := range r.bed.Star.Hosts[1:] {
		r.s.dirs = append(r.s.dirs, filepath.Join(r.dir, h.Name))
	}
	if o.SCP {
		if r.scp, err = startSCP(ctx, r.dir, r.s.hosts, r.s.dirs); err != nil {
			return nil, err
		}
	}
	samples := make(map[string][]float64)
	for round := range o.Rounds {
		for _, c := range o.cases() {
			seconds, err := r.measure(ctx, c)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", c, err)
			}
			samples[c] = append(samples[c], seconds)
			fmt.Fprintf(say, "round %d of %d: %s: %.2f s\n", round+1, o.Rounds, c, seconds)
		}
	}
	return summarize(&o, here, samples), nil
}

// measure makes a copy, and checks it at each host.
func (r *run) measure(ctx context.Context, c string) (float64, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, r.o.timeout(), fmt.Errorf("it took longer than %v", r.o.timeout()))
	defer cancel()
	for _, d := range r.s.dirs {
		if err := errors.Join(os.RemoveAll(d), os.Mkdir(d, 0o700)); err != nil {
			return 0, err
		}
	}
	n := r.o.Hosts
	if c == tcpOne || c == groupOne || c == scpOne {
		n = 1
	}
	var seconds float64
	var err error
	if c == groupOne || c == groupAll {
		seconds, err = r.group(ctx, n)
	} else {
		start := time.Now()
		for _, chains := range plan(c, n) {
			if c == scpOne || c == scpTurns || c == scpAll {
				err = r.scp.copy(ctx, r.file, slices.Concat(chains...))
			} else {
				err = r.s.copy(ctx, r.file, chains)
			}
			if err != nil {
				break
			}
		}
		seconds = time.Since(start).Seconds()
	}
	if err != nil {
		return 0, errors.Join(err, context.Cause(ctx))
	}
	for _, d := range r.s.dirs[:n] {
		if err := equal(r.file, filepath.Join(d, fileName)); err != nil {
			return 0, err
		}
	}
	return seconds, nil
}

// plan returns the copies of a case, one after the other: each has streams at the
// same time, and each of these a chain of receivers.
func plan(c string, n int) (steps [][][]int) {
	var chain []int
	var parallel [][]int
	for i := range n {
		chain = append(chain, i+1)
		parallel = append(parallel, []int{i + 1})
		steps = append(steps, [][]int{{i + 1}})
	}
	switch c {
	case tcpChain:
		return [][][]int{{chain}}
	case tcpAll, scpAll:
		return [][][]int{parallel}
	}
	return steps
}

// group copies by gleam cp to n receivers, which are running already. The time is that of
// the sender's command.
func (r *run) group(ctx context.Context, n int) (float64, error) {
	ctx, cancel := context.WithCancel(ctx)
	local := cp.DefaultLocal()
	local.Host.Auth = r.bed.Key.Auth()
	o := cp.DefaultSendOptions()
	o.Local, o.Files, o.GroupIP, o.MTU = local, []string{r.file}, groupIP, r.o.MTU
	var receivers sync.WaitGroup
	defer receivers.Wait()
	defer cancel()
	for i, h := range r.s.hosts[1 : n+1] {
		o.Hosts = append(o.Hosts, h.IPv4.String())
		ready := make(chan struct{})
		var once sync.Once
		ro := &cp.ReceiveOptions{Local: local, Dir: r.s.dirs[i], Address: fmt.Sprintf(":%d", cp.DefaultPort), Say: func(string) { once.Do(func() { close(ready) }) }}
		receivers.Go(func() {
			defer once.Do(func() { close(ready) })
			_ = h.NS.Do(func() error { return cp.Receive(ctx, ro) }) // the sender reports a receiver that is not there
		})
		<-ready
	}
	start := time.Now()
	res, err := lab.In(r.s.hosts[0].NS, func() (*cp.Result, error) { return cp.Send(ctx, &o) })
	seconds := time.Since(start).Seconds()
	if err == nil && (res.Group != r.o.Bytes || res.TCP != 0) {
		err = fmt.Errorf("%d bytes went by the group and %d by TCP: a receiver was too slow for this rate", res.Group, res.TCP)
	}
	return seconds, err
}

func writeRandom(name string, n int64) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.CopyN(f, testbed.Random(1), n)
	return err
}

// equal compares two files.
func equal(a, b string) error {
	f, err := os.Open(a)
	if err != nil {
		return err
	}
	defer f.Close()
	g, err := os.Open(b)
	if err != nil {
		return err
	}
	defer g.Close()
	x, y := make([]byte, 1<<20), make([]byte, 1<<20)
	for {
		n, e := io.ReadFull(f, x)
		m, _ := io.ReadFull(g, y)
		if n != m || !bytes.Equal(x[:n], y[:m]) {
			return fmt.Errorf("%s differs from %s", b, a)
		}
		if e != nil {
			return nil
		}
	}
}

// Result is the outcome of a run.
type Result struct {
	Machine machine.Machine `json:"machine"`
	Rate    linkrate.Rate   `json:"link_bit_s"`
	PathMTU int             `json:"path_mtu"`
	Bytes   int64           `json:"bytes"`
	Hosts   int             `json:"hosts"`
	Rounds  int             `json:"rounds"`
	Rows    []Row           `json:"rows"`
}

// Row has the figures of one case: medians of the rounds. Ratios are of times of the same round.
type Row struct {
	Case    string  `json:"case"`
	Seconds float64 `json:"seconds"`
	OfOne   float64 `json:"time_of_tcp_to_one_host"`
	Turns   float64 `json:"times_faster_than_one_after_the_other"`
}

func summarize(o *Options, here machine.Machine, samples map[string][]float64) *Result {
	r := &Result{Machine: here, Rate: o.Rate, PathMTU: o.MTU, Bytes: o.Bytes, Hosts: o.Hosts, Rounds: o.Rounds}
	for _, c := range o.cases() {
		var one, turns []float64
		for i, s := range samples[c] {
			one = append(one, s/samples[tcpOne][i])
			turns = append(turns, samples[tcpTurns][i]/s)
		}
		r.Rows = append(r.Rows, Row{Case: c, Seconds: stat.Median(samples[c]), OfOne: stat.Median(one), Turns: stat.Median(turns)})
	}
	return r
}

// writeTable writes r for people.
func (r *Result) writeTable(w io.Writer) error {
	fmt.Fprintf(w, "%s\n", r.Machine)
	fmt.Fprintf(w, "a file of %d bytes to %d hosts, each host's link %v, path MTU %d; medians of %d rounds\n\n", r.Bytes, r.Hosts, r.Rate, r.PathMTU, r.Rounds)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "way\tseconds\tof TCP to one host\tfaster than one after the other\t")
	for _, x := range r.Rows {
		fmt.Fprintf(t, "%s\t%.2f\t%.3f\t%.2f\t\n", x.Case, x.Seconds, x.OfOne, x.Turns)
	}
	return t.Flush()
}
