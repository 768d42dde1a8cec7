// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package perf

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/gleam-rdma/gleam/config"
	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/internal/cli"
	gleamd "github.com/gleam-rdma/gleam/internal/control"
	"github.com/gleam-rdma/gleam/lab"
	"github.com/gleam-rdma/gleam/test/labtest"
)

const testKey = "8f4be1a60c7d395214d3fa887ce02b9156af3e70c9d8421b6d05b7f2903a6ec4"

// net4 is a switch with a sender and three receivers around it.
type net4 struct {
	star   *lab.Star
	engine *gleamd.Engine
	key    string // file
	cfg    *config.Config
	stop   func() // ends the switch, once
}

func newNet4(t *testing.T) *net4 { return newNet4With(t, "") }

// newNet4With makes one whose port p3, that of host 2, has more in the switch's
// configuration.
func newNet4With(t *testing.T, port string) *net4 { return newNet4On(t, 0, port) }

// newNet4On makes one with links of that MTU; 0 means 1500.
func newNet4On(t *testing.T, mtu int, port string) *net4 {
	t.Helper()
	n := &net4{star: labtest.Star(t, lab.StarConfig{Hosts: 4, MTU: mtu}), key: filepath.Join(t.TempDir(), "key")}
	if err := os.WriteFile(n.key, []byte(testKey+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(n.star.Config(), "name: p3\n", "name: p3\n"+port, 1) + "umem: {frames: 8192}\nrings: {rx: 512, tx: 512, fill: 512, completion: 512}\n" +
		"envelope: {keys: [{id: 7, secret: \"hex:" + testKey + "\"}]}\n"
	cfg, err := config.Parse("test.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	n.cfg = cfg
	n.start(t)
	t.Cleanup(func() { n.stop() })
	return n
}

// start runs the switch.
func (n *net4) start(t *testing.T) {
	t.Helper()
	note := func(warn bool, msg string, kv ...any) {}
	if err := n.star.Switch.Do(func() (err error) { n.engine, err = gleamd.Open(n.cfg, note); return err }); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	engine := n.engine
	go func() { ended <- n.star.Switch.Do(func() error { return engine.Run(ctx) }) }()
	n.stop = sync.OnceFunc(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("run: %v", err)
		}
		if err := engine.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
}

// process is a gleam that runs in this process, at one host.
type process struct {
	code           int
	stdout, stderr bytes.Buffer
}

// gleam runs a command line at host i of the star.
func (n *net4) gleam(ctx context.Context, i int, args ...string) *process {
	p := &process{}
	command := func(e *cli.Env) *cobra.Command { return Command(e) }
	err := n.star.Hosts[i].NS.Do(func() error {
		p.code = cli.Run(ctx, &cli.Env{Stdout: &p.stdout, Stderr: &p.stderr}, append([]string{"perf"}, args...), command)
		return nil
	})
	if err != nil {
		fmt.Fprintln(&p.stderr, err)
		p.code = -1
	}
	return p
}

// trial is a sender and its receivers.
type trial struct {
	test      string
	send      []string // flags of the sender
	listen    []string // flags of all receivers
	receivers int      // [3]
}

func (n *net4) auth() []string { return []string{"--key-file", n.key, "--key-id", "7"} }

// run runs a trial to its end.
func (n *net4) run(ctx context.Context, c trial) (sender *process, receivers []*process) {
	if c.receivers == 0 {
		c.receivers = 3
	}
	receivers = make([]*process, c.receivers)
	send := slices.Concat([]string{c.test}, n.auth(), c.send)
	var wg sync.WaitGroup
	for i := range receivers {
		ip := n.star.Hosts[i+1].IPv4.String()
		send = append(send, ip)
		args := append([]string{c.test, "--listen=" + ip}, n.auth()...)
		args = append(args, c.listen...)
		wg.Go(func() { receivers[i] = n.gleam(ctx, i+1, args...) })
	}
	sender = n.gleam(ctx, 0, send...)
	wg.Wait()
	return sender, receivers
}

func (n *net4) group(more ...string) []string {
	return append([]string{"--group", "10.77.254.1"}, more...)
}

func deadline(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// ok fails the test unless all ended well, and returns the sender's JSON.
func ok(t *testing.T, sender *process, receivers []*process) *Result {
	t.Helper()
	for i, p := range append([]*process{sender}, receivers...) {
		if p.code != cli.ExitOK {
			t.Errorf("host %d: exit code %d\n%s%s", i, p.code, p.stdout.String(), p.stderr.String())
		}
	}
	if t.Failed() {
		t.FailNow()
	}
	var r Result
	if err := json.Unmarshal(sender.stdout.Bytes(), &r); err != nil {
		t.Fatalf("%v\n%s", err, sender.stdout.String())
	}
	return &r
}

// singleSource are the tests whose sender is the only source.
var singleSource = slices.DeleteFunc(slices.Clone(Tests), func(test string) bool { return test == Rotate })

// Every test in every mode, with and without verification.
func TestTestsAndModes(t *testing.T) {
	n := newNet4(t)
	for _, test := range singleSource {
		for _, mode := range Modes {
			for _, verify := range []bool{false, true} {
				name := fmt.Sprintf("%s %s verify=%v", test, mode, verify)
				t.Run(name, func(t *testing.T) {
					flags := []string{"--mode", mode, "-s", "5000", "-n", "200", "-o", "json", "--chunk", "2000", fmt.Sprintf("--verify=%v", verify)}
					if mode == Group {
						flags = n.group(flags...)
					}
					s, rs := n.run(deadline(t), trial{test: test, send: flags})
					r := ok(t, s, rs)
					checkResult(t, r, 5000, 200)
					for i, p := range rs {
						if want := "200 messages of 5000 bytes"; !strings.Contains(p.stderr.String(), want) {
							t.Errorf("receiver %d does not say %q: %s", i+1, want, p.stderr.String())
						}
						if got := strings.Contains(p.stderr.String(), "verified"); got != verify {
							t.Errorf("receiver %d: verified %v, want %v", i+1, got, verify)
						}
					}
				})
			}
		}
	}
	if list, err := n.engine.Groups(nil); err != nil || len(list) > 0 {
		t.Errorf("groups are left at the switch: %v, %v", list, err)
	}
}

// Path MTU 4096: packets in several of the switch's buffers.
func TestLongPackets(t *testing.T) {
	n := newNet4On(t, 4200, "")
	for _, test := range singleSource {
		t.Run(test, func(t *testing.T) {
			s, rs := n.run(deadline(t), trial{test: test, send: n.group("--mode", Group, "--mtu", "4096", "-s", "50000", "-n", "100", "-o", "json", "--verify")})
			r := ok(t, s, rs)
			checkResult(t, r, 50000, 100)
			if r.PathMTU != 4096 {
				t.Errorf("path MTU %d", r.PathMTU)
			}
		})
	}
}

// checkResult looks for figures that contradict each other.
func checkResult(t *testing.T, r *Result, size, messages int) {
	t.Helper()
	if len(r.Sizes) != 1 || len(r.Sizes[0].Receivers) != r.Receivers {
		t.Fatalf("%d sizes: %+v", len(r.Sizes), r)
	}
	z := r.Sizes[0]
	if z.Bytes != size || z.Iterations != messages || z.Seconds <= 0 {
		t.Errorf("%d bytes, %d iterations, %v s", z.Bytes, z.Iterations, z.Seconds)
	}
	// The sender's link carries every byte once to a group or a chain, to every
	// receiver by unicasts, and to two of three by a binomial tree.
	copies := map[string]uint64{Group: 1, Chain: 1, Unicasts: 3, Tree: 2}[r.Mode]
	payload := uint64(size * messages)
	if z.SenderLinkBytes < copies*payload || z.SenderLinkBytes > copies*payload*5/4+z.Retransmitted*1200+100_000 {
		t.Errorf("the sender's link carried %d bytes for %d of payload, want %d times that", z.SenderLinkBytes, payload, copies)
	}
	all := append([]ReceiverResult{{"all", z.All}}, z.Receivers...)
	if z.Completion != nil {
		all = append(all, ReceiverResult{"completion", *z.Completion})
	}
	for _, f := range all {
		switch {
		case r.replicates() && f.IP == "all":
			w, l := f.Writes, f.Latency
			if w == nil || l == nil || w.IOPS <= 0 || w.MBs*1e6 < w.IOPS*float64(size)*0.999 || w.MBs*1e6 > w.IOPS*float64(size)*1.001 ||
				!(0 < l.Min && l.Min <= l.Typical && l.Typical <= l.P99 && l.P99 <= l.P999 && l.P999 <= l.Max) {
				t.Errorf("%s: %+v, %+v", f.IP, w, l)
			}
		case (f.Bandwidth == nil) == (f.Latency == nil):
			t.Errorf("%s: %+v", f.IP, f)
		case f.Bandwidth != nil:
			if f.Bandwidth.Avg <= 0 || f.Peak != 0 && f.Peak < f.Bandwidth.Avg || f.Rate <= 0 {
				t.Errorf("%s: %+v", f.IP, f.Bandwidth)
			}
		case !(0 < f.Min && f.Min <= f.Typical && f.Typical <= f.P99 && f.P99 <= f.P999 && f.P999 <= f.Max && f.Latency.Avg <= f.Max):
			t.Errorf("%s: %+v", f.IP, f.Latency)
		}
	}
	if want := r.latency() && !r.forwards(); (z.Completion != nil) != want {
		t.Errorf("completion: %+v", z.Completion)
	}
	if r.latency() {
		for _, f := range z.Receivers {
			if f.Max > z.All.Max {
				t.Errorf("%s answered after the last: %v, %v", f.IP, f.Max, z.All.Max)
			}
		}
	}
}

var groupAddr = netip.MustParseAddr("10.77.254.1")

// testAuth has the switch's key.
func testAuth() envelope.Auth {
	key, err := hex.DecodeString(testKey)
	if err != nil {
		panic(err)
	}
	return envelope.Auth{Keys: envelope.Keys{7: key}, Send: 7}
}
