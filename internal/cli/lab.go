// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
)

// labProgram is the program with the commands that need no switch: gleam does not link the lab and the
// simulator that they use.
const labProgram = "gleam-lab"

// LabCommands are those of gleam-lab, which gleam runs in its place.
var LabCommands = []Command{
	labCommand("demo", "Send a file to several receivers through a switch, all on this machine"),
	labCommand("bench", "Measure a switch, in a lab on this machine"),
	labCommand("sim", "Simulate networks of many hosts and switches"),
	labCommand("hardware", "Record and try the NICs and RNICs of a switch and its hosts, for a report"),
}

// RunLab is Run for gleam-lab, whose commands are those of the arguments alone.
func RunLab(ctx context.Context, env *Env, args []string, commands ...Command) int {
	return run(ctx, env, args, func() *cobra.Command {
		root := newRoot(env, "Try a Gleam switch, measure it, simulate networks of them", "gleam-lab has the commands of gleam that need no switch. gleam runs it for them.")
		return complete(env, root, commands)
	})
}

func labCommand(name, short string) Command {
	return func(*Env) *cobra.Command {
		runs := func(args []string) error {
			program, err := findLab()
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			// By gleam's own name, which is what errors say to type.
			err = syscall.Exec(program, append([]string{os.Args[0], name}, args...), os.Environ())
			return fmt.Errorf("%s: run %s: %w", name, program, err)
		}
		c := &cobra.Command{
			Use:                name,
			Short:              short,
			DisableFlagParsing: true, // all flags are gleam-lab's, --help too
			RunE:               func(_ *cobra.Command, args []string) error { return runs(args) },
			ValidArgsFunction: func(c *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
				program, err := findLab()
				if err != nil {
					return nil, cobra.ShellCompDirectiveError
				}
				return completedBy(c.Context(), program, append(append([]string{name}, args...), typed))
			},
		}
		// The help of gleam help demo is gleam-lab's, too. It comes back only with an error.
		c.SetHelpFunc(func(c *cobra.Command, _ []string) { c.PrintErrln("gleam:", runs([]string{"--help"})) })
		return c
	}
}

// FindProgram returns the path of another program of Gleam: beside this one, else in PATH.
func FindProgram(name string) (string, error) {
	if self, err := os.Executable(); err == nil {
		if p, err := exec.LookPath(filepath.Join(filepath.Dir(self), name)); err == nil {
			return p, nil
		}
	}
	return exec.LookPath(name)
}

// findLab returns the path of gleam-lab.
func findLab() (string, error) {
	p, err := FindProgram(labProgram)
	if err != nil {
		return "", errors.New("this command is in the program gleam-lab, which is neither beside gleam nor in PATH: install the package gleam-lab, or type: make build")
	}
	return p, nil
}

// completedBy asks another program of cobra's for the completions of args, of which the last one is being typed.
func completedBy(ctx context.Context, program string, args []string) ([]cobra.Completion, cobra.ShellCompDirective) {
	out, err := exec.CommandContext(ctx, program, append([]string{cobra.ShellCompRequestCmd}, args...)...).Output()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	last := lines[len(lines)-1] // ":4", the directive
	directive, err := strconv.Atoi(strings.TrimPrefix(last, ":"))
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return lines[:len(lines)-1], cobra.ShellCompDirective(directive)
}
