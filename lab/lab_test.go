// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package lab_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/lab"
	"github.com/gleam-rdma/gleam/test/labtest"
)

// Environment variables that turn the test binary into a process that makes a
// lab and waits to be killed.
const (
	envMake    = "LAB_TEST_MAKE"    // name of the lab, "-" for an anonymous one
	envWitness = "LAB_TEST_WITNESS" // path of a namespace that gets one end of a veth
)

func TestMain(m *testing.M) {
	if name := os.Getenv(envMake); name != "" {
		if err := makeAndWait(name, os.Getenv(envWitness)); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// makeAndWait makes a lab with a veth into the witness namespace and a process, prints
// "ready PID" and waits for the end of its standard input.
func makeAndWait(name, witness string) error {
	if name == "-" {
		name = ""
	}
	s, err := lab.NewStar(lab.StarConfig{Options: lab.Options{Name: name}, Hosts: 2})
	if err != nil {
		return err
	}
	far, err := lab.OpenNamespace(witness)
	if err != nil {
		return err
	}
	if err := lab.Veth(lab.End{NS: s.Hosts[1].NS, Name: "wit"}, lab.End{NS: far, Name: "wit"}, 0); err != nil {
		return err
	}
	if err := far.Close(); err != nil { // or this descriptor would keep the namespace alive, not the lab
		return err
	}
	p, err := s.Switch.Start(exec.Command("sleep", "300"))
	if err != nil {
		return err
	}
	fmt.Println("ready", p.PID())
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// eventually waits for a condition.
func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	end := time.Now().Add(20 * time.Second)
	for !cond() {
		if time.Now().After(end) {
			t.Fatalf("not after 20 s: %s", what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// alive reports whether a process exists and is no zombie.
func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	state := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))[0]
	return state != "Z" && state != "X"
}

// witness is a namespace whose end of a veth goes when the kernel destroys the lab:
// proof that no descriptor holds the lab's namespaces any more.
func witness(t *testing.T) *lab.Namespace {
	n, err := labtest.New(t).Namespace("witness")
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func linkThere(n *lab.Namespace, name string) bool {
	_, err := n.LinkStats(name)
	return err == nil
}

func TestCloseLeavesNothing(t *testing.T) {
	w := witness(t)
	s, err := lab.NewStar(lab.StarConfig{Hosts: 3, Rack: 2})
	if err != nil {
		t.Fatal(err)
	}
	if err := lab.Veth(lab.End{NS: s.Hosts[2].NS, Name: "wit"}, lab.End{NS: w, Name: "wit"}, 0); err != nil {
		t.Fatal(err)
	}
	p, err := s.Switch.Start(exec.Command("sleep", "300"))
	if err != nil {
		t.Fatal(err)
	}
	if !alive(p.PID()) || !linkThere(w, "wit") {
		t.Fatal("process or link not there before Close")
	}
	inodes := map[uint64]bool{s.Switch.Inode(): true, s.Rack.Inode(): true}
	for _, h := range s.Hosts {
		inodes[h.NS.Inode()] = true
	}
	if got := holders(t, inodes); got == 0 {
		t.Fatal("holders finds nobody before Close; the test proves nothing")
	}
	for range 2 {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if alive(p.PID()) {
		t.Errorf("process %d lives on", p.PID())
	}
	// The kernel gives the number of a namespace that has ended to the next one, which another test may have made.
	eventually(t, "no thread and no descriptor holds the lab's namespaces", func() bool { return holders(t, inodes) == 0 })
	eventually(t, "kernel destroys the lab's namespaces", func() bool { return !linkThere(w, "wit") })
	if err := s.Switch.Do(func() error { return nil }); !errors.Is(err, lab.ErrClosed) {
		t.Errorf("Do after Close: %v", err)
	}
	if _, err := s.Lab.Namespace("x"); !errors.Is(err, lab.ErrClosed) {
		t.Errorf("Namespace after Close: %v", err)
	}
}

// holders counts the threads in one of the namespaces and the descriptors of
// one, in all of /proc.
func holders(t *testing.T, inodes map[uint64]bool) (n int) {
	t.Helper()
	for _, pattern := range []string{"/proc/[0-9]*/task/*/ns/net", "/proc/[0-9]*/fd/*"} {
		paths, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range paths {
			target, err := os.Readlink(p)
			var inode uint64
			if err != nil { // gone meanwhile
				continue
			}
			if _, err := fmt.Sscanf(target, "net:[%d]", &inode); err == nil && inodes[inode] {
				n++
			}
		}
	}
	return n
}

// child runs the test binary as makeAndWait, and returns its process and that
// of the sleep it started.
func child(t *testing.T, name string, w *lab.Namespace) (cmd *exec.Cmd, sleeper int) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd = exec.Command(exe)
	cmd.Env = append(os.Environ(), envMake+"="+name, envWitness+"="+w.Path())
	cmd.Stderr = os.Stderr
	if _, err := cmd.StdinPipe(); err != nil { // open as long as we live
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if _, serr := fmt.Sscanf(line, "ready %d", &sleeper); serr != nil {
		t.Fatalf("child says %q (%v)", line, err)
	}
	if !linkThere(w, "wit") || !alive(sleeper) {
		t.Fatal("child's lab is not there")
	}
	return cmd, sleeper
}

func kill9(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // "signal: killed"
}

func TestKill9LeavesNothingOfAnonymousLab(t *testing.T) {
	w := witness(t)
	cmd, sleeper := child(t, "-", w)
	kill9(t, cmd)
	eventually(t, "process of the lab dies with its owner", func() bool { return !alive(sleeper) })
	eventually(t, "kernel destroys the lab's namespaces", func() bool { return !linkThere(w, "wit") })
}

func TestCleanStaleAfterKill9(t *testing.T) {
	for i := range 5 {
		if cleanAfterKill9(t, fmt.Sprintf("labtest%d-%d", os.Getpid(), i)) {
			return
		}
		t.Log("gone before it was cleaned: another program was the first")
	}
	t.Error("the lab was always gone before it was cleaned: it goes by itself")
}

// cleanAfterKill9 returns false if another program removed the stale lab between kill
// and CleanStale, as tests of other packages may.
func cleanAfterKill9(t *testing.T, name string) bool {
	t.Helper()
	w := witness(t)
	cmd, sleeper := child(t, name, w)

	if removed, err := lab.CleanStale(); err != nil || contains(removed, name) {
		t.Fatalf("CleanStale takes a live owner's lab: %v, %v", removed, err)
	}
	if err := lab.Remove(name); err == nil || !strings.Contains(err.Error(), "in use by process") {
		t.Fatalf("Remove of a live owner's lab: %v", err)
	}
	if _, err := lab.New(lab.Options{Name: name}); err == nil || !strings.Contains(err.Error(), "in use by process") {
		t.Fatalf("New with a name in use: %v", err)
	}

	kill9(t, cmd)
	there := alive(sleeper) && linkThere(w, "wit")
	ip, ipErr := exec.Command("ip", "netns", "exec", name+"-h1", "ip", "-o", "addr", "show", "eth0").CombinedOutput()
	again, newErr := lab.New(lab.Options{Name: name})
	removed, err := lab.CleanStale()
	if err != nil {
		t.Fatal(err)
	}
	if again != nil {
		_ = again.Close()
	}
	gone(t, name, sleeper, w)
	if !there || !contains(removed, name) {
		return false
	}
	if errors.Is(ipErr, exec.ErrNotFound) {
		t.Log("no ip command; not tried")
	} else if ipErr != nil || !strings.Contains(string(ip), "10.77.0.1/16") {
		t.Errorf("ip netns exec: %v\n%s", ipErr, ip)
	}
	if newErr == nil || !strings.Contains(newErr.Error(), "left behind") {
		t.Errorf("New with a stale name: %v", newErr)
	}
	return true
}

func contains(names []string, name string) bool {
	for _, n := range names {
		if n == name {
			return true
		}
	}
	return false
}

// gone checks that a named lab has left no namespace, record or process.
func gone(t *testing.T, name string, sleeper int, w *lab.Namespace) {
	t.Helper()
	if alive(sleeper) {
		t.Errorf("process %d lives on", sleeper)
	}
	eventually(t, "kernel destroys the lab's namespaces", func() bool { return !linkThere(w, "wit") })
	for _, pattern := range []string{"/run/netns/" + name + "-*", "/run/gleam-lab/*" + name + "*"} {
		if left, _ := filepath.Glob(pattern); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
	}
}

func TestKeepAndRemove(t *testing.T) {
	w := witness(t)
	name := fmt.Sprintf("labkeep%d", os.Getpid())
	s, err := lab.NewStar(lab.StarConfig{Options: lab.Options{Name: name}, Hosts: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = lab.Remove(name) })
	if err := lab.Veth(lab.End{NS: s.Hosts[0].NS, Name: "wit"}, lab.End{NS: w, Name: "wit"}, 0); err != nil {
		t.Fatal(err)
	}
	p, err := s.Switch.Start(exec.Command("sh", "-c", "echo started; exec sleep 300"))
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "output in the log file", func() bool { return p.Output() == "started\n" })
	if err := s.Lab.Keep(); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if !alive(p.PID()) || !linkThere(w, "wit") {
		t.Error("a kept lab went with Close")
	}
	if removed, err := lab.CleanStale(); err != nil || contains(removed, name) {
		t.Errorf("CleanStale takes a kept lab: %v, %v", removed, err)
	}
	infos, err := lab.List()
	if err != nil {
		t.Error(err)
	}
	listed := false
	for _, i := range infos {
		listed = listed || i.Name == name && i.Kept && len(i.Namespaces) == 2 && len(i.Processes) == 1 && i.Processes[0] == p.PID()
	}
	if !listed {
		t.Errorf("List: %+v", infos)
	}
	again, err := lab.OpenNamespace("/run/netns/" + name + "-h1")
	if err != nil {
		t.Fatal(err)
	}
	if again.Inode() != s.Hosts[0].NS.Inode() {
		t.Error("another namespace under the kept name")
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
	if err := lab.Remove(name); err != nil {
		t.Fatal(err)
	}
	gone(t, name, p.PID(), w)
	if err := lab.Remove(name); !errors.Is(err, lab.ErrNotFound) {
		t.Errorf("second Remove: %v", err)
	}
}

func TestAnonymousCannotBeKept(t *testing.T) {
	if err := labtest.New(t).Keep(); err == nil {
		t.Error("Keep of an anonymous lab accepted")
	}
}

func TestBadNames(t *testing.T) {
	for _, name := range []string{"../x", "a/b", "-a", "a b", strings.Repeat("a", 33)} {
		if _, err := lab.New(lab.Options{Name: name}); err == nil {
			t.Errorf("lab name %q accepted", name)
		}
		if err := lab.Remove(name); !errors.Is(err, lab.ErrNotFound) {
			t.Errorf("Remove(%q): %v", name, err)
		}
	}
	l := labtest.New(t)
	if _, err := l.Namespace("a"); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"", "a", "../b"} {
		if _, err := l.Namespace(name); err == nil {
			t.Errorf("namespace name %q accepted", name)
		}
	}
	if _, err := lab.OpenNamespace("/proc/self/none"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("OpenNamespace of nothing: %v", err)
	}
	for _, c := range []lab.StarConfig{{}, {Hosts: lab.MaxHosts + 1}, {Hosts: 2, Rack: 3}, {Hosts: 2, Rack: 1, NoBridge: true}} {
		if s, err := lab.NewStar(c); err == nil {
			t.Errorf("NewStar(%+v) accepted", c)
			_ = s.Close()
		}
	}
}
