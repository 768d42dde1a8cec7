// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package hardware

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gleam-rdma/gleam/config"
	"github.com/gleam-rdma/gleam/host/endpoint/verbs"
	"github.com/gleam-rdma/gleam/internal/doctor/checks"
	"github.com/gleam-rdma/gleam/rocev2"
)

// hostOptions say what a host does.
type hostOptions struct {
	common
	listen    string // a receiver's address, or anyAddress
	group     netip.Addr
	receivers []string
	keyFile   string
	keyID     uint16
	backend   string
	device    string
	netdev    string
	qpTimeout uint8
	port      uint16 // the first of len(trials)
	seconds   float64
	wait      time.Duration // a receiver's, for the end of the source's last trial
}

// trial is one run of gleam perf. Each has a TCP port of its own, so that a receiver waits for all of them at once
// and the source leaves out what does not fit.
type trial struct {
	name, test string
	mtu        int
	flags      []string // the source's
	evicts     bool     // the first receiver is killed
}

var trials = []trial{
	{name: "write-bw, path MTU 1024", test: "write-bw", mtu: 1024, flags: []string{"--verify"}},
	{name: "write-bw, path MTU 4096", test: "write-bw", mtu: 4096, flags: []string{"--verify"}},
	{name: "send-bw", test: "send-bw", mtu: 1024, flags: []string{"--verify"}},
	{name: "write-lat", test: "write-lat", mtu: 1024},
	{name: otherSource, test: "rotate", mtu: 1024, flags: []string{"--verify"}},
	{name: stopped, test: "write-bw", mtu: 1024, flags: []string{"--verify"}, evicts: true},
	lastTrial, // ends a receiver
}

// lastTrial is run with each receiver alone: it ends those that others keep from joining a group.
var lastTrial = trial{name: "write-lat without a group", test: "write-lat", mtu: 1024, flags: []string{"--mode", "unicasts"}}

// Names of trials.
const (
	otherSource = "a group whose source changes"
	stopped     = "a receiver that is killed, under evict"
)

// trialLimit bounds a trial, besides the time that it measures for.
const trialLimit = time.Minute

// host runs the steps of a host.
func host(ctx context.Context, o *hostOptions) error {
	s, m := &steps{log: o.log}, checks.This()
	o.scrub.file(o.keyFile, "KEY_FILE")
	o.scrub.hosts(o.receivers)
	rnics := readRNICs(m, o.device)
	names, err := o.interfaces(rnics)
	if err != nil {
		return err
	}
	nics, err := readNICs(m, config.Default(), names)
	if err != nil {
		return err
	}
	s.add(version(ctx, o.socket))
	r := &record{role: roleReceiver, kernel: m.Release, nics: nics, rnics: rnics}
	if o.listen != "" {
		o.receive(ctx, s, names)
	} else {
		r.role = roleSource
		mtu, _ := strconv.Atoi(nics[0].Description.Facts["mtu"])
		o.send(ctx, s, names[0], mtu)
	}
	return o.finish(ctx, r, s)
}

// interfaces are those that are described: one at a source.
func (o *hostOptions) interfaces(rnics []RNIC) (names []string, err error) {
	var name string
	switch ip, _ := netip.ParseAddr(o.listen); {
	case o.netdev != "":
		name = o.netdev
	case o.listen == "":
		name, err = routeTo(o.group)
	case ip.IsValid():
		name, err = withAddress(ip.Unmap())
	default:
		for i := range rnics {
			for _, name := range rnics[i].Interfaces {
				names = once(names, name)
			}
		}
		return names, nil
	}
	return []string{name}, err
}

// auth are the flags of all programs that use the key.
func (o *hostOptions) auth() []string {
	flags := []string{"--key-file", o.keyFile, "--key-id", strconv.Itoa(int(o.keyID)), "--backend", o.backend}
	if o.device != "" {
		flags = append(flags, "--device", o.device)
	}
	if o.netdev != "" {
		flags = append(flags, "--interface", o.netdev)
	}
	return flags
}

// flags are those of trial i at both sides.
func (o *hostOptions) flags(i int) []string {
	return append([]string{"perf", trials[i].test, "--port", strconv.Itoa(int(o.port) + i), "--qp-timeout", strconv.Itoa(int(o.qpTimeout))}, o.auth()...)
}

// send is the source. on is its interface, with that MTU.
func (o *hostOptions) send(ctx context.Context, s *steps, on string, mtu int) {
	s.add(doctor(ctx, "doctor", append([]string{"doctor", "host", "--group", o.group.String()}, o.auth()...)...))
	absent := "" // the receiver that does not wait
	for i, t := range trials[:len(trials)-1] {
		if need := t.mtu + rocev2.MaxHeaders(false); need > mtu {
			s.notRun(t.name, fmt.Sprintf("path MTU %d wants an MTU of %d, and that of %s is %d", t.mtu, need, on, mtu))
		} else if absent != "" {
			s.notRun(t.name, "the host "+absent+" does not wait for the source")
		} else if t.evicts && len(o.receivers) < 2 {
			s.notRun(t.name, "a group goes on without a receiver if there is another one")
		} else {
			var x *Step
			x, absent = o.try(ctx, i, t.name, append([]string{"--group", o.group.String()}, o.receivers...)...)
			s.add(x)
		}
	}
	for _, r := range o.receivers {
		if r == absent {
			s.notRun(lastTrial.name+", "+r, "the host does not wait for the source")
			continue
		}
		x, _ := o.try(ctx, len(trials)-1, lastTrial.name+", "+r, r)
		s.add(x)
	}
}

// try runs trial i at the source. absent is the receiver that does not wait; empty: all do.
func (o *hostOptions) try(ctx context.Context, i int, name string, to ...string) (x *Step, absent string) {
	t := &trials[i]
	seconds, flags := o.seconds, t.flags
	if t.evicts {
		silence := rocev2.AckTimeout(o.qpTimeout) * 4 // the switch wants it between one timeout and seven
		flags = append(flags, "--dead-after", silence.String(), "--timeout", (trialLimit/4 + silence).String())
		seconds += 2 * silence.Seconds() // so that the transfer goes on after the pause
	}
	args := append(o.flags(i), "--mtu", strconv.Itoa(t.mtu), "--duration", strconv.FormatFloat(seconds, 'g', -1, 64), "-o", "json")
	args = append(append(args, flags...), to...)
	limit := trialLimit + time.Duration(2*seconds*float64(time.Second))
	x = run(ctx, name, limit, "gleam "+strings.Join(args, " "), "gleam", args...)
	if r := x.measured(); t.evicts && r != nil && len(r.Evicted) == 0 {
		x.State, x.Reason = Failed, "no receiver was evicted, and the first one was to be killed"
	} else if x.State == Passed {
		return x, ""
	}
	for _, r := range o.receivers {
		at := net.JoinHostPort(strings.Trim(r, "[]"), strconv.Itoa(int(o.port)+i))
		if strings.Contains(x.Reason, "connect to the receiver at "+at+": ") {
			x.Next = fmt.Sprintf("gleam hardware host --listen %s (at the host %s, which does not wait for the source)", strings.Join(o.auth(), " "), r)
			return x, r
		}
	}
	if strings.Contains(x.Reason, verbs.ErrNotBuilt.Error()) {
		x.Next = "CGO_ENABLED=1 go build -tags verbs -o bin/ ./cmd/gleam (in the sources, at all hosts)"
		return x, ""
	}
	x.Next += " (with gleam " + strings.Join(o.flags(i)[:4], " ") + " --listen at the receivers), or at the box: gleam doctor"
	return x, ""
}

// receive is a receiver: it waits for all trials at once, until the last one ends.
func (o *hostOptions) receive(ctx context.Context, s *steps, names []string) {
	for _, name := range names {
		s.add(doctor(ctx, "doctor", "doctor", "host", "--interface", name, "--backend", o.backend))
	}
	trying, stop := context.WithTimeout(ctx, o.wait)
	defer stop()
	var ended, ready sync.WaitGroup
	outcome := make([]*Step, len(trials))
	for i := range trials {
		ready.Add(1)
		ended.Go(func() {
			listening := sync.OnceFunc(ready.Done)
			defer listening()
			end := func() {}
			if i == len(trials)-1 {
				end = stop
			}
			outcome[i] = o.await(trying, i, listening, end)
			end()
		})
	}
	ready.Wait()
	fmt.Fprintln(o.log, "ready: start the source when all receivers are")
	ended.Wait()
	for _, x := range outcome {
		s.add(x)
	}
}

// await is trial i at a receiver. It calls listening once its source may come, and left if one that has the key comes
// and goes without a trial.
func (o *hostOptions) await(ctx context.Context, i int, listening, left func()) *Step {
	args := append(o.flags(i), "--listen")
	if o.listen != anyAddress {
		args[len(args)-1] += "=" + o.listen
	}
	say := watcher{"waiting for the sender at": listening, goneText: left}
	running, kill := context.WithCancelCause(ctx)
	defer kill(nil)
	if trials[i].evicts {
		say["receiver 1 of "] = func() { kill(errKilled) }
	}
	x := runSaying(running, trials[i].name, o.wait+trialLimit, "gleam "+strings.Join(args, " "), say, "gleam", args...)
	switch last := i == len(trials)-1; {
	case x.State != Failed || ctx.Err() == nil:
		return x
	case last && ctx.Err() == context.DeadlineExceeded:
		x.Reason, x.Next = fmt.Sprintf("no source came within %v", o.wait), fmt.Sprintf("gleam hardware host --group GROUP --key-file %s RECEIVER... (at the source)", o.keyFile)
		return x
	case last && strings.Contains(x.Reason, goneText):
		x.Reason, x.Next = "the source has left: "+x.Reason, "gleam hardware show gleam-hardware-source.tar.gz (at the source)"
		return x
	}
	return &Step{Name: x.Name, Command: x.Command, State: NotRun, Reason: "the source did not run it"}
}

// goneText is what gleam perf says at a receiver of a source that has the key, and has gone without a test.
const goneText = "; still waiting"

// watcher calls functions when a program writes certain texts, each in one piece.
type watcher map[string]func()

// Write implements io.Writer.
func (w watcher) Write(b []byte) (int, error) {
	for text, then := range w {
		if strings.Contains(string(b), text) {
			then()
		}
	}
	return len(b), nil
}
