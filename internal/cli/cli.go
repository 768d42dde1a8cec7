// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package cli is the gleam command, for operators and users of a switch. Nouns read
// (group list, port list, stats), verbs change (group register). Data goes to standard
// output, messages to standard error. Commands take an Env, so that tests run them
// in-process.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/internal/cli/terminal"
)

// Exit codes of gleam.
const (
	ExitOK     = 0
	ExitFailed = 1 // the daemon refused, or was not reached
	ExitUsage  = 2 // the command line makes no sense

	ExitInterrupted = 130 // ended by a signal: the code of shells for SIGINT
)

// Env is the commands' environment.
type Env struct {
	Stdout io.Writer // data
	Stderr io.Writer // messages
	Socket string    // the socket of gleamd; --socket changes it
	Remote Remote    // switches that are asked over TCP
	Build  api.Version
	// Release removes a killed gleamd's entries at ports, at all ports if none is named,
	// and returns the number of entries.
	Release func(ports ...string) (int, error)
	// Kernel looks at the kernel of this machine; nil: it is not known.
	Kernel func() *api.Kernel
	// Counters returns the reasons and exits that packets are counted by; nil: they are not known.
	Counters func() []Counter
}

// Command makes a command of its own for the tree: packages that do more than call the
// daemon, such as the demo, become part of gleam by it.
type Command func(*Env) *cobra.Command

// New returns the command tree. Run is the usual way to execute it.
func New(env *Env, more ...Command) *cobra.Command {
	root := newRoot(env, "Look at and change a Gleam switch for RDMA multicast", `gleam asks the gleamd of this machine, over its Unix socket, for groups, ports
and counters, and registers and deletes groups by hand. With --address it asks that
of another machine, whose configuration has api.listen.`)
	root.AddCommand(groupCommand(env), portCommand(env), topologyCommand(env), statsCommand(env), eventsCommand(env), reloadCommand(env), traceCommand(env), decodeCommand(env), explainCommand(env), versionCommand(env))
	return complete(env, root, more)
}

// newRoot returns the command gleam with its flags.
func newRoot(env *Env, short, long string) *cobra.Command {
	root := &cobra.Command{
		Use:           "gleam",
		Short:         short,
		Long:          long,
		Version:       env.Build.Text(),
		SilenceErrors: true, // Run prints them
		SilenceUsage:  true,
	}
	root.SetOut(env.Stdout)
	root.SetErr(env.Stderr)
	root.PersistentFlags().StringVar(&env.Socket, "socket", env.Socket, "Unix socket of gleamd")
	env.Remote.addTo(root)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	return root
}

// complete gives root more commands, and the one that makes completions for shells.
func complete(env *Env, root *cobra.Command, more []Command) *cobra.Command {
	for _, c := range more {
		root.AddCommand(c(env))
	}
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		if c.HasSubCommands() && c.RunE == nil {
			noun(c)
		}
	}
	return noun(root)
}

// Run executes args, prints an error if there is one, and returns the exit code. The
// end of ctx by cancellation is the user's own wish: it is reported in a word, without
// the errors that follow from it.
//
// What is printed controls no terminal, whatever hosts, switches and files have as names and
// reasons. Commands that draw use terminal.Drawable.
func Run(ctx context.Context, env *Env, args []string, more ...Command) int {
	return run(ctx, env, args, func() *cobra.Command { return New(env, more...) })
}

func run(ctx context.Context, env *Env, args []string, tree func() *cobra.Command) int {
	env.Stdout, env.Stderr = terminal.NewWriter(terminal.Raw(env.Stdout)), terminal.NewWriter(terminal.Raw(env.Stderr))
	root := tree()
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return ExitOK
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		fmt.Fprintln(env.Stderr, "gleam: interrupted")
		for _, err := range besidesCanceled(err) {
			fmt.Fprintf(env.Stderr, "gleam: %s\n", err)
		}
		return ExitInterrupted
	}
	var code Exit
	if errors.As(err, &code) {
		return int(code)
	}
	fmt.Fprintf(env.Stderr, "gleam: %s\n", err)
	var usage usageError
	if errors.As(err, &usage) {
		fmt.Fprintf(env.Stderr, "See '%s --help'.\n", cmd.CommandPath())
		return ExitUsage
	}
	return ExitFailed
}

// besidesCanceled returns the errors in err that no cancellation explains, such as
// those of cleaning up.
func besidesCanceled(err error) []error {
	if !errors.Is(err, context.Canceled) {
		return []error{err}
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return nil
	}
	var rest []error
	for _, e := range joined.Unwrap() {
		rest = append(rest, besidesCanceled(e)...)
	}
	return rest
}

// Client returns a client of the daemon that --address or --socket names, for commands outside
// of this package.
func (e *Env) Client() *api.Client { return e.client() }

// client returns a client of the daemon that --address or --socket names.
func (e *Env) client() *api.Client {
	if e.Remote.Address != "" {
		return e.Remote.client(e.Remote.Address)
	}
	return api.Dial(e.Socket)
}
