// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package fabric_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/lab"
	"github.com/gleam-rdma/gleam/lab/fabric"
	"github.com/gleam-rdma/gleam/test/labtest"
)

// envMake turns the test binary into a process that makes a fabric with FRR of that name,
// "-" for an anonymous one, and waits to be killed.
const envMake = "FABRIC_TEST_MAKE"

func TestMain(m *testing.M) {
	if name := os.Getenv(envMake); name != "" {
		if err := makeAndWait(strings.TrimPrefix(name, "-")); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func makeAndWait(name string) error {
	f, err := fabric.New(fabric.Config{Options: lab.Options{Name: name}, Topology: fabric.LeafSpine(1, 1, 1), Routing: fabric.OSPF})
	if err != nil {
		return err
	}
	fmt.Println("ready", f.Switches[0].NS.Inode())
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// inNamespace returns the commands of the processes in the network namespace with that
// number, by process id.
func inNamespace(t *testing.T, inode uint64) map[string]string {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	found := make(map[string]string)
	for _, e := range entries {
		target, err := os.Readlink("/proc/" + e.Name() + "/ns/net")
		if err != nil || target != fmt.Sprintf("net:[%d]", inode) {
			continue
		}
		name, _ := os.ReadFile("/proc/" + e.Name() + "/comm")
		found[e.Name()] = strings.TrimSpace(string(name))
	}
	return found
}

// TestKill9LeavesNoDaemon: after the end of the process that made a fabric, FRR's daemons
// are gone too, or CleanStale ends them, and no file of theirs is left.
func TestKill9LeavesNoDaemon(t *testing.T) {
	labtest.FRR(t)
	for _, name := range []string{"-", fmt.Sprintf("fab%d", os.Getpid())} {
		t.Run(name, func(t *testing.T) { kill9(t, name) })
	}
}

func kill9(t *testing.T, name string) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	before := listing(t, "/run/frr")
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), envMake+"="+name)
	cmd.Stderr = os.Stderr
	if _, err := cmd.StdinPipe(); err != nil { // open as long as this process lives
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	var inode uint64
	if _, serr := fmt.Sscanf(line, "ready %d", &inode); serr != nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		t.Fatalf("child says %q (%v)", line, err)
	}
	running := inNamespace(t, inode)
	for _, want := range []string{"zebra", "bfdd", "ospfd", "ospf6d"} {
		found := false
		for _, comm := range running {
			found = found || comm == want
		}
		if !found {
			t.Errorf("%s does not run: %v", want, running)
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // "signal: killed"
	if name != "-" {
		if len(inNamespace(t, inode)) == 0 {
			t.Error("daemons of a named lab ended with its owner")
		}
		if _, err := lab.CleanStale(); err != nil {
			t.Error(err)
		}
	}
	for end := time.Now().Add(20 * time.Second); len(inNamespace(t, inode)) > 0; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("processes live on: %v", inNamespace(t, inode))
		}
	}
	if after := listing(t, "/run/frr"); after != before {
		t.Errorf("/run/frr has %q, had %q", after, before)
	}
}

func listing(t *testing.T, folder string) (names string) {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	for _, e := range entries {
		names += e.Name() + " "
	}
	return names
}

// TestDaemonEnds: a daemon that ends by itself takes the switch's others along, and the
// fabric says so.
func TestDaemonEnds(t *testing.T) {
	f := labtest.Fabric(t, fabric.Config{Topology: fabric.LeafSpine(1, 1, 1), Routing: fabric.BGP})
	routed(t, f)
	leaf := f.Switch("l1")
	for pid, comm := range inNamespace(t, leaf.NS.Inode()) {
		if comm == "bgpd" {
			if err := exec.Command("kill", "-9", pid).Run(); err != nil {
				t.Fatal(err)
			}
		}
	}
	for end := time.Now().Add(10 * time.Second); len(inNamespace(t, leaf.NS.Inode())) > 0; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the other daemons live on: %v", inNamespace(t, leaf.NS.Inode()))
		}
	}
	if err := f.SetLink("l1", "s1", false); err != nil {
		t.Fatal(err)
	}
	if err := f.SetLink("l1", "s1", true); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	err := f.WaitRouted(ctx)
	if err == nil || !strings.Contains(err.Error(), "FRR of switch l1 has ended") || !strings.Contains(err.Error(), "bgpd has ended with status 137") {
		t.Errorf("WaitRouted says %v", err)
	}
}
