// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gleam-rdma/gleam/internal/cli"
)

func sweepCommand(env *cli.Env) *cobra.Command {
	var o common
	var dir, shard string
	c := &cobra.Command{
		Use:   "sweep FILE",
		Short: "Simulate the points of a file that have no result yet",
		Long: `sweep writes the result of each point into a file of its own, whose name is the hash of the
point's whole configuration. Points with a result are skipped, so a sweep that was interrupted
goes on, and several processes or machines share one by --shard.`,
		Example: `  gleam sim sweep matrix.yaml --out results
  gleam sim sweep matrix.yaml --out results --shard $SLURM_ARRAY_TASK_ID/16
  parallel gleam sim sweep matrix.yaml --out results --shard {}/4 ::: 0 1 2 3`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			part, of, err := parseShard(shard)
			if err != nil {
				return cli.UsageErrorf("--shard %q: %w", shard, err)
			}
			points, err := o.points(args[0])
			if err != nil {
				return err
			}
			if err := os.MkdirAll(dir, 0o777); err != nil {
				return fmt.Errorf("simulate: %w", err)
			}
			skipped, done := 0, 0
			for i, p := range points {
				if i%of != part {
					continue
				}
				name := filepath.Join(dir, p.Address+".json")
				if _, err := os.Stat(name); err == nil {
					skipped++
					continue
				}
				res, err := runPoint(c.Context(), p, o.options(env))
				if err != nil {
					return err
				}
				if res.Partial { // it is not a result
					return c.Context().Err()
				}
				if err := save(name, res); err != nil {
					return err
				}
				done++
				if err := res.writeText(env.Stderr, p.Names()); err != nil {
					return err
				}
			}
			_, err = fmt.Fprintf(env.Stderr, "%d points simulated, %d had results, %d are of other shards\n", done, skipped, len(points)-done-skipped)
			return err
		},
	}
	o.add(c)
	c.Flags().StringVar(&dir, "out", "results", "folder of the results")
	c.Flags().StringVar(&shard, "shard", "0/1", "I/N: of N shares of the points only share I, from 0")
	return c
}

// parseShard reads I/N.
func parseShard(s string) (part, of int, err error) {
	if n, err := fmt.Sscanf(s, "%d/%d", &part, &of); n != 2 || err != nil || part < 0 || part >= of || fmt.Sprintf("%d/%d", part, of) != s {
		return 0, 0, errors.New("want I/N with I from 0 to N-1")
	}
	return part, of, nil
}

// save writes a file that appears complete or not at all.
func save(name string, res *Result) error {
	f, err := os.CreateTemp(filepath.Dir(name), ".result-*")
	if err != nil {
		return fmt.Errorf("simulate: %w", err)
	}
	err = errors.Join(res.writeJSON(f), f.Chmod(0o666), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return fmt.Errorf("simulate: write %s: %w", name, err)
	}
	return nil
}

func mergeCommand(env *cli.Env) *cobra.Command {
	var out cli.Output
	c := &cobra.Command{
		Use:   "merge FOLDER|FILE...",
		Short: "Join results of a sweep, from folders or files of JSON lines",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			all, err := load(args)
			if err != nil {
				return err
			}
			names := variables(all)
			for i, r := range all {
				if err := r.write(env.Stdout, &out, names, i == 0); err != nil {
					return err
				}
			}
			return nil
		},
	}
	out.AddTo(c, formatCSV)
	return c
}

// variables returns the names of all variables.
func variables(all []*Result) (names []string) {
	for _, r := range all {
		for n := range r.Vars {
			if !slices.Contains(names, n) {
				names = append(names, n)
			}
		}
	}
	slices.Sort(names)
	return names
}

// load reads results, each address once. It fails if two results of an address have different hashes.
func load(paths []string) ([]*Result, error) {
	byAddress := make(map[string]*Result)
	var all []*Result
	for _, path := range paths {
		err := filepath.WalkDir(path, func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || strings.HasPrefix(d.Name(), ".") {
				return err
			}
			text, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			lines := bufio.NewScanner(bytes.NewReader(text))
			lines.Buffer(nil, 1<<24)
			for n := 1; lines.Scan(); n++ {
				r := new(Result)
				if err := json.Unmarshal(lines.Bytes(), r); err != nil {
					return fmt.Errorf("%s:%d: %w", name, n, err)
				}
				old := byAddress[r.Address]
				if old == nil {
					byAddress[r.Address] = r
					all = append(all, r)
				} else if hashes(old) != hashes(r) {
					return fmt.Errorf("%s:%d: point %s has the hashes %s here and %s elsewhere, of builds %s and %s", name, n, r.Address, hashes(r), hashes(old), r.Build, old.Build)
				}
			}
			return lines.Err()
		})
		if err != nil {
			return nil, fmt.Errorf("simulate: %w", err)
		}
	}
	names := variables(all)
	slices.SortStableFunc(all, func(a, b *Result) int {
		for _, n := range names {
			if c := compareValues(a.Vars[n], b.Vars[n]); c != 0 {
				return c
			}
		}
		return strings.Compare(a.Address, b.Address)
	})
	return all, nil
}

func hashes(r *Result) string {
	var s []string
	for _, p := range r.Phases {
		s = append(s, p.Hash)
	}
	return strings.Join(s, " ")
}
