// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"context"
	_ "embed"
	"fmt"
	"io"
	"math"
	"math/bits"
	"runtime"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/gleam-rdma/gleam/internal/cli"
	"github.com/gleam-rdma/gleam/lab/sim/workload"
	"github.com/gleam-rdma/gleam/lab/simulate/spec"
)

//go:embed weights/weights.yaml
var weightsFile []byte

// What the points of weights.yaml have in common.
const (
	weightsRate   = 200e9 // bit/s of each link
	weightsChunk  = 64 << 10
	hostsPerLeaf  = 8
	weightsLossy  = "0.0001"
	weightsPacket = 4096.0
)

// weightsPoint is one way of the weights: a point, or by the formula alone.
type weightsPoint struct {
	Trainers  int     `json:"trainers"`
	Receivers int     `json:"receivers"`
	Parts     int     `json:"parts"` // number of parts of a shard, of which a receiver wants one; 1: the whole
	Way       string  `json:"way"`
	Case      string  `json:"case"` // clean, loss or dead
	Time      float64 `json:"jct_us,omitempty"`
	Formula   float64 `json:"formula_us"`
	Known     float64 `json:"completed_us,omitempty"` // the time when the last trainer knew
	Sent      float64 `json:"trainer_link_bytes"`
	Fabric    uint64  `json:"fabric_link_bytes,omitempty"`
	Whole     int     `json:"receivers_with_all,omitempty"`
	Hash      string  `json:"hash,omitempty"`

	bytes, chunk float64
}

// weightsStudy is what gleam sim weights prints.
type weightsStudy struct {
	Points []weightsPoint `json:"points"`
	Full   []weightsPoint `json:"full"` // 1 TB from 256 trainers to 2,048 receivers, by the formula
}

func weightsCommand(env *cli.Env) *cobra.Command {
	var o common
	var out cli.Output
	var largest int
	var shard string
	c := &cobra.Command{
		Use:   "weights",
		Short: "Simulate the ways of new weights from trainers to receivers",
		Long: `weights simulates shards of weights that go from trainers to eight times as many receivers: by
NCCL's ring and tree, by reads of each receiver (p2p), by a group for each shard, and by a group
for each part of a shard; without loss, with a loss of 1e-4 on each link, and with a receiver
that dies. A formula beside each time gives that of 1 TB from 256 trainers to 2,048 receivers.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			o.watchdog = 200 * time.Millisecond // what waits for the dead ends soon
			bytes, err := workload.ParseBytes(shard)
			if err != nil {
				return cli.UsageErrorf("--shard: %w", err)
			}
			s, err := runWeights(c.Context(), o.options(env), largest, float64(bytes))
			if err != nil {
				return err
			}
			return out.PrintOne(env.Stdout, s, s.writeText)
		},
	}
	f := c.Flags()
	f.IntVar(&largest, "trainers", 32, "most trainers that are simulated: 8, 16 or 32")
	f.StringVar(&shard, "shard", "2MB", "bytes of each trainer")
	f.IntVar(&o.partitions, "partitions", runtime.GOMAXPROCS(0), "number of partitions simulated at the same time")
	f.BoolVar(&o.silent, "no-progress", false, "no progress lines")
	out.AddTo(c)
	return c
}

// runWeights simulates all points up to a number of trainers, each with a shard.
func runWeights(ctx context.Context, o options, largest int, shard float64) (*weightsStudy, error) {
	s := &weightsStudy{}
	add := func(trainers, receivers, parts int, cases ...string) error {
		for _, way := range workload.WeightsAlgorithms {
			for _, which := range cases {
				x := weightsPoint{Trainers: trainers, Receivers: receivers, Parts: parts, Way: way, Case: which, bytes: shard * float64(trainers), chunk: weightsChunk}
				if way == "shard-groups" && parts == 1 {
					continue // they are the groups of whole shards
				}
				if err := x.simulate(ctx, o); err != nil {
					return err
				}
				s.Points = append(s.Points, x)
			}
		}
		return nil
	}
	for _, parts := range []int{1, 8} {
		for trainers := 8; trainers <= largest; trainers *= 2 {
			if err := add(trainers, 8*trainers, parts, "clean", "loss", "dead"); err != nil {
				return nil, err
			}
		}
	}
	if err := add(8, 8, 8, "clean"); err != nil { // one replica
		return nil, err
	}
	for _, x := range s.Points {
		if x.Trainers != largest || x.Case != "clean" || x.Receivers == x.Trainers {
			continue
		}
		full := weightsPoint{Trainers: 256, Receivers: 2048, Parts: x.Parts, Way: x.Way, Case: "clean", bytes: 1e12, chunk: workload.DefaultNCCLChunk}
		full.Formula, full.Sent = full.formula()
		s.Full = append(s.Full, full)
	}
	return s, nil
}

// simulate runs the point.
func (x *weightsPoint) simulate(ctx context.Context, o options) error {
	x.Formula, _ = x.formula()
	set := map[string]string{
		"algorithm": x.Way, "trainers": strconv.Itoa(x.Trainers), "receivers": strconv.Itoa(x.Receivers), "parts": strconv.Itoa(x.Parts),
		"leaves": strconv.Itoa((x.Trainers + x.Receivers + hostsPerLeaf - 1) / hostsPerLeaf), "bytes": strconv.Itoa(int(x.bytes)),
		"rate": "none", "window": "64", "loss": "0", "failures": "[]",
	}
	// Hosts send no more than the others' links carry, with room for little in queues: there is no congestion control.
	switch {
	case x.grouped(): // a receiver gets all shards at a time
		set["rate"], set["window"] = strconv.Itoa(int(weightsRate)/x.Trainers)+"bit", "32"
	case x.Way == "p2p": // all receivers read at a time
		set["rate"], set["window"] = strconv.Itoa(int(weightsRate)/x.Receivers)+"bit", "16"
	}
	switch x.Case {
	case "loss":
		set["loss"] = weightsLossy
	case "dead": // the host's link fails when a quarter of the time has passed
		host := x.Trainers + x.Receivers/2
		set["failures"] = fmt.Sprintf("[{at: %dns, link: [h%d, l%d]}]", int(x.Formula*1e3/4), host+1, host/hostsPerLeaf+1)
	}
	file, err := spec.Parse("weights.yaml", weightsFile)
	if err != nil {
		return err
	}
	for name, value := range set {
		if err := file.Set(name, value); err != nil {
			return err
		}
	}
	points, err := file.Points()
	if err != nil {
		return err
	}
	res, err := runPoint(ctx, points[0], o)
	if res == nil || ctx.Err() != nil || err != nil && x.Case != "dead" { // what waits for a dead receiver waits for ever
		return firstError(err, ctx.Err())
	}
	p := &res.Phases[0]
	x.Time, x.Known, x.Fabric, x.Hash = p.JCT, p.Completed, p.Fabric, p.Hash
	x.Sent, x.Whole = float64(p.Programs[0].Sent), p.Programs[0].Whole
	return nil
}

func (x *weightsPoint) grouped() bool { return x.Way == "group" || x.Way == "shard-groups" }

// formula returns the time in µs, and the bytes on a trainer's link: what the busiest host's link carries, and
// the time until the first chunk is there. It knows no losses, and no two flows that share a link of the fabric.
func (x *weightsPoint) formula() (time, sent float64) {
	shard, part := x.bytes/float64(x.Trainers), x.bytes/float64(x.Parts) // bytes of a trainer, and of its part for a receiver
	n := x.Receivers / x.Parts
	on := func(bytes float64) float64 { // the µs that bytes take on a link
		return bytes * (weightsPacket + headerBytes) / weightsPacket * 8 / weightsRate * 1e6
	}
	chunk := on(math.Min(x.chunk, shard/float64(x.Parts)))
	const lag = 4 // µs: the delays of the four links between hosts at two leaves
	first := lag + 4*on(weightsPacket)
	switch x.Way {
	case "ring": // n/Trainers receivers lie between the starts of two chains
		first = float64(max(n/x.Trainers, 1)) * (lag + chunk)
	case "tree":
		first = float64(bits.Len(uint(n))) * (lag + 2*chunk)
	case "p2p":
		shard *= float64(n)
	case "group":
		part = x.bytes
	}
	return on(math.Max(shard, part)) + first, shard
}

func (s *weightsStudy) writeText(w io.Writer) error {
	fmt.Fprintln(w, "| trainers, receivers | parts | way | case | time, µs | formula, µs | time over formula | trainers know, µs | trainer's link, MB | busiest fabric link, MB | receivers with all |\n|---|---|---|---|---|---|---|---|---|---|---|")
	for _, x := range s.Points {
		fmt.Fprintf(w, "| %d, %d | %d | %s | %s | %.0f | %.0f | %.2f | %.0f | %.1f | %.1f | %d |\n", x.Trainers, x.Receivers, x.Parts, x.Way, x.Case, x.Time, x.Formula, x.Time/x.Formula, x.Known, x.Sent/1e6, float64(x.Fabric)/1e6, x.Whole)
	}
	fmt.Fprintln(w, "\n| 1 TB, 256 trainers, 2,048 receivers: parts | way | time by the formula, s | trainer's link, GB |\n|---|---|---|---|")
	for _, x := range s.Full {
		if _, err := fmt.Fprintf(w, "| %d | %s | %.1f | %.1f |\n", x.Parts, x.Way, x.Formula/1e6, x.Sent/1e9); err != nil {
			return err
		}
	}
	return nil
}
