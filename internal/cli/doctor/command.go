// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package doctor is `gleam doctor`.
package doctor

import (
	"fmt"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/gleam-rdma/gleam/config"
	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/internal/cli"
	"github.com/gleam-rdma/gleam/internal/cli/port"
	"github.com/gleam-rdma/gleam/internal/doctor"
)

// statuses are the exit codes, as the manual page has them.
var statuses = map[string]string{"exit 0": "There are no findings.", "exit 1": "There are warnings, and no errors.", "exit 2": "There are errors, nothing could be looked at, or the command line makes no sense."}

const exitCodes = `Exit code: 0 there are no findings, 1 there are warnings, 2 there are errors (or the
command line makes no sense).`

// Command makes `gleam doctor`, which reads gleamd's configuration from a file.
func Command(configFile string) cli.Command {
	return func(env *cli.Env) *cobra.Command {
		var out cli.Output
		o := doctor.SwitchOptions{Config: configFile}
		c := &cobra.Command{
			Use: "doctor", Annotations: statuses,
			Short: "What is wrong with this switch, what it costs, and the command that repairs it",
			Long: `Looks at this machine, at gleamd's configuration, at gleamd if it runs, and at the
way to each member: kernel, XDP mode and other XDP programs, offloads, MTUs, huge
pages, locked memory, interrupts and CPUs of workers, clocks, neighbour tables,
modes of key files, groups that stand still. It changes nothing. What gleamd --check
says is part of it; with --address it looks at another machine's gleamd alone.

To members it sends echo requests of the length of the groups' longest packets, and
to masters timestamp requests (ICMP), at most 256 of each; --no-packets has it send none.

` + exitCodes,
			Args: noArguments, ValidArgsFunction: cobra.NoFileCompletions,
			RunE: func(c *cobra.Command, _ []string) error {
				client := env.Client()
				defer client.Close()
				o.Client, o.Remote = client, env.Remote.Address != ""
				return report(env, &out, func() (*doctor.Report, error) { return doctor.Switch(c.Context(), o) })
			},
		}
		c.Flags().StringVarP(&o.Config, "config", "c", o.Config, "gleamd's configuration `file`")
		c.Flags().BoolVarP(&o.NoPackets, "no-packets", "n", false, "send no packets to members and masters")
		out.AddTo(c)
		c.AddCommand(hostCommand(env))
		return c
	}
}

// hostCommand is `gleam doctor host`.
func hostCommand(env *cli.Env) *cobra.Command {
	var out cli.Output
	o := doctor.HostOptions{PathMTU: 1024, Timeout: 14, Retries: 7, RNRRetry: 7, DeadAfter: 100 * time.Millisecond}
	var group, keyFile string
	var keyID uint16 = 1
	backend := port.Soft
	if devices, err := os.ReadDir("/sys/class/infiniband"); err == nil && len(devices) > 0 {
		backend = port.Verbs
	}
	c := &cobra.Command{
		Use: "host", Annotations: statuses,
		Short: "What keeps this host from being in a group",
		Long: `Looks at this machine as a host of groups, with an RNIC (--backend verbs) or with
software queue pairs: interface, MTU, offloads, RDMA device with a GID of type RoCE
v2, route to the address of a group, packets of full length to the switch and back, and
the settings of queue pairs. It changes nothing.

All who answer ARP or neighbour discovery for the group are asked, each at its MAC
address, whether they are the switch: a host with the same address and a router with
proxy ARP are named. Without a key the switch says so itself, which a host that
wants to deceive can say too; with --key-file it proves that it has the group's key.

` + exitCodes,
		Example: `  gleam doctor host --group 10.77.254.1
  gleam doctor host --group 10.77.254.1 --key-file /etc/gleam/gleam.key
  gleam doctor host --backend verbs --device mlx5_0 --group 10.77.254.1 --mtu 4096 --qp-timeout 14 --retries 7`,
		Args: noArguments, ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, _ []string) error {
			if !slices.Contains(port.Backends, backend) {
				return cli.UsageErrorf("--backend %q: want one of %v", backend, port.Backends)
			}
			o.Verbs = backend == port.Verbs
			if group != "" {
				ip, err := netip.ParseAddr(group)
				if err != nil || ip.IsMulticast() || ip.IsUnspecified() || ip.Zone() != "" {
					return cli.UsageErrorf("--group %q is not the address of a group", group)
				}
				o.Group = ip.Unmap()
			}
			if keyFile != "" {
				secret, err := config.ReadSecret(keyFile)
				if err != nil {
					return cli.UsageErrorf("--key-file %s: %w", keyFile, err)
				}
				id := envelope.KeyID(keyID)
				o.Auth = envelope.Auth{Keys: envelope.Keys{id: secret.Bytes()}, Send: id}
			}
			return report(env, &out, func() (*doctor.Report, error) { return doctor.Host(c.Context(), o) })
		},
	}
	f := c.Flags()
	f.StringVar(&backend, "backend", backend, "soft (any Ethernet interface) or verbs (an RNIC, or rdma_rxe); verbs where there is an RDMA device")
	f.StringVar(&o.Interface, "interface", "", "network interface [that of the route to --group]")
	f.StringVar(&o.Device, "device", "", "RDMA device, for verbs [the first on the interface]")
	f.StringVar(&group, "group", "", "address of a group, registered or not")
	f.StringVar(&keyFile, "key-file", "", "file with the group's key, in hexadecimal digits, by which the switch proves that it is one")
	f.Uint16Var(&keyID, "key-id", keyID, "number of the key in envelope.keys of the switch")
	f.IntVarP(&o.PathMTU, "mtu", "m", o.PathMTU, "path MTU in bytes")
	f.Uint8Var(&o.Timeout, "qp-timeout", o.Timeout, "timeout of queue pairs, as in verbs (4.096 µs * 2^n)")
	f.Uint8Var(&o.Retries, "retries", o.Retries, "their retry_cnt")
	f.Uint8Var(&o.RNRRetry, "rnr-retry", o.RNRRetry, "their rnr_retry")
	f.DurationVar(&o.DeadAfter, "dead-after", o.DeadAfter, "dead_after of the group; 0: nobody is removed")
	_ = c.RegisterFlagCompletionFunc("backend", cobra.FixedCompletions(port.Backends, cobra.ShellCompDirectiveNoFileComp))
	out.AddTo(c)
	return c
}

// report prints a report, and returns its exit code as an error. What is looked at belongs to
// the namespace of one thread.
func report(env *cli.Env, out *cli.Output, look func() (*doctor.Report, error)) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	r, err := look()
	if err != nil {
		fmt.Fprintf(env.Stderr, "gleam: %s\n", err)
		return cli.Exit(doctor.ExitErrors)
	}
	err = out.Print(env.Stdout, r, r.WriteText)
	if code := r.ExitCode(); err == nil && code != doctor.ExitClean {
		return cli.Exit(code)
	}
	return err
}

func noArguments(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return cli.UsageErrorf("%q: %s takes no arguments", args[0], c.CommandPath())
	}
	return nil
}
