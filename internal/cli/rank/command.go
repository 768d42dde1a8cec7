// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package rank

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"

	"github.com/spf13/cobra"

	"github.com/gleam-rdma/gleam/config"
	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/host/endpoint"
	"github.com/gleam-rdma/gleam/internal/cli"
	"github.com/gleam-rdma/gleam/internal/cli/port"
)

const long = `rank has the queue pairs of the ranks of torch.distributed of one address: the Python module
gleam_torch starts it, connects to its standard input, and maps its memory. It leaves the
groups of a process that ends at once, and ends with the last one. It is not for people.`

// options are the command's flags.
type options struct {
	backend, iface, device, address, keyFile string
	keyID                                    uint16
	qpTimeout                                uint8
	insecure, otherNetwork                   bool
	host                                     endpoint.HostConfig
}

// Command is `gleam rank`.
func Command(*cli.Env) *cobra.Command {
	o := &options{}
	c := &cobra.Command{
		Use: "rank", Short: "Have the queue pairs of ranks of torch.distributed, for gleam_torch", Long: long, Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := o.check(); err != nil {
				return err
			}
			l, err := socket(os.Stdin)
			if err != nil {
				return cli.UsageErrorf("%w", err)
			}
			defer l.Close()
			return o.run(c.Context(), l)
		},
	}
	f := c.Flags()
	f.StringVar(&o.backend, "backend", port.Soft, "soft, an Ethernet interface, or verbs, an RDMA device")
	f.StringVar(&o.iface, "interface", "", "network interface [the one that has --address]")
	f.StringVarP(&o.device, "device", "d", "", "RDMA device, with --backend verbs [the one of the interface]")
	f.StringVar(&o.address, "address", "", "the `address` of the queue pairs")
	f.StringVar(&o.keyFile, "key-file", "", "file with the key, in hexadecimal digits, that is shared with the switch and the other hosts")
	f.Uint16Var(&o.keyID, "key-id", 1, "the key's id in the switch's configuration")
	f.BoolVar(&o.insecure, "insecure", false, "do without a key: anybody who reaches the ports may take part")
	f.BoolVar(&o.otherNetwork, "other-network", false, "members join over another network than the group's")
	f.Uint8VarP(&o.qpTimeout, "qp-timeout", "u", 14, "the queue pairs' timeout, 4.096 µs * 2^n")
	_ = c.RegisterFlagCompletionFunc("backend", cobra.FixedCompletions(port.Backends, cobra.ShellCompDirectiveNoFileComp))
	return c
}

// check checks the flags, and reads the key.
func (o *options) check() error {
	if err := port.CheckDevice(o.backend, o.device, o.qpTimeout); err != nil {
		return cli.UsageErrorf("%w", err)
	}
	if o.keyFile != "" && o.insecure {
		return cli.UsageErrorf("%w", errors.New("either --key-file or --insecure"))
	}
	o.host.Auth.Insecure = o.insecure
	if o.keyFile != "" {
		secret, err := config.ReadSecret(o.keyFile)
		if err != nil {
			return fmt.Errorf("--key-file %s: %w", o.keyFile, err)
		}
		id := envelope.KeyID(o.keyID)
		o.host.Auth.Keys, o.host.Auth.Send = envelope.Keys{id: secret.Bytes()}, id
	}
	if err := port.CheckKey(&o.host); err != nil {
		return cli.UsageErrorf("%w", err)
	}
	if _, err := netip.ParseAddr(o.address); err != nil {
		return cli.UsageErrorf("--address %q is not an IP address", o.address)
	}
	return nil
}

// run opens the device and serves.
func (o *options) run(ctx context.Context, l *net.UnixListener) error {
	ip, err := netip.ParseAddr(o.address)
	if err != nil {
		return err
	}
	p, err := port.Open(port.Config{Backend: o.backend, Interface: o.iface, Device: o.device, Beside: ip, IPv6: ip.Is6()})
	if err != nil {
		return err
	}
	if p.IP != ip {
		return errors.Join(fmt.Errorf("the device has no address %s: it has %v", ip, p.Addrs()), p.Close())
	}
	host, err := endpoint.NewHost(ip, o.host)
	if err != nil {
		return errors.Join(err, p.Close())
	}
	ctx, cancel := context.WithCancel(ctx)
	h := newHelper(ctx)
	h.device, h.ip, h.host, h.qpTimeout, h.otherNetwork = p, ip, host, o.qpTimeout, o.otherNetwork
	err = h.listen(l)
	cancel()
	h.work.Wait()
	return errors.Join(err, host.Close(), p.Close())
}
