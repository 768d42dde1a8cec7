// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package terminal runs programs in a window of tmux, for tests of what people see.
package terminal

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/test/labtest"
)

// Terminal is a window of tmux. It ends with its test.
type Terminal struct {
	t      *testing.T
	socket string
}

// New runs a command of the shell in a window of 80 columns. rows is the window's height in lines. env has the
// command's environment variables, as NAME=VALUE, separated by spaces. When the command ends, the window gets a
// line with "ended" and the exit code.
func New(t *testing.T, rows int, env string, command ...string) *Terminal {
	t.Helper()
	labtest.Needs(t, "tmux")
	x := &Terminal{t, filepath.Join(t.TempDir(), "tmux")}
	x.Tmux("-f", "/dev/null", "new-session", "-d", "-x", "80", "-y", fmt.Sprint(rows), "env TERM=tmux-256color "+env+" "+strings.Join(command, " ")+"; echo ended $?; cat")
	t.Cleanup(func() { _ = exec.Command("tmux", "-S", x.socket, "kill-server").Run() })
	return x
}

// Tmux gives the window's tmux a command.
func (x *Terminal) Tmux(args ...string) string {
	x.t.Helper()
	out, err := exec.Command("tmux", append([]string{"-S", x.socket}, args...)...).CombinedOutput()
	if err != nil {
		x.t.Fatalf("tmux %s: %v: %s", args, err, out)
	}
	return string(out)
}

// Keys types keys, by tmux's names.
func (x *Terminal) Keys(keys ...string) { x.Tmux(append([]string{"send-keys"}, keys...)...) }

// See waits until the window has all texts, and returns what it has.
func (x *Terminal) See(what string, texts ...string) string {
	x.t.Helper()
	ctx, cancel := context.WithTimeout(x.t.Context(), 20*time.Second)
	defer cancel()
	for {
		screen := x.Tmux("capture-pane", "-p")
		missing := ""
		for _, text := range texts {
			if !strings.Contains(screen, text) {
				missing = text
			}
		}
		if missing == "" {
			return screen
		}
		select {
		case <-ctx.Done():
			x.t.Fatalf("%s: %q is not to be seen:\n%s", what, missing, screen)
		case <-time.After(50 * time.Millisecond):
		}
	}
}
