// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Command manuals writes manual pages and completions below a folder, as packages install
// them: gleam(1) with a page for each command and gleamd(8), of the text that --help prints,
// and gleamd.yaml(5), of config/reference.yaml. The same sources give the same bytes.
//
//	manuals VERSION DATE SHARE
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/cmd/commands"
	labcommand "github.com/gleam-rdma/gleam/cmd/gleam-lab/command"
	"github.com/gleam-rdma/gleam/cmd/gleamd/command"
	"github.com/gleam-rdma/gleam/internal/cli"
)

// referenceFile is the owner of the explanations of gleamd.yaml's keys.
const referenceFile = "config/reference.yaml"

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "manuals: %s\n", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 3 {
		return errors.New("want VERSION DATE SHARE: the folder for man and completions, such as /usr/share")
	}
	pages, err := all(stamp{args[0], args[1]}, referenceFile)
	if err != nil {
		return err
	}
	for _, f := range pages {
		name := filepath.Join(args[2], "man", fmt.Sprintf("man%d", f.section), fmt.Sprintf("%s.%d", f.name, f.section))
		if err := write(name, f.text); err != nil {
			return err
		}
	}
	return completions(args[2])
}

// gleam is the command gleam with the defaults that users have.
func gleam(version string) *cobra.Command {
	return cli.New(&cli.Env{Stdout: io.Discard, Stderr: io.Discard, Socket: api.DefaultSocket, Remote: cli.DefaultRemote(), Build: api.Version{Version: version}}, slices.Concat(commands.OfGleam, labcommand.Commands)...)
}

// all makes all pages.
func all(s stamp, reference string) ([]file, error) {
	text, err := os.ReadFile(reference)
	if err != nil {
		return nil, err
	}
	configuration, err := ofConfiguration(s, string(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", reference, err)
	}
	gleamd := command.Gleamd(s.version, nil, func(context.Context, string) error { return nil })
	pages := append(ofCommand(s, gleam(s.version), 1), ofCommand(s, gleamd, 8)...)
	return append(pages, configuration), nil
}

// completions writes those of gleam where shells look for them.
func completions(share string) error {
	c := gleam("")
	for _, shell := range []struct {
		name  string
		write func(file string) error
	}{
		{"bash-completion/completions/gleam", func(file string) error { return c.GenBashCompletionFileV2(file, true) }},
		{"zsh/vendor-completions/_gleam", c.GenZshCompletionFile},
		{"fish/vendor_completions.d/gleam.fish", func(file string) error { return c.GenFishCompletionFile(file, true) }},
	} {
		name := filepath.Join(share, shell.name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return err
		}
		if err := shell.write(name); err != nil {
			return err
		}
	}
	return nil
}

func write(name, text string) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return os.WriteFile(name, []byte(text), 0o644)
}
