// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gleam-rdma/gleam/internal/cli"
)

// file is a manual page with its name in a folder of manual pages.
type file struct {
	name    string
	section int
	text    string
}

// dashed is a command's path as the name of its page.
func dashed(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "-") }

// ofCommand makes the pages of c and of all commands below it.
func ofCommand(s stamp, c *cobra.Command, section int) (files []file) {
	c.InitDefaultHelpFlag()
	c.InitDefaultVersionFlag()
	p := newPage(s, dashed(c), section, lowered(c.Short))
	p.heading("SYNOPSIS")
	fmt.Fprintln(p, synopsis(c))
	p.heading("DESCRIPTION")
	long := c.Long
	if long == "" {
		long = c.Short + "."
	}
	p.text(long, false)
	var below []*cobra.Command
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			below = append(below, sub)
		}
	}
	if len(below) > 0 {
		p.heading("COMMANDS")
		for _, sub := range below {
			p.item(see(dashed(sub), section))
			p.text(sub.Short+".", true)
		}
	}
	p.options("OPTIONS", c.NonInheritedFlags())
	p.options("OPTIONS OF ALL COMMANDS", c.InheritedFlags())
	if c.Example != "" {
		p.heading("EXAMPLES")
		p.text(c.Example, false)
	}
	if section == 1 {
		p.heading("EXIT STATUS")
		for _, e := range []struct {
			code int
			text string
		}{
			{cli.ExitOK, "Success."}, {cli.ExitFailed, "The command failed; standard error has the cause."},
			{cli.ExitUsage, "The command line makes no sense."}, {cli.ExitInterrupted, "A signal ended the command."},
		} {
			if own, ok := c.Annotations[fmt.Sprint("exit ", e.code)]; ok {
				e.text = own
			}
			p.item(bold(fmt.Sprint(e.code)))
			p.text(e.text, true)
		}
	}
	p.seeAlso(c, section)
	files = append(files, file{dashed(c), section, p.String()})
	for _, sub := range below {
		files = append(files, ofCommand(s, sub, section)...)
	}
	return files
}

// lowered is a sentence as the line below NAME has it.
func lowered(short string) string {
	if len(short) > 1 && short[1] >= 'a' && short[1] <= 'z' {
		return strings.ToLower(short[:1]) + short[1:]
	}
	return short
}

// synopsis is the usage line with the command's name in bold.
func synopsis(c *cobra.Command) string {
	line, path := c.UseLine(), c.CommandPath()
	if c.HasAvailableSubCommands() {
		line = path + " COMMAND [flags]"
	}
	return bold(path) + escape(strings.TrimPrefix(line, path))
}

// options lists flags with their arguments and defaults.
func (p *page) options(title string, flags *pflag.FlagSet) {
	if !flags.HasAvailableFlags() {
		return
	}
	p.heading(title)
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		argument, usage := pflag.UnquoteUsage(f)
		term := bold("--" + f.Name)
		if f.Shorthand != "" {
			term = bold("-"+f.Shorthand) + ", " + term
		}
		if argument != "" {
			term += " " + italic(argument)
		}
		p.item(term)
		if f.DefValue != "" && f.DefValue != "false" && f.DefValue != "[]" && !strings.Contains(usage, "(default ") {
			usage += fmt.Sprintf(" (default %s)", f.DefValue)
		}
		p.text(usage, true)
	})
}

// seeAlso names the pages beside that of c: above it, and those of the daemon.
func (p *page) seeAlso(c *cobra.Command, section int) {
	var names []string
	if up := c.Parent(); up != nil {
		names = append(names, see(dashed(up), section))
	} else if section == 8 {
		names = append(names, see("gleam", 1))
	}
	if section != 8 {
		names = append(names, see("gleamd", 8))
	}
	p.heading("SEE ALSO")
	fmt.Fprintln(p, strings.Join(append(names, see("gleamd.yaml", 5)), ", "))
}
