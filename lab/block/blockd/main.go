// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Blockd is a replicated block device: `blockd replica` at each host that stores it, `blockd gateway` where NBD
// clients connect; `blockd label FILE` prints what a replica's file says of itself. Package block says what it promises.
package main

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/host/endpoint"
	"github.com/gleam-rdma/gleam/host/endpoint/soft"
	"github.com/gleam-rdma/gleam/host/endpoint/verbs"
	"github.com/gleam-rdma/gleam/lab/block"
	"github.com/gleam-rdma/gleam/lab/block/nbd"
)

// common are the flags of both programs.
type common struct {
	size, ring, backend, iface, ip, device string
	keyID, timeout                         uint
	loss                                   float64
}

func (c *common) flags(f *flag.FlagSet) {
	f.StringVar(&c.size, "size", "64M", "bytes of the device; K, M, G and T are powers of 1024")
	f.StringVar(&c.ring, "ring", "32M", "bytes for writes under way, the same at all hosts")
	f.StringVar(&c.backend, "backend", "soft", "soft (any Ethernet interface) or verbs (an RNIC, soft-RoCE)")
	f.StringVar(&c.iface, "interface", "", "network interface that leads to the switch")
	f.StringVar(&c.device, "device", "", "RDMA device, with -backend verbs")
	f.StringVar(&c.ip, "ip", "", "this host's address on it")
	f.Float64Var(&c.loss, "loss", 0, "share of the frames that -backend soft drops in each direction, to try it")
	f.UintVar(&c.keyID, "key-id", 1, "number of the key in GLEAM_KEY")
	f.UintVar(&c.timeout, "timeout", 14, "of queue pairs: 4.096 us * 2^n")
}

// host opens the device, and returns what joins of this host need.
func (c *common) host() (dev endpoint.Device, ip netip.Addr, host endpoint.HostConfig, err error) {
	key, err := hex.DecodeString(os.Getenv("GLEAM_KEY"))
	if err != nil || len(key) == 0 {
		return nil, ip, host, errors.New("GLEAM_KEY: want the key of gleamd's envelope.keys, in hexadecimal digits")
	}
	id := envelope.KeyID(c.keyID)
	host.Auth = envelope.Auth{Keys: envelope.Keys{id: key}, Send: id}
	if ip, err = netip.ParseAddr(c.ip); err != nil {
		return nil, ip, host, fmt.Errorf("-ip: %w", err)
	}
	switch c.backend {
	case "soft":
		dev, err = soft.Open(soft.Config{Interface: c.iface, Loss: c.loss, Seed: uint64(os.Getpid())})
	case "verbs":
		dev, err = verbs.Open(verbs.Config{Device: c.device, Interface: c.iface, LocalIP: ip})
	default:
		err = fmt.Errorf("-backend %s: want soft or verbs", c.backend)
	}
	return dev, ip, host, err
}

// bytes reads a number of bytes, a multiple of unit.
func bytes(name, s string, unit int64) (int64, error) {
	number, shift := s, 0
	if i := strings.IndexAny(s, "KMGT"); i >= 0 && i == len(s)-1 {
		number, shift = s[:i], 10*(1+strings.IndexByte("KMGT", s[i]))
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n <= 0 || n > 1<<50>>shift || n<<shift%unit != 0 {
		return 0, fmt.Errorf("-%s %s: want a multiple of %d bytes", name, s, unit)
	}
	return n << shift, nil
}

func (c *common) sizes() (size int64, ring int, err error) {
	size, err = bytes("size", c.size, 512)
	r, err2 := bytes("ring", c.ring, 4<<20)
	return size, int(r), errors.Join(err, err2)
}

func log(text string) { fmt.Fprintln(os.Stderr, text) }

func replica(ctx context.Context, args []string) error {
	var c common
	f := flag.NewFlagSet("blockd replica", flag.ExitOnError)
	c.flags(f)
	listen := f.String("listen", "", "address and port for the gateway [-ip, port 7300]")
	file := f.String("file", "", "holds the bytes [memory]")
	slow := f.Duration("slow", 0, "time before each write is applied, to try a slow disk")
	_ = f.Parse(args)
	size, ring, err := c.sizes()
	if err != nil {
		return err
	}
	store, err := block.OpenStore(*file, size)
	if err != nil {
		return err
	}
	defer store.Close()
	dev, ip, host, err := c.host()
	if err != nil {
		return err
	}
	at := netip.AddrPortFrom(ip, 7300)
	if *listen != "" {
		if at, err = netip.ParseAddrPort(*listen); err != nil {
			return fmt.Errorf("-listen: %w", err)
		}
	}
	return block.Serve(ctx, block.ReplicaConfig{
		Listen: at, Device: dev, LocalIP: ip, QPTimeout: uint8(c.timeout), Host: host, Store: store, Ring: ring, Slow: *slow, Log: log,
	})
}

func gateway(ctx context.Context, args []string) error {
	var c common
	f := flag.NewFlagSet("blockd gateway", flag.ExitOnError)
	c.flags(f)
	replicas := f.String("replicas", "", "HOST:PORT of each, with commas between")
	group := f.String("group", "", "GroupIP, of the switch's group prefixes")
	listen := f.String("listen", "", "for NBD clients: a Unix socket's path, or HOST:PORT")
	create := f.Bool("create", false, "the device is new: all replicas are empty")
	force := f.Bool("force", false, "start with the replicas that answer, though others may have newer writes")
	unicast := f.Bool("unicast", false, "send every write to each replica by itself, for comparison")
	quorum := f.Int("quorum", 0, "replicas that complete a write [all that live]")
	mtu := f.Int("mtu", 1024, "path MTU")
	dead := f.Duration("dead-after", 100*time.Millisecond, "silence after which the switch removes a replica")
	giveUp := f.Duration("give-up", 30*time.Second, "a request that waits for longer for a replica fails")
	_ = f.Parse(args)
	size, ring, err := c.sizes()
	if err != nil {
		return err
	}
	groupIP, err := netip.ParseAddr(*group)
	if err != nil {
		return fmt.Errorf("-group: %w", err)
	}
	if *replicas == "" || *listen == "" {
		return errors.New("want -replicas and -listen")
	}
	if *unicast && *quorum > 0 {
		return errors.New("-quorum is for a group, not for -unicast")
	}
	network := "unix"
	if !strings.Contains(*listen, "/") {
		network = "tcp"
	}
	ln, err := net.Listen(network, *listen)
	if err != nil {
		return err
	}
	defer ln.Close()
	dev, ip, host, err := c.host()
	if err != nil {
		return err
	}
	return block.Run(ctx, block.GatewayConfig{
		Size: size, Replicas: strings.Split(*replicas, ","), Create: *create, Force: *force, GroupIP: groupIP, Unicast: *unicast,
		Quorum: *quorum, PathMTU: *mtu, QPTimeout: uint8(c.timeout), DeadAfter: *dead, Device: dev, LocalIP: ip, Host: host,
		Ring: ring, GiveUp: *giveUp, Log: log,
	}, func(ctx context.Context, g *block.Gateway) error { return nbd.Serve(ctx, ln, g, log) })
}

// label prints what a replica's file says of itself.
func label(_ context.Context, args []string) error {
	f := flag.NewFlagSet("blockd label", flag.ExitOnError)
	text := f.String("size", "64M", "bytes of the device")
	_ = f.Parse(args)
	size, err := bytes("size", *text, 512)
	if err != nil {
		return err
	}
	l, err := block.ReadLabel(f.Arg(0), size)
	if err != nil {
		return err
	}
	out := json.NewEncoder(os.Stdout)
	out.SetIndent("", "  ")
	return out.Encode(l)
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	run := map[string]func(context.Context, []string) error{"replica": replica, "gateway": gateway, "label": label}
	if len(os.Args) < 2 || run[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: blockd replica|gateway|label [flags]; -help after each lists them")
		os.Exit(2)
	}
	if err := run[os.Args[1]](ctx, os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, "blockd:", err)
		os.Exit(1)
	}
}
