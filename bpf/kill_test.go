// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/test/labtest"
)

// attachInChild, if set, makes the test binary attach to the interface of that index,
// print that, and wait to be killed.
const attachInChild = "GLEAM_TEST_ATTACH_IFINDEX"

func TestMain(m *testing.M) {
	if index := os.Getenv(attachInChild); index != "" {
		attachAndWait(index)
	}
	if indices := os.Getenv(replicateInChild); indices != "" {
		replicateAndWait(indices)
	}
	os.Exit(m.Run())
}

func attachAndWait(index string) {
	n, err := strconv.Atoi(index)
	var s *Steering
	if err == nil {
		s, err = NewSteering(testPrefixes, testEnvelopePort, 1)
	}
	var p *PortProgram
	if err == nil {
		p, err = s.Attach(n, "p0", Native, 0)
	}
	fmt.Printf("attached: %v\n", err)
	_, _ = os.Stdin.Read(make([]byte, 1)) // ends only if the parent does
	runtime.KeepAlive(p)
	os.Exit(1)
}

// startChild starts the test binary with a variable set, by in, which calls start on a thread of
// the child's namespace, and returns the first line that it prints. It ends with the test.
func startChild(t *testing.T, variable string, in func(start func() error) error) (*exec.Cmd, string) {
	t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env, cmd.Stderr = append(os.Environ(), variable), os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stdin.Close() })
	stdout, err := cmd.StdoutPipe()
	if err == nil {
		err = in(cmd.Start)
	}
	if err != nil {
		t.Fatal(err)
	}
	line, _ := bufio.NewReader(stdout).ReadString('\n')
	return cmd, line
}

// A process that holds a program is killed by SIGKILL: the kernel detaches the program.
func TestKilledProcessDetaches(t *testing.T) {
	labtest.Enter(t)
	l := addVeth(t, "p0", "h0")
	cmd, line := startChild(t, fmt.Sprintf("%s=%d", attachInChild, l.Attrs().Index), func(start func() error) error { return start() })
	if x := xdpMode(t, "p0"); line != "attached: <nil>\n" || x == nil || !x.Attached {
		t.Errorf("the child says %q, the kernel %+v", line, x)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	for deadline := time.Now().Add(5 * time.Second); ; runtime.Gosched() {
		if x := xdpMode(t, "p0"); x == nil || !x.Attached {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("5 s after SIGKILL the program is still attached")
		}
	}
}
