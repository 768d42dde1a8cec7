// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package perf

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/gleam-rdma/gleam/internal/cli"
	"github.com/gleam-rdma/gleam/internal/cli/port"
)

// Several groups at once, all sizes, a time instead of a number, IPv6, one
// receiver only, deep queues of tiny messages.
func TestShapes(t *testing.T) {
	n := newNet4(t)
	for _, c := range []struct {
		name string
		trial
		sizes, iterations int
	}{
		{"two groups", trial{test: WriteBW, send: n.group("-q", "2", "-s", "3000", "-n", "150", "--verify")}, 1, 300},
		{"two groups, latency", trial{test: SendLat, send: n.group("-q", "2", "-n", "50")}, 1, 100},
		{"two trees", trial{test: SendBW, send: []string{"--mode", "tree", "-q", "2", "-n", "100", "--verify"}}, 1, 200},
		{"two sets of unicasts", trial{test: WriteBW, send: []string{"--mode", "unicasts", "-q", "2", "-n", "100"}}, 1, 200},
		{"all sizes, WRITE", trial{test: WriteBW, send: n.group("-a", "-n", "2", "--verify")}, 23, 2},
		{"all sizes, SEND", trial{test: SendBW, send: n.group("-a", "-n", "3")}, 23, 3},
		{"all sizes by chain", trial{test: WriteLat, send: []string{"--mode", "chain", "-a", "-n", "2", "--verify"}}, 23, 2},
		{"one message", trial{test: WriteBW, send: n.group("-n", "1")}, 1, 1},
		{"half a second", trial{test: SendBW, send: n.group("-D", "0.5")}, 1, 0},
		{"half a second of WRITE", trial{test: WriteBW, send: n.group("-D", "0.5")}, 1, 0},
		{"half a second of latency", trial{test: WriteLat, send: n.group("-D", "0.5")}, 1, 0},
		{"one receiver", trial{test: WriteLat, send: n.group("-n", "50"), receivers: 1}, 1, 50},
		{"small path MTU", trial{test: SendBW, send: n.group("-m", "256", "-s", "1000", "-n", "300", "--verify")}, 1, 300},
		{"IPv6 group", trial{test: WriteBW, send: []string{"--group", "fd77::6c65:9", "--other-network", "-n", "100", "--verify"}}, 1, 100},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.send = append(c.send, "-o", "json")
			s, rs := n.run(deadline(t), c.trial)
			r := ok(t, s, rs)
			if len(r.Sizes) != c.sizes {
				t.Fatalf("%d sizes, want %d", len(r.Sizes), c.sizes)
			}
			for _, z := range r.Sizes {
				if c.iterations > 0 && z.Iterations != c.iterations || z.Iterations < 1 {
					t.Errorf("%d bytes: %d iterations, want %d", z.Bytes, z.Iterations, c.iterations)
				}
				if c.iterations == 0 && (z.Seconds < 0.5 || z.Seconds > 5) {
					t.Errorf("%v seconds", z.Seconds)
				}
			}
		})
	}
}

// What cannot work ends with an error that says why, on both sides, and soon.
func TestDisagreement(t *testing.T) {
	n := newNet4(t)
	for _, c := range []struct {
		name string
		trial
		sender, receiver string
	}{
		{"another size", trial{test: WriteBW, send: n.group(), listen: []string{"-s", "4096"}},
			"--size: the sender has 65536, this receiver was started with 4096", "--size: the sender has 65536"},
		{"another mode", trial{test: SendBW, send: n.group(), listen: []string{"--mode", "chain"}}, "--mode: the sender has group", "chain"},
		{"verified here only", trial{test: SendLat, send: n.group(), listen: []string{"--verify"}}, "--verify: the sender has false", "--verify"},
		{"path MTU too large for the link", trial{test: WriteBW, send: n.group("-m", "4096")}, "path MTU 4096 does not fit", "gave up"},
		{"GroupIP outside of the switch's", trial{test: WriteBW, send: []string{"--group", "10.77.3.3", "--timeout", "2s"}},
			"10.77.3.3", "gave up"},
		{"a key that the switch has not", trial{test: WriteBW, send: n.group("--timeout", "2s", "--key-id", "9"), listen: []string{"--key-id", "9"}},
			"register group 10.77.254.1: no authentic answer from the switch in ", "does not accept our key; check key id and key on both sides"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, rs := n.run(deadline(t), c.trial)
			if s.code != cli.ExitFailed || !strings.Contains(s.stderr.String(), c.sender) {
				t.Errorf("sender: exit code %d, want %q in %s", s.code, c.sender, s.stderr.String())
			}
			for i, r := range rs {
				if r.code != cli.ExitFailed {
					t.Errorf("receiver %d: exit code %d, %s", i+1, r.code, r.stderr.String())
				}
			}
			if !slices.ContainsFunc(rs, func(p *process) bool { return strings.Contains(p.stderr.String(), c.receiver) }) {
				t.Errorf("no receiver says %q: %s", c.receiver, rs[0].stderr.String())
			}
		})
	}
	t.Run("no listener", func(t *testing.T) {
		p := n.gleam(deadline(t), 0, slices.Concat([]string{WriteBW, "--timeout", "300ms"}, n.auth(), n.group("10.77.0.2"))...)
		if want := "connect to the receiver at 10.77.0.2:18515"; p.code != cli.ExitFailed || !strings.Contains(p.stderr.String(), want) {
			t.Errorf("exit code %d, %s", p.code, p.stderr.String())
		}
	})
	t.Run("another test", func(t *testing.T) {
		ctx := deadline(t)
		var r *process
		var wg sync.WaitGroup
		wg.Go(func() { r = n.gleam(ctx, 1, append([]string{SendBW, "--listen=10.77.0.2"}, n.auth()...)...) })
		s := n.gleam(ctx, 0, append([]string{WriteBW, "--mode", "unicasts", "10.77.0.2"}, n.auth()...)...)
		wg.Wait()
		if want := "the sender runs write-bw, this receiver was started for send-bw"; s.code != cli.ExitFailed ||
			!strings.Contains(s.stderr.String(), want) || !strings.Contains(r.stderr.String(), want) {
			t.Errorf("%s%s", s.stderr.String(), r.stderr.String())
		}
	})
}

// send runs a sender with options that the command line does not have.
func (n *net4) send(ctx context.Context, t *testing.T, o *SendOptions, receivers int) (listeners []error, err error) {
	return n.sendWith(ctx, t, o, receivers, Local{Backend: port.Soft, QPTimeout: 14, Timeout: 2 * time.Second})
}

func (n *net4) sendWith(ctx context.Context, t *testing.T, o *SendOptions, receivers int, local Local) (listeners []error, err error) {
	t.Helper()
	listeners = make([]error, receivers)
	local.Host.Auth = testAuth()
	var wg sync.WaitGroup
	for i := range receivers {
		at := n.star.Hosts[i+1].IPv4.String()
		o.Receivers = append(o.Receivers, at)
		wg.Go(func() {
			listeners[i] = n.star.Hosts[i+1].NS.Do(func() error {
				return Listen(ctx, &ListenOptions{Params: Defaults(o.Test), Local: local, Address: withPort(at, DefaultPort), Say: func(string) {}})
			})
		})
	}
	o.Local = local
	err = n.star.Hosts[0].NS.Do(func() error { _, err := Send(ctx, o); return err })
	wg.Wait()
	return listeners, err
}

// A single wrong byte is found, named, and fails all sides.
func TestVerifyFindsOneByte(t *testing.T) {
	n := newNet4(t)
	for _, mode := range Modes {
		o := &SendOptions{Params: Defaults(WriteBW), tamper: func(m int, b []byte) {
			if m == 77 {
				b[len(b)-1] ^= 4
			}
		}}
		o.Mode, o.Verify, o.Size, o.Iterations = mode, true, 1001, 100
		if mode == Group {
			o.GroupIP = groupAddr
		}
		listeners, err := n.send(deadline(t), t, o, 2)
		if err == nil || !strings.Contains(err.Error(), "message 77 of 1001 bytes: byte 1000 is") {
			t.Errorf("%s: sender: %v", mode, err)
		}
		for i, e := range listeners {
			if e == nil {
				t.Errorf("%s: receiver %d is content", mode, i+1)
			}
		}
	}
}

// A receiver whose link goes down in the middle is named. Where it is the sender's own link, none is. A
// program that is cut off is stopped by hand.
func TestSilentReceiver(t *testing.T) {
	for _, c := range []struct {
		name      string
		cut       int
		says      string
		saysNotOf []string
	}{
		{"a receiver's link", 2, "receiver 10.77.0.3:18515 does not answer any more", []string{"10.77.0.2", "10.77.0.4"}},
		{"the sender's link", 0, "no receiver answers any more: see first whether this host's own link is up", []string{"10.77.0.2", "10.77.0.3", "10.77.0.4"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := newNet4(t).sendUntilCut(t, c.cut)
			if err == nil || !strings.Contains(err.Error(), "no message has got through for 1.5s") || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v, want %q", err, c.says)
			}
			for _, other := range c.saysNotOf {
				if strings.Contains(fmt.Sprint(err), other) {
					t.Errorf("%v: %s is named", err, other)
				}
			}
		})
	}
}

// sendUntilCut sends to three receivers, and takes the link of host cut down when data flows. It returns
// the sender's error.
func (n *net4) sendUntilCut(t *testing.T, cut int) error {
	ctx, cancel := context.WithCancel(deadline(t))
	local := Local{Backend: port.Soft, QPTimeout: 14, Timeout: 1500 * time.Millisecond}
	local.Host.Auth = testAuth()
	o := &SendOptions{Params: Defaults(WriteBW), Local: local}
	o.GroupIP = groupAddr
	o.Duration = time.Minute
	o.onStart = func() {
		h := n.star.Hosts[cut]
		link, err := h.NS.Handle().LinkByName(h.Interface)
		if err == nil {
			err = h.NS.Handle().LinkSetDown(netlink.Link(link))
		}
		if err != nil {
			t.Error(err)
		}
	}
	var wg sync.WaitGroup
	for i := 1; i <= 3; i++ {
		at := withPort(n.star.Hosts[i].IPv4.String(), DefaultPort)
		o.Receivers = append(o.Receivers, at)
		wg.Go(func() {
			_ = n.star.Hosts[i].NS.Do(func() error {
				return Listen(ctx, &ListenOptions{Params: Defaults(WriteBW), Local: local, Address: at, Say: func(string) {}})
			})
		})
	}
	err := n.star.Hosts[0].NS.Do(func() error { _, err := Send(ctx, o); return err })
	cancel()
	wg.Wait()
	return err
}

// The user stops the sender, or a receiver: the others hear of it and end, and
// the switch has no group left.
func TestInterrupt(t *testing.T) {
	n := newNet4(t)
	for _, who := range []string{"sender", "receiver"} {
		t.Run(who, func(t *testing.T) {
			ctx := deadline(t)
			stopping, stop := context.WithCancelCause(ctx)
			ctxOf := map[string]context.Context{"sender": ctx, "receiver": ctx, who: stopping}
			local := Local{Backend: port.Soft, QPTimeout: 14, Timeout: 5 * time.Second}
			local.Host.Auth = testAuth()
			o := &SendOptions{Params: Defaults(SendBW), Local: local, GroupIP: groupAddr}
			o.Duration = time.Minute
			o.onStart = func() { stop(errInterrupted) }
			errs := make([]error, 3)
			var wg sync.WaitGroup
			for i := 1; i <= 2; i++ {
				at := withPort(n.star.Hosts[i].IPv4.String(), DefaultPort)
				o.Receivers = append(o.Receivers, at)
				rctx := ctx
				if i == 2 {
					rctx = ctxOf["receiver"]
				}
				wg.Go(func() {
					errs[i] = n.star.Hosts[i].NS.Do(func() error {
						return Listen(rctx, &ListenOptions{Params: Defaults(SendBW), Local: local, Address: at, Say: func(string) {}})
					})
				})
			}
			start := time.Now()
			errs[0] = n.star.Hosts[0].NS.Do(func() error { _, err := Send(ctxOf["sender"], o); return err })
			wg.Wait()
			for i, err := range errs {
				if err == nil || !strings.Contains(err.Error(), "interrupted") {
					t.Errorf("host %d: %v", i+1, err)
				}
			}
			if d := time.Since(start); d > 20*time.Second {
				t.Errorf("took %v", d)
			}
			if list, err := n.engine.Groups(nil); err != nil || len(list) > 0 {
				t.Errorf("groups are left at the switch: %v, %v", list, err)
			}
		})
	}
}

// TestStranger has strangers connect to a receiver that does without a key: one
// after the other is left, and the sender comes next.
func TestStranger(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	said := make(chan string, 8)
	ended := make(chan error, 1)
	go func() {
		o := &ListenOptions{Params: Defaults(WriteBW), Local: Local{Backend: port.Soft, QPTimeout: 14, Timeout: 5 * time.Second}, Address: "127.0.0.1:0"}
		o.Host.Auth.Insecure = true
		o.Say = func(msg string) { said <- msg }
		ended <- Listen(ctx, o)
	}()
	at := strings.TrimPrefix(<-said, "waiting for the sender at ")
	for _, text := range []string{"GET / HTTP/1.0\r\n\r\n", "", `{"v":99,"type":"setup"}` + "\n", `{"v":2,"type":"setup"}` + "\n", `{"v":2,"type":"run"}` + "\n"} {
		c, err := net.Dial("tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		c.(*net.TCPConn).CloseWrite()
		if msg := <-said; !strings.HasSuffix(msg, "still waiting") {
			t.Errorf("%q: %s", text, msg)
		}
		c.Close()
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestAnotherKey has a sender with another key than a receiver's: both name that,
// the sender gives up, and the receiver serves the next sender.
func TestAnotherKey(t *testing.T) {
	n := newNet4(t)
	ctx, cancel := context.WithCancel(deadline(t))
	defer cancel()
	other := filepath.Join(t.TempDir(), "other")
	if err := os.WriteFile(other, []byte("d20c7e914fb35a68e1093c7df28a46b5178fe2509dc46b3af7015ce8823b94d6"+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	receiver := make(chan *process, 1)
	go func() { receiver <- n.gleam(ctx, 1, append([]string{WriteBW, "--listen=10.77.0.2"}, n.auth()...)...) }()
	flags := []string{WriteBW, "--mode", "unicasts", "-n", "10", "10.77.0.2", "--key-id", "7", "--key-file"}
	wrong := n.gleam(ctx, 0, append(flags, other)...)
	if want := "has another key than this host under id 7: give all hosts of a group the same (the key of this host is that of --key-file"; wrong.code != cli.ExitFailed || !strings.Contains(wrong.stderr.String(), want) {
		t.Errorf("sender with another key: exit code %d, %s", wrong.code, wrong.stderr.String())
	}
	if right := n.gleam(ctx, 0, append(flags, n.key)...); right.code != cli.ExitOK {
		t.Errorf("sender with the key: %s", right.stderr.String())
		cancel()
	}
	r := <-receiver
	if want := "key 7 is another one there"; r.code != cli.ExitOK || !strings.Contains(r.stderr.String(), want) {
		t.Errorf("receiver: exit code %d, want %q in %s", r.code, want, r.stderr.String())
	}
}
