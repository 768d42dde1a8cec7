// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package switchbench

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/gleam-rdma/gleam/lab/bench/stat"
)

// leastOfOther is the least part of another program's packets a second with which a row
// has not fallen. Two runs of one program differ by less, in the median of some turns.
const leastOfOther = 0.75

// compare runs two programs in turns, a round of each in a turn, and writes the ratios of
// their rows. It fails if a row has fallen below leastOfOther, or cannot be measured by self
// alone.
func (o *Options) compare(ctx context.Context, self, other string, w io.Writer) error {
	var turns [2][]*Result
	for range o.Rounds {
		for i, program := range []string{self, other} {
			r, err := o.runProgram(ctx, program)
			if err != nil {
				return err
			}
			turns[i] = append(turns[i], r)
		}
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "\tkpps in\tof the other's\tCPU, of the other's\t\n")
	var fallen []string
	for i := range turns[0][0].Rows {
		x := &turns[0][0].Rows[i]
		c := benchCase{x.Payload, x.Legs}
		name := fmt.Sprintf("%s, %s", x.Name, c)
		var in, ratio, cpu []float64
		there := false // the other program has measured it
		for k := range turns[0] {
			a, b := turns[0][k].find(x.Name, c), turns[1][k].find(x.Name, c)
			there = there || b != nil
			if a == nil || b == nil || b.InPPS == 0 || b.CPU == 0 {
				continue
			}
			in, ratio, cpu = append(in, a.InPPS/1e3), append(ratio, a.InPPS/b.InPPS), append(cpu, a.CPU/b.CPU)
		}
		if len(ratio) == 0 {
			if there {
				fallen = append(fallen, name+": cannot be measured any more")
			}
			fmt.Fprintf(t, "%s\t-\t-\t-\t\n", name)
			continue
		}
		m := stat.Median(ratio)
		fmt.Fprintf(t, "%s\t%.1f\t%.2f\t%.2f\t\n", name, stat.Median(in), m, stat.Median(cpu))
		if m < leastOfOther {
			fallen = append(fallen, fmt.Sprintf("%s: %.2f of the other's packets a second", name, m))
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if len(fallen) > 0 {
		return fmt.Errorf("slower than %s: %s", other, strings.Join(fallen, "; "))
	}
	return nil
}

// runProgram has a program measure one round.
func (o *Options) runProgram(ctx context.Context, program string) (*Result, error) {
	args := []string{
		"bench", "switch", "--rounds=1", "--latency=false", "--output=json",
		"--seconds=" + strconv.FormatFloat(o.Duration.Seconds(), 'g', -1, 64),
		"--payload=" + join(o.Payloads), "--legs=" + join(o.Legs),
	}
	if len(o.Rows) > 0 {
		args = append(args, "--rows="+strings.Join(o.Rows, ","))
	}
	var stderr strings.Builder
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Stderr = &stderr
	text, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w\n%s", program, strings.Join(args, " "), err, stderr.String())
	}
	var r Result
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, fmt.Errorf("%s: its result: %w", program, err)
	}
	return &r, nil
}

// join writes numbers with commas, as a flag takes them.
func join(numbers []int) string {
	var words []string
	for _, n := range numbers {
		words = append(words, strconv.Itoa(n))
	}
	return strings.Join(words, ",")
}
