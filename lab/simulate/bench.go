// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"bytes"
	"cmp"
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path"
	"runtime/pprof"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/gleam-rdma/gleam/internal/cli"
	"github.com/gleam-rdma/gleam/lab/sim"
	"github.com/gleam-rdma/gleam/lab/sim/parallel"
	"github.com/gleam-rdma/gleam/lab/simulate/spec"
)

// benchFiles are the cases, in the order of their names.
//
//go:embed bench/*.yaml
var benchFiles embed.FS

// speed is what a case has taken. A noisy machine changes the time of a process's own code less than
// that on the clock.
type speed struct {
	Case   string  `json:"case"`
	Events uint64  `json:"events"`
	Hops   uint64  `json:"packet_hops"`
	User   float64 `json:"user_s"` // CPU time, without the setup
	System float64 `json:"system_s"`
	Wall   float64 `json:"wall_s"`
	RSS    int64   `json:"max_rss_bytes"`
	Hash   string  `json:"hash"`
}

// hopsPerS counts packet-hops, which are the work: a simulator with fewer events for each is better.
func (s *speed) hopsPerS() float64 { return float64(s.Hops) / max(s.User, 1e-9) }

// anchors are the speeds of other simulators, on machines of the same kind, in packet-hops a second.
var anchors = []struct {
	name  string
	speed float64
}{
	{"htsim, RoCE and PFC, 1,024 hosts", 1.01e6},
	{"htsim, NDP, 1,024 hosts", 0.59e6},
	{"htsim, RoCE, 8,192 hosts", 0.39e6},
	{"ns-3-dev -O3, 16 hosts", 0.181e6},
	{"ns-3-dev -O3, 128 hosts", 0.033e6},
	{"ns-3 3.37, 128 hosts", 0.027e6},
}

func benchCommand(env *cli.Env) *cobra.Command {
	var o benchOptions
	c := &cobra.Command{
		Use:   "bench",
		Short: "Measure the simulator's speed, beside other simulators'",
		Long: `bench simulates cases with all state, each in a process of its own, and prints the packet-hops
a second of CPU time. With --against, it runs two programs in turns, and fails if the user CPU
time of this one's packet-hops is longer than the other's: in the median of the rounds, by
more than --tolerance.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if o.one != "" {
				return o.measure(env.Stdout)
			}
			self, err := os.Executable()
			if err != nil {
				return fmt.Errorf("simulate: %w", err)
			}
			return o.compare(c.Context(), self, env.Stdout)
		},
	}
	f := c.Flags()
	f.StringVar(&o.only, "only", "", "only cases with this in their name")
	f.IntVar(&o.rounds, "rounds", 1, "runs of each case; the median counts")
	f.IntVar(&o.partitions, "partitions", 1, "number of partitions simulated at the same time")
	f.StringVar(&o.against, "against", "", "another gleam program to compare with")
	f.Float64Var(&o.tolerance, "tolerance", 0.1, "share of the packet-hops a second that may be missing")
	f.StringVar(&o.profile, "profile", "", "write a CPU profile of a single case into this file")
	f.StringVar(&o.one, "case", "", "measure one case in this process, and print a line of JSON")
	return c
}

type benchOptions struct {
	only, one, against, profile string
	rounds, partitions          int
	tolerance                   float64
}

// benchCases returns the names of the cases that have a text in their name.
func benchCases(only string) ([]string, error) {
	files, err := benchFiles.ReadDir("bench")
	if err != nil {
		return nil, err
	}
	var names []string
	for _, f := range files {
		if n := strings.TrimSuffix(f.Name(), ".yaml"); strings.Contains(n, only) {
			names = append(names, n)
		}
	}
	if len(names) == 0 {
		return nil, cli.UsageErrorf("--only %q: no case has it in its name", only)
	}
	return names, nil
}

// measure simulates one case in this process.
func (o *benchOptions) measure(w io.Writer) error {
	text, err := benchFiles.ReadFile(path.Join("bench", o.one+".yaml"))
	if err != nil {
		return cli.UsageErrorf("--case %q: no such case", o.one)
	}
	file, err := spec.Parse(o.one+".yaml", text)
	if err != nil {
		return err
	}
	points, err := file.Points()
	if err != nil {
		return err
	}
	t, err := points[0].Network()
	if err != nil {
		return err
	}
	ph, err := points[0].Phase(t, 0)
	if err != nil {
		return err
	}
	ph.Config.Partitions = o.partitions
	saveMemory()
	s, err := sim.New(ph.Config)
	if err != nil {
		return err
	}
	stop, err := startProfile(o.profile)
	if err != nil {
		return err
	}
	before, err := usage()
	if err != nil {
		return err
	}
	setup := s.Result()
	began := time.Now()
	parallel.Run(s, math.MaxInt64, func() bool { return true })
	out := speed{Case: points[0].Name(), Wall: time.Since(began).Seconds()}
	after, err := usage()
	if err := firstError(err, stop()); err != nil {
		return err
	}
	r := s.Result()
	if r.Completed < ph.Config.Program.Flows() {
		return fmt.Errorf("simulate: %s: %d of %d flows are completed", o.one, r.Completed, ph.Config.Program.Flows())
	}
	out.Events, out.Hops, out.Hash = r.Events-setup.Events, r.Hops-setup.Hops, fmt.Sprintf("%016x", r.Hash)
	out.User, out.System, out.RSS = seconds(after.Utime)-seconds(before.Utime), seconds(after.Stime)-seconds(before.Stime), after.Maxrss<<10
	return json.NewEncoder(w).Encode(&out)
}

// startProfile begins a CPU profile, if there is a file for it.
func startProfile(name string) (stop func() error, err error) {
	if name == "" {
		return func() error { return nil }, nil
	}
	f, err := os.Create(name)
	if err != nil {
		return nil, fmt.Errorf("simulate: --profile: %w", err)
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, fmt.Errorf("simulate: --profile: %w", err)
	}
	return func() error {
		pprof.StopCPUProfile()
		return f.Close()
	}, nil
}

func usage() (u syscall.Rusage, err error) {
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return u, fmt.Errorf("simulate: getrusage: %w", err)
	}
	return u, nil
}

func seconds(t syscall.Timeval) float64 { return float64(t.Sec) + float64(t.Usec)/1e6 }

// run simulates a case in a process of its own.
func (o *benchOptions) run(ctx context.Context, program, name string) (*speed, error) {
	args := []string{"sim", "bench", "--case", name, "--partitions", fmt.Sprint(o.partitions)}
	if o.profile != "" {
		args = append(args, "--profile", o.profile)
	}
	c := exec.CommandContext(ctx, program, args...)
	var errs bytes.Buffer
	c.Stderr = &errs
	out, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("simulate: %s %s: %w: %s", program, strings.Join(args, " "), err, strings.TrimSpace(errs.String()))
	}
	s := new(speed)
	if err := json.Unmarshal(out, s); err != nil {
		return nil, fmt.Errorf("simulate: %s %s: output: %w", program, strings.Join(args, " "), err)
	}
	return s, nil
}

// compare runs all cases in rounds, of both programs if there are two, and prints the medians.
func (o *benchOptions) compare(ctx context.Context, self string, w io.Writer) error {
	cases, err := benchCases(o.only)
	if err != nil {
		return err
	}
	if o.rounds < 1 || o.profile != "" && len(cases) > 1 {
		return cli.UsageErrorf("--rounds %d: want 1 or more; --profile needs --only one case", o.rounds)
	}
	programs := []string{self}
	if o.against != "" {
		programs = append(programs, o.against)
	}
	var slower []string
	fmt.Fprintln(w, "| case | packet-hops/s of CPU time | events/s of CPU time | CPU time | clock | memory | hash |"+column(o.against, " packet-hops/s over the other's |"))
	fmt.Fprintln(w, "|---|---|---|---|---|---|---|"+column(o.against, "---|"))
	for _, name := range cases {
		var runs []*speed
		var ratios []float64
		for range o.rounds {
			pair := make([]*speed, len(programs))
			for i, p := range programs {
				var err error
				if pair[i], err = o.run(ctx, p, name); err != nil {
					return err
				}
			}
			runs = append(runs, pair[0])
			if o.against != "" {
				ratios = append(ratios, pair[0].hopsPerS()/pair[1].hopsPerS())
			}
		}
		s := median(runs, (*speed).hopsPerS)
		text := fmt.Sprintf("| %s | %.2f million | %.2f million | %.1f s | %.1f s | %d MB | %s |", s.Case, float64(s.Hops)/max(s.User+s.System, 1e-9)/1e6, float64(s.Events)/max(s.User+s.System, 1e-9)/1e6, s.User+s.System, s.Wall, s.RSS>>20, s.Hash)
		if o.against != "" {
			ratio := median(ratios, func(x float64) float64 { return x })
			text += fmt.Sprintf(" %.2f |", ratio)
			if ratio < 1-o.tolerance {
				slower = append(slower, fmt.Sprintf("%s: %.2f of the other's packet-hops a second", s.Case, ratio))
			}
		}
		fmt.Fprintln(w, text)
	}
	if o.against == "" {
		for _, a := range anchors {
			fmt.Fprintf(w, "| %s | %.2f million | | | | | |\n", a.name, a.speed/1e6)
		}
	}
	if len(slower) > 0 {
		return fmt.Errorf("simulate: slower than %s: %s", o.against, strings.Join(slower, "; "))
	}
	return nil
}

func column(with, text string) string {
	if with == "" {
		return ""
	}
	return text
}

// median returns the value in the middle by a measure.
func median[T any](values []T, by func(T) float64) T {
	sorted := slices.Clone(values)
	slices.SortFunc(sorted, func(a, b T) int { return cmp.Compare(by(a), by(b)) })
	return sorted[len(sorted)/2]
}
