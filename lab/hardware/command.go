// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package hardware is the command `gleam hardware`. Its subcommand box records the NICs of a switch. Its
// subcommand host records the RNICs of a host, and tries them with a group. Both write an archive, and name
// the first step that failed.
package hardware

import (
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/gleam-rdma/gleam/internal/cli"
	"github.com/gleam-rdma/gleam/internal/cli/port"
	"github.com/gleam-rdma/gleam/internal/doctor/checks"
)

// common are the options of machines of all roles.
type common struct {
	out    string // the archive
	scrub  *scrubber
	log    io.Writer // the lines for people
	socket string    // gleamd's

	addresses bool
}

// anyAddress stands for --listen without a value.
const anyAddress = "any"

// Command is `gleam hardware`.
func Command(env *cli.Env) *cobra.Command {
	c := &cobra.Command{
		Use:   "hardware",
		Short: "Record and try the NICs and RNICs of a switch and its hosts, for a report",
	}
	c.AddCommand(boxCommand(env), hostCommand(env), showCommand(env))
	return c
}

const archiveNote = `The archive has report.md, whose first line is a row for docs/HARDWARE.md, machines.txt with
the facts as the tests of gleam doctor read them, steps.json with all results, and
doctor.json. It has no keys. Addresses of hosts are replaced by numbered names unless
--addresses is given. The exit code is 1 if something does not work: the last line
says what, and what to type next.`

func boxCommand(env *cli.Env) *cobra.Command {
	var o boxOptions
	c := &cobra.Command{
		Use:   "box PORT...",
		Short: "Record the NICs of a switch, at the switch",
		Long: `box records the drivers, firmware and settings of the interfaces that are a switch's
ports, what gleamd --check says of its configuration, and the report of gleam doctor if
gleamd runs. It changes nothing.

` + archiveNote,
		Example: `  gleam hardware box --config /etc/gleam/gleamd.yaml enp59s0f0 enp59s0f1`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cli.UsageErrorf("name the interfaces that are the switch's ports")
			}
			return nil
		},
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, args []string) error {
			o.ports = args
			o.begin(env)
			return box(c.Context(), &o)
		},
	}
	c.Flags().StringVarP(&o.config, "config", "c", "", "gleamd's configuration `file` [none]")
	o.addTo(c)
	return c
}

func hostCommand(env *cli.Env) *cobra.Command {
	o := hostOptions{keyID: 1, qpTimeout: 14, backend: port.Soft, port: 18530, seconds: 3, wait: 30 * time.Minute}
	if len(checks.This().Names(infiniband)) > 0 {
		o.backend = port.Verbs
	}
	var group string
	c := &cobra.Command{
		Use:   "host (--listen[=ADDR] | --group GROUP RECEIVER...)",
		Short: "Record and try the RNIC of a host: at each receiver, then at the source",
		Long: `host records the RDMA devices of a host, and then tries them with a group: gleam doctor
host, WRITE of verified bytes with path MTUs of 1024 and 4096 where they fit, SEND of verified
bytes, the latency of WRITE, a group whose source changes, a receiver whose gleam perf is
killed, and the latency without a group. Each has a bound in time.
Start it at each receiver, with --listen, and then at the source.

` + archiveNote,
		Example: `  gleam hardware host --listen --key-file /etc/gleam/gleam.key
  gleam hardware host --group 10.77.254.1 --key-file /etc/gleam/gleam.key 10.77.0.2 10.77.0.3`,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.complete(group, args); err != nil {
				return cli.UsageErrorf("%w", err)
			}
			o.begin(env)
			return host(c.Context(), &o)
		},
	}
	f := c.Flags()
	f.StringVar(&o.listen, "listen", "", "be a receiver, at an address [any]")
	f.Lookup("listen").NoOptDefVal = anyAddress
	f.StringVar(&group, "group", "", "be the source of a group of this address, out of the switch's group prefixes")
	f.StringVar(&o.keyFile, "key-file", "", "file with the key, in hexadecimal digits, that is shared with the switch and the other hosts")
	f.Uint16Var(&o.keyID, "key-id", o.keyID, "the key's id in the switch's configuration")
	f.StringVar(&o.backend, "backend", o.backend, "soft (any Ethernet interface) or verbs (an RNIC, or rdma_rxe); verbs where there is an RDMA device")
	f.StringVarP(&o.device, "device", "d", "", "RDMA device, with --backend verbs [the one of the interface]")
	f.StringVar(&o.netdev, "interface", "", "network interface [that of the route to the group, or of the address]")
	f.Uint8VarP(&o.qpTimeout, "qp-timeout", "u", o.qpTimeout, "the queue pairs' timeout, 4.096 µs * 2^n")
	f.Uint16VarP(&o.port, "port", "p", o.port, fmt.Sprintf("the first of %d TCP ports of receivers, the same at all hosts", len(trials)))
	f.Float64VarP(&o.seconds, "seconds", "D", o.seconds, "how long the source measures, in each step")
	f.DurationVar(&o.wait, "wait", o.wait, "how long a receiver waits for the source's last step")
	_ = c.RegisterFlagCompletionFunc("backend", cobra.FixedCompletions(port.Backends, cobra.ShellCompDirectiveNoFileComp))
	o.addTo(c)
	return c
}

// complete checks and combines the flags.
func (o *hostOptions) complete(group string, args []string) (err error) {
	if o.listen == anyAddress && len(args) == 1 { // "--listen ADDR" with a space
		o.listen, args = args[0], nil
	}
	if o.group, err = netip.ParseAddr(group); group != "" && (err != nil || o.group.IsMulticast()) {
		return fmt.Errorf("--group %q is not the address of a group", group)
	}
	switch {
	case (o.listen == "") == (group == ""):
		return errors.New("either --listen, at a receiver, or --group, at the source")
	case o.listen != "" && len(args) > 0:
		return fmt.Errorf("%q: a receiver (--listen) takes no arguments", args[0])
	case o.listen == "" && len(args) == 0:
		return errors.New("name the receivers, each of which has been started with --listen")
	case slices.ContainsFunc(append(args, o.listen), hasPort):
		return errors.New("hosts have no port of their own: --port is that of all")
	case o.listen != "" && o.listen != anyAddress && net.ParseIP(o.listen) == nil:
		return fmt.Errorf("--listen %q is not an IP address", o.listen)
	case o.keyFile == "":
		return errors.New("--key-file is missing: the file with the key that switch and hosts share")
	case math.IsNaN(o.seconds) || o.seconds <= 0 || o.seconds > 3600:
		return fmt.Errorf("--seconds %v: want more than 0, at most 3600", o.seconds)
	case o.wait <= 0:
		return fmt.Errorf("--wait %v: want more than 0", o.wait)
	case int(o.port)+len(trials) > math.MaxUint16:
		return fmt.Errorf("--port %d: want room for %d ports", o.port, len(trials))
	}
	o.receivers = args
	return port.CheckDevice(o.backend, o.device, o.qpTimeout)
}

func hasPort(at string) bool {
	_, _, err := net.SplitHostPort(at)
	return err == nil
}

func showCommand(env *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use:   "show ARCHIVE",
		Short: "Print the report of an archive",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return cli.UsageErrorf("name one archive, which box or host has written")
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			files, err := read(args[0])
			if err == nil {
				_, err = env.Stdout.Write(files[reportFile])
			}
			return err
		},
	}
}

func (c *common) addTo(cmd *cobra.Command) {
	cmd.Flags().StringVar(&c.out, "out", "", "write the archive to this file [gleam-hardware-ROLE.tar.gz]")
	cmd.Flags().BoolVar(&c.addresses, "addresses", false, "leave MAC and IP addresses, and names of receivers, in the archive")
}

// begin sets the options that follow from the environment and the flags.
func (c *common) begin(env *cli.Env) {
	c.log, c.socket = env.Stdout, env.Socket
	if !c.addresses {
		c.scrub = newScrubber()
	}
}
