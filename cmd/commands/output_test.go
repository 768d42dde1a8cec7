// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	labcommand "github.com/gleam-rdma/gleam/cmd/gleam-lab/command"
	"github.com/gleam-rdma/gleam/internal/cli"
)

// all are the commands of gleam with those of gleam-lab.
var all = slices.Concat(OfGleam, labcommand.Commands)

// formats are those that each -o of gleam takes.
var formats = []string{"table", "wide", "json", "yaml", "jsonpath=$.ip"}

// more are the formats of single commands.
var more = map[string][]string{"gleam group tree": {"dot", "svg"}, "gleam sim run": {"csv"}, "gleam sim merge": {"csv"}}

// TestEachCommandHasTheSameFormats: -o takes the same formats at each command that has it, and
// has the same default; the formats of single commands are refused by the others.
func TestEachCommandHasTheSameFormats(t *testing.T) {
	var found []string
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		for _, sub := range c.Commands() {
			walk(sub)
		}
		f := c.Flags().Lookup("output")
		if f == nil {
			if f := c.Flags().ShorthandLookup("o"); f != nil {
				t.Errorf("%s: -o is --%s", c.CommandPath(), f.Name)
			}
			return
		}
		found = append(found, c.CommandPath())
		own := more[c.CommandPath()]
		if f.Shorthand != "o" || f.DefValue != "table" {
			t.Errorf("%s: --output is -%s, by default %s", c.CommandPath(), f.Shorthand, f.DefValue)
		}
		for _, v := range slices.Concat(formats, own) {
			if err := f.Value.Set(v); err != nil {
				t.Errorf("%s -o %s: %v", c.CommandPath(), v, err)
			}
			if name, _, _ := strings.Cut(v, "="); !strings.Contains(f.Usage, name) {
				t.Errorf("%s: the help text of -o %q lacks %s", c.CommandPath(), f.Usage, name)
			}
		}
		for _, v := range []string{"", "text", "xml", "JSON", "jsonpath", "jsonpath=", "jsonpath=QUERY", "dot", "csv"} {
			err := f.Value.Set(v)
			switch {
			case slices.Contains(own, v):
			case err == nil:
				t.Errorf("%s takes -o %q", c.CommandPath(), v)
			case !strings.HasPrefix(v, "jsonpath=") && err.Error() != "want "+f.Usage:
				t.Errorf("%s -o %q: %v", c.CommandPath(), v, err)
			}
		}
	}
	walk(cli.New(&cli.Env{Stdout: io.Discard, Stderr: io.Discard}, all...))
	for _, name := range []string{"gleam demo", "gleam cp", "gleam perf write-bw", "gleam bench switch", "gleam bench cp", "gleam group list", "gleam events", "gleam trace", "gleam top", "gleam sim run"} {
		if !slices.Contains(found, name) {
			t.Errorf("%s has no -o", name)
		}
	}
	for name := range more {
		if !slices.Contains(found, name) {
			t.Errorf("%s has no -o", name)
		}
	}
}

// TestUnknownFormatIsAUsageError: the error names the flag, what was given and the formats.
func TestUnknownFormatIsAUsageError(t *testing.T) {
	for _, args := range []string{"demo -o xml", "cp -o xml f 10.0.0.1", "perf write-bw -o xml h", "bench groups -o xml", "sim run -o xml f", "group list -o xml"} {
		var errs bytes.Buffer
		code := cli.Run(t.Context(), &cli.Env{Stdout: io.Discard, Stderr: &errs}, strings.Fields(args), all...)
		want := `invalid argument "xml" for "-o, --output" flag: want table, wide, json, yaml`
		if code != cli.ExitUsage || !strings.Contains(errs.String(), want) {
			t.Errorf("%s: exit code %d, %s", args, code, errs.String())
		}
	}
}
