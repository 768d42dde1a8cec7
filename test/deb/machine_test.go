// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package deb tests the Debian packages in a clean Debian with systemd as its first process.
package deb

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/internal/tools/lab"
)

// needs are the packages that a minimal Debian lacks to run ours: systemd, and what ours
// depend on. dpkg fails if one is missing here.
const needs = "systemd,systemd-sysv,libssl3,python3"

// bootTime bounds the boot of the machine, and each command in it.
const bootTime = 90 * time.Second

// machine is a Debian that systemd-nspawn has booted, in the network namespace of a switch.
type machine struct {
	root   string
	leader int // the process identifier of its systemd, as seen here
	nspawn *exec.Cmd
	log    string
}

// rootEnv names a tar of a minimal Debian with the packages in needs; without it one is made.
const rootEnv = "GLEAM_DEB_ROOT"

// newRoot makes a minimal Debian of the apt sources of this machine.
func newRoot(t *testing.T) string {
	t.Helper()
	root, err := os.MkdirTemp("", "gleam-deb") // not t.TempDir: users other than root enter it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(root) })
	if err := os.Chmod(root, 0o755); err != nil {
		t.Fatal(err)
	}
	if tar := os.Getenv(rootEnv); tar != "" {
		if out, err := exec.Command("tar", "--numeric-owner", "-C", root, "-xf", tar).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", tar, err, out)
		}
		return root
	}
	out, err := exec.Command("apt-get", "indextargets", "--format", "deb $(REPO_URI) $(RELEASE) $(COMPONENT) # $(ORIGIN)", "Created-By: Packages").Output()
	if err != nil {
		t.Fatalf("read the apt sources: %v", err)
	}
	var sources bytes.Buffer
	for line := range strings.Lines(string(out)) {
		if source, ok := strings.CutSuffix(strings.TrimSpace(line), " # Debian"); ok {
			fmt.Fprintln(&sources, source)
		}
	}
	if sources.Len() == 0 {
		t.Fatal("no apt source of Debian on this machine; type: apt-get update")
	}
	release, err := exec.Command("sh", "-c", ". /etc/os-release; echo $VERSION_CODENAME").Output()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command("mmdebstrap", "--quiet", "--variant=minbase", "--include="+needs, strings.TrimSpace(string(release)), root, "-")
	c.Stdin = &sources
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("mmdebstrap: %v\n%s", err, out)
	}
	return root
}

// boot starts systemd in root. Folders at from are seen at /debs/NAME.
func boot(t *testing.T, root string, star *lab.Star, debs map[string]string) *machine {
	t.Helper()
	m := &machine{root: root, log: filepath.Join(t.TempDir(), "log")}
	args := []string{
		"--quiet", "--register=no", "--keep-unit", "--boot", "--console=pipe", "--directory=" + root,
		"--machine=gleam-deb-" + strconv.Itoa(os.Getpid()), "--network-namespace-path=" + star.Switch.Path(),
		"--capability=CAP_NET_ADMIN,CAP_NET_RAW,CAP_BPF,CAP_PERFMON,CAP_IPC_LOCK", "--system-call-filter=bpf",
	}
	for name, folder := range debs {
		args = append(args, "--bind-ro="+folder+":/debs/"+name)
	}
	log, err := os.Create(m.log)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	m.nspawn = exec.Command("systemd-nspawn", args...)
	m.nspawn.Stdout, m.nspawn.Stderr = log, log
	if err := m.nspawn.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { defer close(ended); m.nspawn.Wait() }()
	t.Cleanup(func() {
		// The first asks systemd to halt, the second ends what is left of the machine.
		for _, patience := range []time.Duration{20 * time.Second, 5 * time.Second} {
			m.nspawn.Process.Signal(syscall.SIGTERM)
			select {
			case <-ended:
				return
			case <-time.After(patience):
			}
		}
		m.nspawn.Process.Kill()
		<-ended
	})
	wait(t, "systemd runs", func() error {
		select {
		case <-ended:
			text, _ := os.ReadFile(m.log)
			t.Fatalf("systemd-nspawn has ended:\n%s", text)
		default:
		}
		if m.leader, err = childOf(m.nspawn.Process.Pid); err != nil {
			return err
		}
		state, err := m.try("systemctl is-system-running")
		if s := strings.TrimSpace(state); s != "running" && s != "degraded" { // some unit fails in any container
			return fmt.Errorf("%s: %w", s, errors.Join(err, errNotYet))
		}
		return nil
	})
	return m
}

var errNotYet = errors.New("not yet")

// childOf is the first child of a process.
func childOf(pid int) (int, error) {
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, f := range files {
		text, _ := os.ReadFile(f)
		if words := strings.Fields(string(text)); len(words) > 0 {
			return strconv.Atoi(words[0])
		}
	}
	return 0, errNotYet
}

// wait waits until there is no error.
func wait(t *testing.T, what string, try func() error) {
	t.Helper()
	end := time.Now().Add(bootTime)
	for {
		err := try()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%s: %v", what, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// try runs a line of a shell in the machine, and returns what it prints.
func (m *machine) try(line string) (string, error) {
	c := exec.Command("timeout", strconv.Itoa(int(bootTime.Seconds())), "nsenter", "--target", strconv.Itoa(m.leader), "--all", "sh", "-c", line)
	c.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C.UTF-8", "DEBIAN_FRONTEND=noninteractive"}
	out, err := c.CombinedOutput()
	return string(out), err
}

// run is try of what has to succeed.
func (m *machine) run(t *testing.T, line string) string {
	t.Helper()
	out, err := m.try(line)
	if err != nil {
		logged, _ := m.try("journalctl --no-pager -n 50")
		t.Fatalf("%s: %v\n%s\njournal:\n%s", line, err, out, logged)
	}
	return strings.TrimSpace(out)
}

// property is one of gleamd's service.
func (m *machine) property(t *testing.T, name string) string {
	t.Helper()
	return m.run(t, "systemctl show --value --property "+name+" gleamd")
}

// gleamd is the process identifier of the machine's gleamd, as seen here.
func (m *machine) gleamd(t *testing.T) int {
	t.Helper()
	inside := m.property(t, "MainPID")
	space, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", m.leader))
	if err != nil {
		t.Fatal(err)
	}
	all, _ := filepath.Glob("/proc/[0-9]*/status")
	for _, f := range all {
		if s, _ := os.Readlink(filepath.Join(filepath.Dir(f), "ns/pid")); s != space {
			continue
		}
		text, _ := os.ReadFile(f)
		for line := range strings.Lines(string(text)) {
			if words := strings.Fields(line); len(words) > 1 && words[0] == "NSpid:" && words[len(words)-1] == inside {
				pid, _ := strconv.Atoi(words[1])
				return pid
			}
		}
	}
	t.Fatalf("no process here is gleamd, which is %s in the machine", inside)
	return 0
}
