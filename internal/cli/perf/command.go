// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package perf

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gleam-rdma/gleam/config"
	"github.com/gleam-rdma/gleam/config/linkrate"
	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/host/endpoint"
	"github.com/gleam-rdma/gleam/internal/cli"
	"github.com/gleam-rdma/gleam/internal/cli/port"
	"github.com/gleam-rdma/gleam/rocev2"
)

const long = `perf measures bandwidth and latency of a group as perftest does for two hosts
(ib_write_bw, ib_write_lat, ib_send_bw, ib_send_lat), and of what would be done
without a group. Start a receiver on each host, then the sender:

  receivers   gleam perf write-bw --listen --key-file /etc/gleam/gleam.key
  sender      gleam perf write-bw --group 10.77.254.1 --key-file /etc/gleam/gleam.key HOST...

Receivers follow the sender's parameters; those that are given to a receiver
must agree with the sender's. A receiver serves one test, and ends.

Modes:
  group     one message to the group, which the switch copies
  unicasts  one message to every receiver, each over a queue pair of its own
  chain     the first receiver gets it and passes it on to the second, and so on
  tree      binomial: in round k each of the 2^k hosts that have it sends it on
Receivers of a chain or tree pass on pieces of --chunk bytes as they arrive.

Rows: one for each receiver, named by its address in the last column "at", and
"all" for the group as a whole.

Bandwidth: "all" is the payload that reaches every receiver, from the first post
until the sender knows that all have the last message. With N receivers, N times
as much is delivered. A receiver's row runs from its first message to its last; one whose program found
both at once has the sender's figures.
The peak is the best tenth of the run, with --duration the best 100 ms, of what was
posted and completed within it, and the average if that is more; 0.00 where a receiver
does not see each message (plain WRITE).

Latency: one message at a time; t is from posting until the sender knows, never
halved. Each receiver answers every message by an empty SEND: its row has the
time to its answer (with one receiver and --mode unicasts, half of t is what
ib_write_lat and ib_send_lat print); "all" has the time to the last answer.
"completion" is the time to the sender's completion, with unicasts to the last
of them: in RC, all live members then have the message. In a chain or tree a
completion says only that the next hop has it, so there is no such row.

Replicated writes: --size bytes each, --tx-depth of them at a time, go to the slots
of a window at each replica (--slots, in turn). A write is done when all replicas have
its bytes: its latency is the time from posting to the sender's completion, with
unicasts to the last one, in a chain or tree to the last replica's answer. A replica copies a write
to its store, and then gives its slot back by an answer; the sender waits where none is
free, so that no replica is overrun. Plain WRITEs tell a replica nothing: four in each turn of
the slots have immediate data, with --imm all.

Rotation: the sender is the source of a group first, then each receiver, then the sender
again, with the same queue pairs; nothing announces it to the switch. A turn is --iters
messages, at most --tx-depth of them; every member checks every byte. With --duration
the rounds go on for so long. A row has the source's rate, from its first post to its
last completion.

WRITE tests use RDMA WRITE. Where receivers have to notice each message (latency,
--verify, chain, tree) it is RDMA WRITE with immediate data; otherwise the first
and the last message are, so that receivers can tell the time.

--dcqcn has queue pairs slow down where the network is congested: the switch marks
(see ecn in gleamd's configuration), receivers tell the sender by CNPs.

With --dead-after a receiver whose program or host dies does not end the test. "Longest
pause" is the longest time in which no message got through to all that are left.

--verify fills every message with a pattern of its own, checks it at every
receiver before its memory is used again, and costs bandwidth.`

// command collects the flags of one test.
type command struct {
	env      *cli.Env
	params   Params
	local    Local
	size     bytesFlag
	chunk    bytesFlag
	rate     rateFlag
	duration float64 // seconds
	listen   string
	port     uint16
	group    string
	keyFile  string
	keyID    uint16
	insecure bool
	out      cli.Output
}

// Command is `gleam perf`.
func Command(env *cli.Env) *cobra.Command {
	c := &cobra.Command{
		Use: "perf", Short: "Measure bandwidth and latency of a group, and compare it with unicasts, a chain or a tree", Long: long,
	}
	for _, t := range []struct{ name, short string }{
		{WriteBW, "Bandwidth of RDMA WRITE"}, {WriteLat, "Latency of RDMA WRITE"},
		{SendBW, "Bandwidth of SEND"}, {SendLat, "Latency of SEND"},
		{Replicate, "Writes of a store to its replicas"},
		{Rotate, "WRITEs of each member in turn, to one group"},
	} {
		c.AddCommand(testCommand(env, t.name, t.short))
	}
	return c
}

func testCommand(env *cli.Env, test, short string) *cobra.Command {
	x := &command{env: env, params: Defaults(test), local: Local{Backend: port.Soft, QPTimeout: 14, Timeout: 10 * time.Second}}
	x.size, x.chunk = bytesFlag(x.params.Size), bytesFlag(x.params.Chunk)
	c := &cobra.Command{
		Use: test + " (--listen[=ADDR:PORT] | RECEIVER[:PORT]...)", Short: short, Long: short + ".\n\n" + long,
		Example: fmt.Sprintf(`  gleam perf %[1]s --listen --key-file /etc/gleam/gleam.key --key-id 1
  gleam perf %[1]s --group 10.77.254.1 --key-file /etc/gleam/gleam.key --key-id 1 -a 10.77.0.2 10.77.0.3 10.77.0.4
  gleam perf %[1]s --mode unicasts --key-file /etc/gleam/gleam.key -s 64K -D 5 -o json 10.77.0.2 10.77.0.3 10.77.0.4`, test),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              x.execute,
	}
	x.flags(c.Flags())
	x.out.AddTo(c)
	for name, values := range map[string][]string{
		"mode": Modes, "backend": port.Backends, "mtu": {"256", "512", "1024", "2048", "4096"},
	} {
		_ = c.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
	}
	return c
}

// listenAny stands for --listen without a value.
const listenAny = "any"

func (x *command) flags(f *pflag.FlagSet) {
	p, l := &x.params, &x.local
	f.StringVar(&x.listen, "listen", "", "be a receiver, at ADDR:PORT, ADDR or :PORT [any address, --port]")
	f.Lookup("listen").NoOptDefVal = listenAny
	f.Uint16VarP(&x.port, "port", "p", DefaultPort, "TCP port of receivers that name none")
	f.StringVar(&p.Mode, "mode", p.Mode, "group, unicasts, chain or tree")
	f.VarP(&x.size, "size", "s", "bytes of a message")
	f.BoolVarP(&p.All, "all", "a", false, "all sizes from 2 bytes to 8 MiB")
	f.IntVarP(&p.Iterations, "iters", "n", 0, "messages of each size [5000, latency 1000; of long messages fewer, 512 MiB in all]")
	if p.replicates() {
		f.IntVar(&p.Slots, "slots", p.Slots, "slots of a replica's window, each for one write")
		f.BoolVar(&p.Immediate, "imm", false, "immediate data with each write")
	}
	f.Float64VarP(&x.duration, "duration", "D", 0, "run for so many seconds instead")
	f.IntVarP(&p.PathMTU, "mtu", "m", p.PathMTU, "path MTU: "+rocev2.PathMTUText)
	f.IntVarP(&p.Lanes, "qps", "q", p.Lanes, "so many groups at once, with consecutive addresses; in other modes so many sets of queue pairs")
	f.IntVarP(&p.Depth, "tx-depth", "t", p.Depth, "most messages outstanding in a bandwidth test (of long ones fewer, 64 MiB in all)")
	f.Var(&x.chunk, "chunk", "bytes that receivers of a chain or tree pass on at a time")
	f.BoolVar(&p.Verify, "verify", false, "check every byte at every receiver")
	f.DurationVar(&p.DeadAfter, "dead-after", 0, "the switch removes a receiver that is silent for so long, and the test goes on with the others [the test ends]")
	f.Uint64Var(&p.Seed, "seed", p.Seed, "of the bytes that are verified")
	f.BoolVar(&p.Congestion, "dcqcn", false, "congestion control, with --rate as the line rate [1gbit]; with --backend soft")
	f.Var(&x.rate, "rate", "most that each queue pair sends, such as 100mbit; with --backend soft")
	f.StringVar(&x.group, "group", "", "the group's address, out of the switch's group prefixes")
	f.StringVar(&x.keyFile, "key-file", "", "file with the key, in hexadecimal digits, that is shared with the switch and the other hosts")
	f.Uint16Var(&x.keyID, "key-id", 1, "the key's id in the switch's configuration")
	f.BoolVar(&x.insecure, "insecure", false, "do without a key: anybody who reaches the ports may take part and read along")
	f.BoolVar(&l.OtherNetwork, "other-network", false, "RECEIVERs are addresses of another network than the group's, such as one for management")
	f.StringVar(&l.Backend, "backend", l.Backend, backendNote())
	f.StringVar(&l.Interface, "interface", "", "network interface [the one that the other side is reached by]")
	f.StringVarP(&l.Device, "device", "d", "", "RDMA device, with --backend verbs [the one of the interface]")
	f.Uint8VarP(&l.QPTimeout, "qp-timeout", "u", l.QPTimeout, "the queue pairs' timeout, 4.096 µs * 2^n")
	f.DurationVar(&l.Timeout, "timeout", l.Timeout, "give up if nothing happens for so long")
}

// interruption is the cause of an end by a signal, in the words that the other side
// reads. It counts as a cancellation.
type interruption string

const errInterrupted interruption = "interrupted"

func (i interruption) Error() string { return string(i) }

// Is makes the interruption equal to context.Canceled.
func (i interruption) Is(target error) bool { return target == context.Canceled }

func (x *command) execute(c *cobra.Command, args []string) error {
	if err := x.complete(args); err != nil {
		return cli.UsageErrorf("%w", err)
	}
	if err := x.readKey(); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(c.Context()))
	defer cancel(nil)
	defer context.AfterFunc(c.Context(), func() { cancel(errInterrupted) })()
	if err := port.CheckKey(&x.local.Host); x.listen != "" && err != nil {
		return cli.UsageErrorf("%w", err)
	}
	if x.listen != "" {
		var given []string
		c.Flags().Visit(func(f *pflag.Flag) { given = append(given, f.Name) })
		return Listen(ctx, &ListenOptions{
			Params: x.params, Given: given, Local: x.local, Address: x.listen,
			Say: func(msg string) { fmt.Fprintln(x.env.Stderr, msg) },
		})
	}
	o := &SendOptions{Params: x.params, Local: x.local}
	for _, a := range args {
		o.Receivers = append(o.Receivers, withPort(a, x.port))
	}
	if x.group != "" {
		ip, err := netip.ParseAddr(x.group)
		if err != nil {
			return cli.UsageErrorf("--group %q is not an IP address", x.group)
		}
		o.GroupIP = ip
	}
	if err := o.check(); err != nil {
		return cli.UsageErrorf("%w", err)
	}
	return x.send(ctx, o)
}

// complete checks and combines the flags.
func (x *command) complete(args []string) error {
	if math.IsNaN(x.duration) || x.duration < 0 || x.duration > 86400 {
		return fmt.Errorf("--duration %v: want seconds, at most a day", x.duration)
	}
	x.params.Size, x.params.Chunk, x.params.Rate = int(x.size), int(x.chunk), linkrate.Rate(x.rate)
	x.params.Duration = time.Duration(x.duration * float64(time.Second))
	if x.keyFile != "" && x.insecure {
		return errors.New("either --key-file or --insecure")
	}
	if x.listen == "" {
		return nil // SendOptions.check checks the rest
	}
	if x.listen == listenAny && len(args) == 1 { // "--listen ADDR" with a space
		x.listen, args = args[0], nil
	}
	if len(args) > 0 {
		return fmt.Errorf("%q: a receiver (--listen) takes no arguments", args[0])
	}
	if x.group != "" {
		return errors.New("--group is for the sender only: receivers get it from the sender")
	}
	if x.listen == listenAny {
		x.listen = ""
	}
	x.listen = withPort(x.listen, x.port)
	if err := x.params.check(); err != nil {
		return err
	}
	return x.local.check()
}

// readKey reads the key for registrations from its file.
func (x *command) readKey() error {
	x.local.Host = endpoint.HostConfig{Deadline: x.local.Timeout, Auth: envelope.Auth{Insecure: x.insecure}}
	if x.keyFile == "" {
		return nil
	}
	secret, err := config.ReadSecret(x.keyFile)
	if err != nil {
		return fmt.Errorf("--key-file %s: %w", x.keyFile, err)
	}
	x.local.Host.Auth.Keys = envelope.Keys{envelope.KeyID(x.keyID): secret.Bytes()}
	x.local.Host.Auth.Send = envelope.KeyID(x.keyID)
	return nil
}

func (x *command) send(ctx context.Context, o *SendOptions) error {
	t := &table{w: x.env.Stdout}
	if x.out.ForPeople() { // the lines appear as they are measured
		o.OnEachSize = t.size
		t.begin(o)
	}
	o.OnAgain = func(err error) { fmt.Fprintf(x.env.Stderr, "%v\n", err) }
	res, err := Send(ctx, o)
	if err != nil {
		return err
	}
	return x.out.Print(x.env.Stdout, res, func(io.Writer) error {
		t.end(res)
		return t.err
	})
}

// bytesFlag is a number of bytes in the notation of perftest: 65536, 64K, 1M, 1G.
type bytesFlag int

// Set parses s.
func (b *bytesFlag) Set(s string) error {
	shift := map[string]uint{"k": 10, "m": 20, "g": 30}
	digits := strings.TrimRight(strings.ToLower(s), "kmg")
	unit := strings.ToLower(s)[len(digits):]
	n, err := strconv.ParseUint(digits, 10, 40)
	if err != nil || unit != "" && shift[unit] == 0 || n > maxSize>>shift[unit] {
		return fmt.Errorf("%q: want a number of bytes up to 1G, such as 4096, 64K or 8M", s)
	}
	*b = bytesFlag(n << shift[unit])
	return nil
}

// String returns the number of bytes.
func (b *bytesFlag) String() string { return strconv.Itoa(int(*b)) }

// Type names the value in help texts.
func (b *bytesFlag) Type() string { return "bytes" }

// rateFlag is a linkrate.Rate on the command line.
type rateFlag linkrate.Rate

// Set parses s.
func (r *rateFlag) Set(s string) error {
	v, err := linkrate.Parse(s)
	*r = rateFlag(v)
	return err
}

// String returns the rate in the notation of Set.
func (r *rateFlag) String() string {
	if *r == 0 {
		return "" // the default needs no mention
	}
	return linkrate.Rate(*r).String()
}

// Type names the value in help texts.
func (r *rateFlag) Type() string { return "rate" }
