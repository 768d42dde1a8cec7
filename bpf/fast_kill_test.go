// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/cilium/ebpf"

	"github.com/gleam-rdma/gleam/bpf/fastpath"
	"github.com/gleam-rdma/gleam/lab"
	"github.com/gleam-rdma/gleam/rocev2"
	"github.com/gleam-rdma/gleam/test/labtest"
)

// replicateInChild, if set, makes the test binary attach the programs with the fast path to
// the two interfaces of these indices, with a group, print that, and wait to be killed.
const replicateInChild = "GLEAM_TEST_REPLICATE_IFINDEX"

// killedGroup is the group of the child: from the first interface to the second.
func killedGroup(from, to int) fastInput {
	in := fastInputOf(false)
	in.spec.Source.Ifindex, in.spec.Legs[0].Port, in.spec.Legs[0].Ifindex, in.spec.Legs[0].Gate.Next = from, 1, to, fastPSN
	return in
}

func replicateAndWait(indices string) {
	var from, to int
	_, err := fmt.Sscan(indices, &from, &to)
	var m *fastpath.Maps
	if err == nil {
		m, err = fastpath.New(fastpath.Config{Ports: 2, Sizes: []fastpath.Size{{Legs: 1, Groups: 1}}, Slots: 16})
	}
	var s *Steering
	if err == nil {
		s, err = NewSteering(testPrefixes, testEnvelopePort, 2)
	}
	var programs []*PortProgram
	if err == nil {
		s.UseFastPath(m)
		for i, index := range []int{from, to} {
			p, err2 := s.Attach(index, fmt.Sprint("p", i), Native, 1500)
			programs, err = append(programs, p), errors.Join(err, err2)
		}
	}
	if err == nil {
		in := killedGroup(from, to)
		var g *fastpath.Group
		if g, err = m.Put(&in.spec); err == nil {
			g.Grant(fastPSN, true, fastPSN.Add(16))
		}
	}
	fmt.Printf("replicates: %v\n", err)
	_, _ = os.Stdin.Read(make([]byte, 1)) // ends only if the parent does
	runtime.KeepAlive(programs)
	os.Exit(1)
}

// A process that replicates a group is killed by SIGKILL: nothing stays attached, the kernel
// frees the program, and nothing more is replicated.
func TestKilledProcessReplicatesNoMore(t *testing.T) {
	star := labtest.Star(t, lab.StarConfig{Hosts: 2, NoBridge: true})
	var ifindex []int
	var taps []*labtest.Tap
	for i, h := range star.Hosts {
		if err := h.NS.SetFeature(h.Interface, lab.GRO, true); err != nil { // or redirected frames are dropped there
			t.Fatal(err)
		}
		l, err := star.Switch.Handle().LinkByName(star.Ports[i])
		if err != nil {
			t.Fatal(err)
		}
		ifindex, taps = append(ifindex, l.Attrs().Index), append(taps, labtest.NewTap(t, h))
	}
	attached := func(i int) (program uint32) {
		l, err := star.Switch.Handle().LinkByName(star.Ports[i])
		if err != nil {
			t.Fatal(err)
		}
		if x := l.Attrs().Xdp; x != nil && x.Attached {
			return x.ProgId
		}
		return 0
	}
	cmd, line := startChild(t, fmt.Sprintf("%s=%d %d", replicateInChild, ifindex[0], ifindex[1]), star.Switch.Do)
	program := ebpf.ProgramID(attached(0))
	if line != "replicates: <nil>\n" || program == 0 || attached(1) == 0 {
		t.Fatalf("the child says %q, the kernel has program %d", line, program)
	}
	in := killedGroup(ifindex[0], ifindex[1])
	send := func(psn rocev2.PSN) {
		var b [512]byte
		in.packet.PSN = psn
		taps[0].Send(b[:rocev2.BuildPacket(b[:], &in.path, &in.packet, make([]byte, in.payload))])
	}
	send(fastPSN)
	var f rocev2.Frame
	if rocev2.Decode(taps[1].Next(), &f); f.Dst() != in.spec.Legs[0].IP || f.BTH().PSN() != fastPSN {
		t.Errorf("the copy is for %v, PSN %06x", f.Dst(), f.BTH().PSN())
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	until := func(what string, ok func() bool) {
		t.Helper()
		for end := time.Now().Add(20 * time.Second); !ok(); runtime.Gosched() {
			if time.Now().After(end) {
				t.Fatalf("20 s after SIGKILL %s", what)
			}
		}
	}
	until("the program is still attached", func() bool { return attached(0) == 0 && attached(1) == 0 })
	send(fastPSN.Next())
	until("the kernel still has the program", func() bool {
		p, err := ebpf.NewProgramFromID(program)
		if err == nil {
			_ = p.Close()
		}
		return errors.Is(err, fs.ErrNotExist)
	})
	taps[1].Idle()
}
