// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package deb tests the Debian packages in a clean Debian with systemd as its first process.
package deb

import (
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

	"github.com/gleam-rdma/gleam/lab"
	"github.com/gleam-rdma/gleam/test/debian"
)

// needs are the packages that a minimal Debian lacks to run ours: systemd, and what ours
// depend on. dpkg fails if one is missing here.
var needs = []string{"systemd", "systemd-sysv", "libssl3", "python3"}

// bootTime bounds the boot of the machine, and each command in it.
const bootTime = 90 * time.Second

// machine is a Debian in the network namespace of a switch: systemd-nspawn has booted it, or,
// where that is not possible, it has namespaces of its own and no systemd.
type machine struct {
	root    string
	leader  int  // the process identifier of its first process, as seen here
	systemd bool // true: its first process is systemd
	log     string
}

// formEnv is chroot for a machine without systemd, as it is where systemd-nspawn does not run.
const formEnv = "GLEAM_DEB_FORM"

// rootEnv names a tar of a minimal Debian with the packages in needs; without it one is made.
const rootEnv = "GLEAM_DEB_ROOT"

// newRoot makes a minimal Debian.
func newRoot(t *testing.T) string {
	t.Helper()
	tar := os.Getenv(rootEnv)
	if tar == "" {
		return debian.Root(t, needs...)
	}
	root := debian.Folder(t)
	if out, err := exec.Command("tar", "--numeric-owner", "-C", root, "-xf", tar).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", tar, err, out)
	}
	return root
}

// start starts the machine in root. Folders at debs are seen at /debs/NAME.
func start(t *testing.T, root string, star *lab.Star, debs map[string]string) *machine {
	t.Helper()
	m := &machine{root: root, log: filepath.Join(t.TempDir(), "log")}
	err := m.boot(t, star, debs)
	if err == nil {
		m.systemd = true
		return m
	}
	text, _ := os.ReadFile(m.log)
	t.Logf("NOTE: systemd does not run here, so that services, journal, watchdog and exposure are NOT tested: %v\n%s", err, text)
	if err := m.enter(t, star, debs); err != nil {
		text, _ := os.ReadFile(m.log)
		t.Fatalf("%v\n%s", err, text)
	}
	return m
}

// launch starts the machine's first process, and waits until it is ready.
func (m *machine) launch(t *testing.T, c *exec.Cmd, what string, ready func() error) error {
	log, err := os.Create(m.log)
	if err != nil {
		return err
	}
	defer log.Close()
	c.Stdout, c.Stderr = log, log
	if err := c.Start(); err != nil {
		return err
	}
	ended := make(chan struct{})
	go func() { defer close(ended); c.Wait() }()
	t.Cleanup(func() {
		// The first asks systemd to halt, the second ends what is left of the machine.
		for _, patience := range []time.Duration{20 * time.Second, 5 * time.Second} {
			c.Process.Signal(syscall.SIGTERM)
			select {
			case <-ended:
				return
			case <-time.After(patience):
			}
		}
		c.Process.Kill()
		<-ended
	})
	end := time.Now().Add(bootTime)
	for {
		select {
		case <-ended:
			return fmt.Errorf("%s has ended: %v", c.Args[0], c.ProcessState)
		default:
		}
		if m.leader, err = childOf(c.Process.Pid); err == nil {
			err = ready()
		}
		if err == nil {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("%s: %w", what, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// boot starts systemd as the first process.
func (m *machine) boot(t *testing.T, star *lab.Star, debs map[string]string) error {
	if os.Getenv(formEnv) == "chroot" {
		return errors.New(formEnv + " is chroot")
	}
	args := []string{
		"--quiet", "--register=no", "--keep-unit", "--boot", "--console=pipe", "--directory=" + m.root,
		"--machine=gleam-deb-" + strconv.Itoa(os.Getpid()), "--network-namespace-path=" + star.Switch.Path(),
		"--capability=CAP_NET_ADMIN,CAP_NET_RAW,CAP_BPF,CAP_PERFMON,CAP_IPC_LOCK", "--system-call-filter=bpf",
	}
	for name, folder := range debs {
		args = append(args, "--bind-ro="+folder+":/debs/"+name)
	}
	return m.launch(t, exec.Command("systemd-nspawn", args...), "systemd runs", func() error {
		state, err := m.try("systemctl is-system-running")
		if s := strings.TrimSpace(state); s != "running" && s != "degraded" { // some unit fails in any container
			return fmt.Errorf("%s: %w", s, errors.Join(err, errNotYet))
		}
		return nil
	})
}

// enter makes namespaces of mounts and processes, whose first process does nothing.
func (m *machine) enter(t *testing.T, star *lab.Star, debs map[string]string) error {
	binds := make(map[string]string)
	for name, folder := range debs {
		binds["/debs/"+name] = folder
	}
	// The folder tells when all is mounted.
	c := debian.Command(debian.Script(m.root, "", binds)+"mkdir -p run/gleam; touch run/mounted; exec sleep infinity", "nsenter", "--net="+star.Switch.Path())
	return m.launch(t, c, "a process runs in "+m.root, func() error {
		_, err := os.Stat(fmt.Sprintf("/proc/%d/root/run/mounted", m.leader))
		return err
	})
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
	c := exec.Command("timeout", strconv.Itoa(int(bootTime.Seconds())), "nsenter", "--target", strconv.Itoa(m.leader), "--all", "--root", "--wd", "sh", "-c", line)
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

// startGleamd starts the service as an administrator does.
func (m *machine) startGleamd(t *testing.T) {
	t.Helper()
	if m.systemd {
		m.run(t, "systemctl enable --now gleamd")
		return
	}
	m.run(t, "gleamd >/var/log/daemon.log 2>&1 & echo $! >/run/gleamd.pid")
	wait(t, "gleamd answers", func() error {
		out, err := m.try("gleam port list || cat /var/log/daemon.log")
		if err == nil && !strings.Contains(out, "PORT") {
			return fmt.Errorf("%w: %s", errNotYet, out)
		}
		return err
	})
}

// stopGleamd does without systemd what the packages ask systemd for.
func (m *machine) stopGleamd(t *testing.T) {
	t.Helper()
	if !m.systemd {
		// Nobody waits for it: a zombie stays, without a command line.
		m.run(t, "kill $(cat /run/gleamd.pid); while grep -q . /proc/$(cat /run/gleamd.pid)/cmdline 2>/dev/null; do sleep 0.05; done")
	}
}

// restartGleamd has gleamd read its configuration again.
func (m *machine) restartGleamd(t *testing.T) {
	t.Helper()
	if m.systemd {
		m.run(t, "systemctl restart gleamd")
		return
	}
	m.stopGleamd(t)
	m.startGleamd(t)
}

// install installs all packages of a folder below /debs. A gleamd that runs is then the new one.
func (m *machine) install(t *testing.T, which string, runs bool) {
	t.Helper()
	m.run(t, "dpkg --install $(ls /debs/"+which+"/*.deb | grep -v dbgsym)")
	if runs && !m.systemd {
		m.restartGleamd(t)
	}
}

// mainPID is gleamd's process identifier in the machine.
func (m *machine) mainPID(t *testing.T) string {
	t.Helper()
	if m.systemd {
		return m.property(t, "MainPID")
	}
	return m.run(t, "cat /run/gleamd.pid")
}

// gleamd is the process identifier of the machine's gleamd, as seen here.
func (m *machine) gleamd(t *testing.T) int {
	t.Helper()
	inside := m.mainPID(t)
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
