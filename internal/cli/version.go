// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/gleam-rdma/gleam/api"
)

// versions is the output of `gleam version -o json`.
type versions struct {
	Gleam  build         `json:"gleam"`
	Gleamd *api.Version  `json:"gleamd"` // null if it was not reached
	Kernel *kernelReport `json:"kernel"` // null if nobody tells
}

// build is this program: api.Version without the daemon's fields.
type build struct {
	Version  string `json:"version"`
	Commit   string `json:"commit"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// kernelReport is what a kernel has, with the program that has found it out.
type kernelReport struct {
	Of string `json:"of"` // ofGleamd or ofGleam
	*api.Kernel
}

// The programs that find out what a kernel has.
const (
	ofGleamd = "gleamd"
	ofGleam  = "gleam"
)

func versionCommand(env *Env) *cobra.Command {
	var out output
	c := &cobra.Command{
		Use:   "version",
		Short: "Versions of this program, the daemon and the kernel, and what is degraded",
		Long: `Prints the versions of this program and of the daemon, with their commits, what the
daemon's kernel has of what gleamd uses, what the drivers of its ports have for XDP,
and what is degraded because something is absent. Without a daemon it says so on
standard error, looks at this machine, and still succeeds. As root it sees more.
gleam doctor looks at configuration and groups as well, and says what repairs them.`,
		Args: noArgs, ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, _ []string) error {
			b := &env.Build
			v := versions{Gleam: build{b.Version, b.Commit, b.Go, b.Platform}}
			var err error
			if v.Gleamd, err = env.client().Version(c.Context()); err != nil {
				v.Gleamd = nil
				fmt.Fprintf(env.Stderr, "gleam: gleamd's version is unknown: %s\n", err)
				if env.Remote.Address == "" && env.Kernel != nil {
					v.Kernel = &kernelReport{ofGleam, env.Kernel()}
				}
			} else if k, err := env.client().Kernel(c.Context()); err != nil {
				fmt.Fprintf(env.Stderr, "gleam: what gleamd's kernel has is unknown: %s\n", err)
			} else {
				v.Kernel = &kernelReport{ofGleamd, k}
			}
			return out.print(env.Stdout, v, func(w io.Writer) { versionTable(w, &v, out.format == formatWide) })
		},
	}
	out.addTo(c)
	return c
}

func versionTable(w io.Writer, v *versions, wide bool) {
	fmt.Fprintln(w, "PROGRAM\tVERSION\tCOMMIT\tGO\tPLATFORM\tPID\tSTARTED")
	fmt.Fprintf(w, "gleam\t%s\t%s\t%s\t%s\t-\t-\n", v.Gleam.Version, text(v.Gleam.Commit), v.Gleam.Go, text(v.Gleam.Platform))
	if d := v.Gleamd; d != nil {
		fmt.Fprintf(w, "gleamd\t%s\t%s\t%s\t%s\t%d\t%s\n", d.Version, text(d.Commit), d.Go, text(d.Platform), d.Pid, localTime(d.Started))
	}
	if v.Kernel != nil {
		kernelTables(w, v.Kernel, wide)
	}
}

func kernelTables(w io.Writer, k *kernelReport, wide bool) {
	fmt.Fprintf(w, "\nLinux %s, as %s has found it\n", text(k.Release), k.Of)
	fmt.Fprint(w, "FEATURE\tSTATE\tREQUIRED\tDETAIL")
	if wide {
		fmt.Fprint(w, "\tUSE")
	}
	fmt.Fprintln(w)
	for _, f := range k.Features {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s", f.Name, f.State, yesNo(f.Required), text(f.Detail))
		if wide {
			fmt.Fprintf(w, "\t%s", f.Use)
		}
		fmt.Fprintln(w)
	}
	if len(k.Interfaces) > 0 {
		fmt.Fprintln(w, "\nINTERFACE\tDRIVER\tNATIVE XDP\tZERO COPY\tMULTI-BUFFER\tTAKES REDIRECTED")
	}
	for _, i := range k.Interfaces {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", i.Name, text(i.Driver), yesNo(i.Native), yesNo(i.ZeroCopy), yesNo(i.MultiBuffer), yesNo(i.Redirect))
	}
	fmt.Fprintln(w)
	if len(k.Degraded) == 0 {
		known := "Nothing is degraded."
		if slices.ContainsFunc(k.Features, func(f api.KernelFeature) bool { return f.State == api.FeatureUnknown }) {
			known = "Nothing that is known is degraded."
		}
		fmt.Fprintln(w, known)
		return
	}
	fmt.Fprintln(w, "Degraded:")
	for _, d := range k.Degraded {
		where := ""
		if d.Port != "" {
			where = "port " + d.Port + ": "
		}
		fmt.Fprintf(w, "  %s%s: %s\n", where, d.Text, d.Cost)
	}
}
