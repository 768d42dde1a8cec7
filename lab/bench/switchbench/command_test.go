// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package switchbench

import (
	"bytes"
	"strings"
	"testing"

	"github.com/gleam-rdma/gleam/internal/cli"
)

// Senseless command lines are told apart from failures, before anything is built.
func TestCommandUsage(t *testing.T) {
	for _, c := range []struct{ args, says string }{
		{"--rows token-ring", "token-ring"},
		{"--quick --legs 7", "--quick"},
		{"--payload 10", "--payload 10"},
		{"--legs 99", "--legs 99"},
		{"--rounds 0", "--rounds 0"},
		{"--seconds -1", "--seconds"},
		{"-o xml", "xml"},
		{"--overhead --rows bare", "--overhead has no --rows"},
		{"--overhead --legs 3,7", "one --payload"},
		{"--overhead --seconds 0", "--seconds"},
		{"--frobnicate", "frobnicate"},
	} {
		var out, errs bytes.Buffer
		env := &cli.Env{Stdout: &out, Stderr: &errs}
		code := cli.Run(t.Context(), env, append([]string{"switch"}, strings.Fields(c.args)...), Command)
		if code != cli.ExitUsage || !strings.Contains(errs.String(), c.says) || out.Len() > 0 {
			t.Errorf("%s: exit code %d, output %q, message %q; want %d and %q", c.args, code, &out, &errs, cli.ExitUsage, c.says)
		}
	}
}
