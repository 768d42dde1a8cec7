// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package cp

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gleam-rdma/gleam/config"
	"github.com/gleam-rdma/gleam/config/linkrate"
	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/internal/cli"
	"github.com/gleam-rdma/gleam/internal/cli/port"
	"github.com/gleam-rdma/gleam/rocev2"
)

const long = `cp copies files and directories to hosts, which receive them below the directory of
"gleam cp --receive DIR". With --group the bytes go once from here, to a group of the
hosts, and the switch makes the copies; without it they go to each host by TCP.

HOST is an address, with or without a port, or a name with one ("host3:18517").
A file with such a name is written with its directory ("./10.0.0.1").

The same command again sends what is missing: a receiver hashes what it has of the
files, and gets the chunks whose hashes differ. Each chunk is checked by an HMAC
under a key of the copy, which the connections carry encrypted; the bytes of the
group's chunks themselves are not encrypted. Unfinished files have names that begin
with .gleam-cp. and become the files when they are whole. Permissions and times are
kept, owners are not. Symbolic links that are named are followed, others skipped;
a file that is replaced meanwhile makes the copy fail. A copy that breaks off leaves
directories with their own permissions.

A receiver that holds up the others (--slow), or is silent (--dead-after), or ends,
is taken out of the group, and gets the rest by TCP when the group is done.

Exit code 0: all hosts have all files. 1: some have not; each is named with the reason.`

// command collects the flags.
type command struct {
	env      *cli.Env
	o        SendOptions
	receive  string
	listen   string
	group    string
	rate     string
	keyFile  string
	keyID    uint16
	insecure bool
	silent   bool
	out      cli.Output
}

// Command is `gleam cp`.
func Command(env *cli.Env) *cobra.Command {
	x := &command{env: env, o: DefaultSendOptions()}
	c := &cobra.Command{
		Use: "cp (FILE... HOST... | --receive DIR)", Short: "Copy files and directories to many hosts at once, by a group", Long: long,
		Example: `  gleam cp --receive /srv/models --key-file /etc/gleam/gleam.key
  gleam cp --group 10.77.254.1 --key-file /etc/gleam/gleam.key weights.bin 10.77.0.2 10.77.0.3 10.77.0.4`,
		RunE: x.execute,
	}
	f := c.Flags()
	x.flags(f)
	x.out.AddTo(c)
	for name, values := range map[string][]string{
		"backend": port.Backends, "mtu": {"256", "512", "1024", "2048", "4096"},
	} {
		_ = c.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
	}
	return c
}

func (x *command) flags(f *pflag.FlagSet) {
	o := &x.o
	f.StringVar(&x.receive, "receive", "", "be a receiver, until a signal: files come below this `directory`")
	f.StringVar(&x.listen, "listen", fmt.Sprintf(":%d", DefaultPort), "`ADDR:PORT` of a receiver")
	f.StringVar(&x.group, "group", "", "the group's `address`, out of the switch's group prefixes [none: by TCP to each host]")
	f.StringVar(&x.keyFile, "key-file", "", "file with the key, in hexadecimal digits, that is shared with the switch and the other hosts")
	f.Uint16Var(&x.keyID, "key-id", 1, "the key's id in the switch's configuration")
	f.BoolVar(&x.insecure, "insecure", false, "do without a key: anybody who reaches the ports may read and write the files")
	f.IntVarP(&o.MTU, "mtu", "m", o.MTU, "path MTU: "+rocev2.PathMTUText)
	f.IntVar(&o.Chunk, "chunk", o.Chunk, "bytes of a chunk")
	f.IntVar(&o.Window, "window", o.Window, "most chunks under way")
	f.DurationVar(&o.Slow, "slow", o.Slow, "a receiver that has held up the others for so long leaves the group; 0: never")
	f.DurationVar(&o.DeadAfter, "dead-after", o.DeadAfter, "silence after which the switch removes a receiver from the group")
	f.DurationVar(&o.Timeout, "timeout", o.Timeout, "longest wait for a host that does not answer")
	f.StringVar(&x.rate, "rate", "", "most that the group is sent, such as 100mbit; with --backend soft")
	f.StringVar(&o.Backend, "backend", o.Backend, "soft, an Ethernet interface, or verbs, an RDMA device")
	f.StringVar(&o.Interface, "interface", "", "network interface [the one that the other side is reached by]")
	f.StringVarP(&o.Device, "device", "d", "", "RDMA device, with --backend verbs [the one of the interface]")
	f.Uint8VarP(&o.QPTimeout, "qp-timeout", "u", o.QPTimeout, "the queue pair's timeout, 4.096 µs * 2^n")
	f.BoolVar(&x.silent, "no-progress", false, "print no progress")
}

func (x *command) execute(c *cobra.Command, args []string) error {
	if err := x.complete(args); err != nil {
		return cli.UsageErrorf("%w", err)
	}
	x.o.Host.Auth.Insecure = x.insecure
	if x.keyFile != "" {
		secret, err := config.ReadSecret(x.keyFile)
		if err != nil {
			return fmt.Errorf("--key-file %s: %w", x.keyFile, err)
		}
		id := envelope.KeyID(x.keyID)
		x.o.Host.Auth.Keys, x.o.Host.Auth.Send = envelope.Keys{id: secret.Bytes()}, id
	}
	d := newDisplay(x.env.Stderr)
	if x.receive != "" {
		if err := x.o.Local.check(); err != nil {
			return cli.UsageErrorf("%w", err)
		}
		err := Receive(c.Context(), &ReceiveOptions{Local: x.o.Local, Dir: x.receive, Address: x.listen, Say: d.say})
		if errors.Is(err, context.Canceled) {
			return nil // the way a receiver ends
		}
		return err
	}
	if err := x.o.check(); err != nil {
		return cli.UsageErrorf("%w", err)
	}
	x.o.Say = d.say
	if !x.silent {
		x.o.Progress = d.show
	}
	r, err := Send(c.Context(), &x.o)
	d.end()
	if r == nil {
		return err
	}
	return errors.Join(err, x.out.Print(x.env.Stdout, r, r.table))
}

// complete checks and combines the flags.
func (x *command) complete(args []string) error {
	switch {
	case x.keyFile != "" && x.insecure:
		return errors.New("either --key-file or --insecure")
	case x.receive != "" && len(args) > 0:
		return fmt.Errorf("%q: a receiver (--receive) takes no arguments", args[0])
	case x.receive != "" && x.group != "":
		return errors.New("--group is for the sender only: receivers get it from the sender")
	}
	if x.rate != "" {
		r, err := linkrate.Parse(x.rate)
		if err != nil {
			return fmt.Errorf("--rate: %w", err)
		}
		x.o.Rate = r
	}
	if x.group != "" {
		ip, err := netip.ParseAddr(x.group)
		if err != nil {
			return fmt.Errorf("--group %q is not an IP address", x.group)
		}
		x.o.GroupIP = ip
	}
	x.o.Files, x.o.Hosts = split(args)
	return nil
}

// split tells files from hosts, which come last.
func split(args []string) (files, hosts []string) {
	i := len(args)
	for i > 0 && isHost(args[i-1]) {
		i--
	}
	return args[:i], args[i:]
}

func isHost(s string) bool {
	if _, err := netip.ParseAddr(strings.Trim(s, "[]")); err == nil {
		return true
	}
	i := strings.LastIndexByte(s, ':')
	if i <= 0 || strings.ContainsRune(s, '/') || i == len(s)-1 {
		return false
	}
	return strings.Trim(s[i+1:], "0123456789") == ""
}
