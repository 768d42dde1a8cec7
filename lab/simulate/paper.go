// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"context"
	"embed"
	"fmt"
	"io"
	"math"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gleam-rdma/gleam/internal/cli"
	"github.com/gleam-rdma/gleam/lab/bench/chart"
	"github.com/gleam-rdma/gleam/lab/simulate/spec"
)

// paperFiles are the studies of the table.
//
//go:embed paper/*.yaml
var paperFiles embed.FS

func paperCommand(env *cli.Env) *cobra.Command {
	var o common
	var dir, out string
	var scale int
	c := &cobra.Command{
		Use:   "paper",
		Short: "Simulate the results of the paper, and compare",
		Long: `paper simulates what the paper has measured and simulated, as far as it has no result yet, and
writes a table with the paper's value, the simulated one, the analytic one and a verdict, and
charts. The largest scale, 128 x 128 hosts, takes most of the time.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			all, err := runPaper(c.Context(), env, &o, dir, scale)
			if err != nil {
				return err
			}
			return writePaper(env, all, out)
		},
	}
	f := c.Flags()
	f.StringVar(&dir, "results", "results", "folder of the results; points with a result are not simulated again")
	f.StringVar(&out, "out", ".", "folder of the table and the charts")
	f.IntVar(&scale, "scale", 128, "largest matrix, n of n x n hosts")
	f.IntVar(&o.partitions, "partitions", runtime.GOMAXPROCS(0), "number of partitions simulated at the same time")
	f.BoolVar(&o.silent, "no-progress", false, "no progress lines")
	return c
}

// runPaper simulates all points of a scale that have no result, and returns all results.
func runPaper(ctx context.Context, env *cli.Env, o *common, dir string, scale int) (results, error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, fmt.Errorf("simulate: %w", err)
	}
	files, err := paperFiles.ReadDir("paper")
	if err != nil {
		return nil, err
	}
	var all results
	for _, f := range files {
		text, err := paperFiles.ReadFile(path.Join("paper", f.Name()))
		if err != nil {
			return nil, err
		}
		s, err := spec.Parse(f.Name(), text)
		if err != nil {
			return nil, err
		}
		points, err := s.Points()
		if err != nil {
			return nil, err
		}
		for _, p := range points {
			if n, err := strconv.Atoi(vars(p)["n"]); err == nil && n > scale {
				continue
			}
			name := filepath.Join(dir, p.Address+".json")
			if _, err := os.Stat(name); err != nil {
				res, err := runPoint(ctx, p, o.options(env))
				if err != nil {
					return nil, fmt.Errorf("%s %v: %w", p.Name(), p, err)
				}
				if res.Partial {
					return nil, ctx.Err()
				}
				if err := save(name, res); err != nil {
					return nil, err
				}
			}
			one, err := load([]string{name})
			if err != nil {
				return nil, err
			}
			all = append(all, one...)
		}
	}
	return all, nil
}

// tableName is the file of the table.
var tableName = path.Base("docs/simulation/paper.md")

// writePaper writes the table to standard output and into a file, and the charts.
func writePaper(env *cli.Env, all results, out string) error {
	rows, err := all.table()
	if err != nil {
		return err
	}
	text := markdown(rows)
	if err := os.MkdirAll(out, 0o777); err != nil {
		return fmt.Errorf("simulate: %w", err)
	}
	if err := os.WriteFile(filepath.Join(out, tableName), []byte("# The paper's results, simulated\n\nBy `make sim-paper`. The rows are explained in [SIMULATION.md](../SIMULATION.md#the-papers-results).\n\n"+text+"\n"+hashTable(all)), 0o666); err != nil {
		return fmt.Errorf("simulate: %w", err)
	}
	if err := chart.Save(filepath.Join(out, "matrix.svg"), all.matrixChart()); err != nil {
		return err
	}
	if err := chart.Save(filepath.Join(out, "loss.svg"), all.lossChart()); err != nil {
		return err
	}
	if _, err := io.WriteString(env.Stdout, text); err != nil {
		return err
	}
	for _, r := range rows {
		if r.verdict() == "**fail**" && !r.agrees() {
			return fmt.Errorf("%s: %.4g %s; want the analytic value, %.4g, within %.2g", r.what, r.ours, r.unit, r.analytic, r.tolerance)
		} else if r.verdict() == "**fail**" {
			return fmt.Errorf("%s: %.4g %s; want %.4g to %.4g", r.what, r.ours, r.unit, r.low, r.high)
		}
	}
	return nil
}

// markdown prints rows as a table.
func markdown(rows []acceptance) string {
	var b strings.Builder
	b.WriteString("| what | paper | simulated | analytic | accepted | verdict |\n|---|---|---|---|---|---|\n")
	bound := func(x float64) string {
		if x >= 1e4 {
			return strconv.FormatFloat(x, 'f', 0, 64)
		}
		return strconv.FormatFloat(x, 'g', 4, 64)
	}
	number := func(x float64) string {
		if x == 0 || math.IsNaN(x) {
			return ""
		}
		return bound(x)
	}
	for i := range rows {
		r := &rows[i]
		model := number(r.analytic)
		if r.tolerance > 0 {
			model += " ± " + strconv.FormatFloat(r.tolerance, 'g', 2, 64)
		}
		fmt.Fprintf(&b, "| %s | %s | %s %s | %s | %s to %s | %s |\n", r.what, r.paper, number(r.ours), r.unit, model, bound(r.low), bound(r.high), r.verdict())
	}
	return b.String()
}

// hashTable lists the hashes of all results: who runs the same gets the same.
func hashTable(all results) string {
	var b strings.Builder
	b.WriteString("| study | point | mode | hashes | packet-hops |\n|---|---|---|---|---|\n")
	for _, r := range all {
		var values []string
		for _, n := range variables([]*Result{r}) {
			values = append(values, n+"="+r.Vars[n])
		}
		hops := uint64(0)
		for _, p := range r.Phases {
			hops += p.Hops
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %d |\n", r.Study, strings.Join(values, " "), r.Mode, hashes(r), hops)
	}
	return b.String()
}

func (all results) matrixChart() chart.Chart {
	l := &chart.Lines{Axes: chart.Axes{Title: "Panel broadcast and row swap in n x n hosts", X: "n", Y: "JCT, ms", LogX: true}}
	for _, s := range []struct{ study, name string }{{"matrix-group", "Gleam"}, {"matrix-unicast", "ring and long"}} {
		line := chart.Series{Name: s.name}
		for _, n := range []float64{8, 16, 32, 64, 128} {
			if y := all.jct(s.study, "n", strconv.Itoa(int(n))); !math.IsNaN(y) {
				line.Points = append(line.Points, chart.Point{X: n, Y: y})
			}
		}
		l.Series = append(l.Series, line)
	}
	paper := func(name string, style int, y8, y128 float64) chart.Series {
		return chart.Series{Name: name, Style: style, Dashed: true, Points: []chart.Point{{X: 8, Y: y8}, {X: 128, Y: y128}}}
	}
	l.Series = append(l.Series, paper("Gleam, paper", 1, 5.17, 5.17), paper("ring and long, paper", 2, 13.7, 19.4))
	for _, n := range []int{8, 16, 32, 64, 128} {
		l.XTicks = append(l.XTicks, chart.Tick{At: float64(n), Label: strconv.Itoa(n)})
	}
	return l
}

func (all results) lossChart() chart.Chart {
	l := &chart.Lines{Axes: chart.Axes{Title: "Goodput of a group under loss at the cores", X: "loss", Y: "of that without", LogX: true}}
	for _, size := range []string{"64", "512"} {
		for _, repair := range []string{"0", "4MiB"} {
			name := size + " members"
			if repair != "0" {
				name += ", repair"
			}
			line := chart.Series{Name: name}
			for _, loss := range []string{"0.00001", "0.0001", "0.001"} {
				x, _ := strconv.ParseFloat(loss, 64)
				if g := all.jct("loss", "size", size, "repair", repair, "loss", "0") / all.jct("loss", "size", size, "repair", repair, "loss", loss); !math.IsNaN(g) {
					line.Points = append(line.Points, chart.Point{X: x, Y: g})
				}
			}
			l.Series = append(l.Series, line)
		}
	}
	return l
}
