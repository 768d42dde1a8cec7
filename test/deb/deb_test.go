// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package deb

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/cmd/commands"
	labcommand "github.com/gleam-rdma/gleam/cmd/gleam-lab/command"
	"github.com/gleam-rdma/gleam/internal/cli"
	"github.com/gleam-rdma/gleam/lab"
	"github.com/gleam-rdma/gleam/test/hostgroup"
	"github.com/gleam-rdma/gleam/test/labtest"
)

// Where the packages are: of this tree, and of the release before; without the latter it is
// this tree's with a lower version.
const (
	newEnv = "GLEAM_DEB"
	oldEnv = "GLEAM_DEB_BEFORE"
)

// The packages are installed, serve a group, are upgraded while data flows, outlive a worker
// that stands still, are removed, and purged.
func TestPackages(t *testing.T) {
	labtest.Part(t, "deb")
	labtest.Require(t)
	if os.Getenv(newEnv) == "" {
		t.Fatal(newEnv + " is to name the folder of the packages: make test-deb")
	}
	folder, err := filepath.Abs(os.Getenv(newEnv))
	if err != nil {
		t.Fatal(err)
	}
	before := os.Getenv(oldEnv)
	if before == "" {
		before = t.TempDir()
		lower(t, folder, before)
	}
	star := labtest.Star(t, lab.StarConfig{Hosts: 3})
	m := start(t, newRoot(t), star, map[string]string{"before": before, "new": folder})

	// As installed: no service runs, since no port is named.
	m.install(t, "before", false)
	if s, _ := m.try("systemctl is-enabled gleamd; systemctl is-active gleamd"); m.systemd && s != "disabled\ninactive\n" {
		t.Errorf("after installation gleamd is %q", s)
	}
	if s := m.run(t, "stat -c '%a %U %G' /var/lib/gleam; getent passwd gleam | cut -d: -f6-"); s != "700 gleam gleam\n/nonexistent:/usr/sbin/nologin" {
		t.Errorf("state and user: %s", s)
	}
	checkPages(t, m)
	m.run(t, "python3 -c 'import pygleam'; test -e /usr/lib/python3/dist-packages/gleam_torch/hub.py")
	m.run(t, "cd /usr/share/gleam; ls grafana/gleam.json prometheus/gleam.rules.yml prometheus/prometheus.yml systemd/gleamd-unprivileged.conf")

	config := star.Config() + "envelope: {keys: [{id: 1, secret_file: gleam.key}]}\nstate: /var/lib/gleam\n" +
		"worker: {cpu: 0}\numem: {frames: 8192}\nrings: {rx: 512, tx: 512, fill: 512, completion: 512}\n"
	m.write(t, "/etc/gleam/gleamd.yaml", config)
	m.run(t, "umask 077; head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \\n' >/etc/gleam/gleam.key; gleamd --check")
	m.startGleamd(t)
	m.write(t, "/etc/gleam/gleamd.yaml", config+"switch: {id: '00000000000000a1', keys: [{id: 1, secret_file: switch.key}]}\n")
	m.run(t, "umask 077; head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \\n' >/etc/gleam/switch.key")
	m.restartGleamd(t) // as one of several switches
	m.run(t, "gleam topology; rm /etc/gleam/switch.key")
	m.write(t, "/etc/gleam/gleamd.yaml", config)
	m.restartGleamd(t)
	client := api.Dial(fmt.Sprintf("/proc/%d/root%s", m.leader, api.DefaultSocket))
	t.Cleanup(client.Close)
	group := hostgroup.New(t, star, client)
	group.Pass(t, 0, 0)
	if s := m.run(t, "gleam group list"); !strings.Contains(s, group.Registration.Group.String()) {
		t.Errorf("gleam in the machine lists\n%s", s)
	}
	checkVersion(t, m)
	if m.systemd {
		checkJournal(t, m)
		checkExposure(t, m, mostExposure)
	}

	// during runs what while hosts send in turn.
	round := 0
	during := func(what func()) {
		t.Helper()
		done := make(chan struct{})
		go func() { defer close(done); what() }()
		for over := false; !over; {
			round++
			select {
			case <-done:
				over = true
			default:
			}
			if gap := group.Pass(t, round%2, round); over {
				t.Logf("%v between two completions in the last round", gap)
			}
		}
	}
	served := func(how string) {
		t.Helper()
		gs, err := client.Groups(t.Context())
		if err != nil || len(gs) != 1 || gs[0].IP != group.Registration.Group || len(gs[0].Members) != 3 {
			t.Errorf("after %s: groups %+v, %v", how, gs, err)
		}
		if s := m.run(t, "cat /etc/gleam/gleamd.yaml"); s != strings.TrimSpace(config) {
			t.Errorf("after %s the configuration is\n%s", how, s)
		}
	}
	versionOf := func() string { return m.run(t, "dpkg-query -W -f '${Version}' gleamd") }

	first, older := m.mainPID(t), versionOf()
	during(func() { m.install(t, "new", true) })
	if pid, newer := m.mainPID(t), versionOf(); pid == first || newer == older || m.systemd && m.property(t, "ActiveState") != "active" {
		t.Errorf("the upgrade from %s to %s: process %s, then %s", older, newer, first, pid)
	}
	served("the upgrade")
	checkDocuments(t, m)
	during(func() { m.install(t, "new", true) })
	served("the same installation again")

	if m.systemd {
		watchdog(t, m, during)
		served("the watchdog")
		unprivileged(t, m, during)
		served("the change of the user")
	}

	m.stopGleamd(t)
	m.run(t, "dpkg --remove gleamd")
	if s, _ := m.try("systemctl is-active gleamd; ls /var/lib/gleam"); m.systemd && !strings.HasPrefix(s, "inactive\n") || len(strings.Fields(s)) < 2 {
		t.Errorf("after removal: %s", s)
	}
	if s, err := m.try("cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' '\\n' | grep -E '^(/usr/bin/)?gleamd$'"); err == nil {
		t.Errorf("after removal %s runs", s)
	}
	for _, p := range star.Ports {
		if l, err := star.Switch.Handle().LinkByName(p); err != nil || l.Attrs().Xdp != nil && l.Attrs().Xdp.Attached {
			t.Errorf("after removal port %s has a program, or is gone: %v", p, err)
		}
	}
	m.run(t, "dpkg --purge gleamd gleam-lab gleam python3-gleam libgleam-dev libgleam1")
	left := m.run(t, "rm -rf /run/systemd/system/gleamd.service.d /run/gleamd.pid; [ -d /run/systemd/system ] || rmdir /run/gleam; find / /run -xdev -name '*gleam*' ! -path '/debs/*' ! -path '/tmp/*' | grep -v '^/var/lib/dpkg/info/' | sort -u")
	if want := "/etc/gleam\n/etc/gleam/gleam.key"; left != want { // the key is the administrator's
		t.Errorf("after purging there are\n%s\nwant\n%s", left, want)
	}
}

// watchdog: a worker that stands still is ended by systemd.
func watchdog(t *testing.T, m *machine, during func(func())) {
	t.Helper()
	m.run(t, "mkdir -p /run/systemd/system/gleamd.service.d; printf '[Service]\\nWatchdogSec=2\\n' >/run/systemd/system/gleamd.service.d/test.conf; systemctl daemon-reload; systemctl restart gleamd")
	during(func() {
		defer labtest.HoldThread(t, labtest.ThreadOnCPU0(t, m.gleamd(t)))() // it has ended by then
		wait(t, "systemd restarts gleamd", func() error {
			if s := m.property(t, "NRestarts"); s == "0" || m.property(t, "ActiveState") != "active" {
				return errNotYet
			}
			return nil
		})
	})
	if s := m.run(t, "journalctl --no-pager -u gleamd"); !strings.Contains(s, "Watchdog timeout") || !strings.Contains(s, "worker 0") || !strings.Contains(s, "goroutine ") {
		t.Errorf("the journal lacks the watchdog, the worker that stood still, or the stacks:\n%s", s)
	}
}

// unprivileged starts gleamd as the user gleam, as gleamd-unprivileged.conf says.
func unprivileged(t *testing.T, m *machine, during func(func())) {
	t.Helper()
	m.run(t, "chgrp gleam /etc/gleam/*.key; chmod 640 /etc/gleam/*.key; cp /usr/share/gleam/systemd/gleamd-unprivileged.conf /run/systemd/system/gleamd.service.d/unprivileged.conf; rm /run/systemd/system/gleamd.service.d/test.conf; systemctl daemon-reload")
	during(func() { m.run(t, "systemctl restart gleamd") })
	checkExposure(t, m, mostExposureUnprivileged)
	if s := m.run(t, "systemctl show --value --property User gleamd; stat -c '%a %U %G' /var/lib/gleam /run/gleam"); s != "gleam\n700 gleam gleam\n755 gleam gleam" {
		t.Errorf("without privileges user and folders are %q", s)
	}
}

// checkVersion looks for what gleamd says of its source and of the kernel.
func checkVersion(t *testing.T, m *machine) {
	t.Helper()
	var v struct {
		Gleam, Gleamd api.Version
		Kernel        struct {
			Of string
			api.Kernel
		}
	}
	text := m.run(t, "gleam version -o json")
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	present := make(map[string]string)
	for _, f := range v.Kernel.Features {
		present[f.Name] = f.State
	}
	if !regexp.MustCompile(`^[0-9a-f]{12}(\+dirty)?$`).MatchString(v.Gleamd.Commit) || v.Gleam.Commit != v.Gleamd.Commit || v.Kernel.Of != "gleamd" ||
		present["af_xdp"] != api.FeaturePresent || present["xdp"] != api.FeaturePresent || present["seccomp"] != api.FeaturePresent {
		t.Errorf("gleam version says\n%s", text)
	}
	if s := m.run(t, "gleamd --version"); !strings.Contains(s, v.Gleamd.Commit[:7]) {
		t.Errorf("%q does not have the commit %s", s, v.Gleamd.Commit)
	}
}

// The most that `systemd-analyze security` may say, of gleamd.service and with
// gleamd-unprivileged.conf; docs/UPGRADING.md explains what it counts.
const (
	mostExposure             = 3.2
	mostExposureUnprivileged = 2.0
)

func checkExposure(t *testing.T, m *machine, most float64) {
	t.Helper()
	if s := m.run(t, "systemd-analyze security --no-pager gleamd | tail -1"); exposure(t, s) > most {
		t.Errorf("%s, want %.1f at most", s, most)
	}
}

func exposure(t *testing.T, line string) (x float64) {
	t.Helper()
	m := regexp.MustCompile(`: ([0-9.]+) `).FindStringSubmatch(line)
	if m == nil {
		t.Fatalf("systemd-analyze says %q", line)
	}
	fmt.Sscan(m[1], &x)
	return x
}

// checkPages looks for a manual page of each command, and for completions.
func checkPages(t *testing.T, m *machine) {
	t.Helper()
	have := strings.Fields(m.run(t, "find /usr/share/man -name '*gleam*' -printf '%f\\n'; ls /usr/share/bash-completion/completions/gleam /usr/share/zsh/vendor-completions/_gleam /usr/share/fish/vendor_completions.d/gleam.fish"))
	want := []string{"gleamd.8.gz", "gleamd.yaml.5.gz", "gleam.3.gz"}
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		want = append(want, strings.ReplaceAll(c.CommandPath(), " ", "-")+".1.gz")
		for _, sub := range c.Commands() {
			if sub.IsAvailableCommand() {
				walk(sub)
			}
		}
	}
	walk(cli.New(&cli.Env{Stdout: io.Discard, Stderr: io.Discard}, slices.Concat(commands.OfGleam, labcommand.Commands)...))
	for _, page := range want {
		if !slices.Contains(have, page) {
			t.Errorf("no package has %s", page)
		}
	}
	if s := m.run(t, "gleam __complete group ''"); !strings.Contains(s, "register") {
		t.Errorf("gleam completes\n%s", s)
	}
}

// checkDocuments looks for the documents, compressed or not.
func checkDocuments(t *testing.T, m *machine) {
	t.Helper()
	documents, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(documents) == 0 {
		t.Fatalf("documents: %v, %v", documents, err)
	}
	have := strings.Fields(m.run(t, "ls /usr/share/doc/gleam"))
	for _, d := range append(documents, "README.md", "SECURITY.md") {
		if d = filepath.Base(d); !slices.Contains(have, d) && !slices.Contains(have, d+".gz") {
			t.Errorf("the package gleam has no %s", d)
		}
	}
}

// checkJournal looks for fields of entries.
func checkJournal(t *testing.T, m *machine) {
	t.Helper()
	wait(t, "an entry with GROUP and one with PORT", func() error {
		out, _ := m.try("journalctl --no-pager -o json -u gleamd")
		found := map[string]bool{}
		for line := range strings.Lines(out) {
			var e map[string]any
			if json.Unmarshal([]byte(line), &e) != nil {
				continue
			}
			for _, field := range []string{"PORT", "GROUP"} {
				if v, ok := e[field].(string); ok && v != "" && e["SYSLOG_IDENTIFIER"] == "gleamd" && e["_TRANSPORT"] == "journal" {
					found[field] = true
				}
			}
		}
		if len(found) < 2 {
			return fmt.Errorf("%w: of %d bytes: %v", errNotYet, len(out), found)
		}
		return nil
	})
	if s := m.run(t, "journalctl --no-pager -u gleamd PORT=p1 GLEAM_MESSAGE='port attached'"); !strings.Contains(s, `"port": "p1"`) {
		t.Errorf("the entries of port p1:\n%s", s)
	}
}

// write writes a file in the machine.
func (m *machine) write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(m.root, name), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// lower copies the packages of a folder to another one, with a lower version.
func lower(t *testing.T, from, to string) {
	t.Helper()
	debs, _ := filepath.Glob(filepath.Join(from, "*.deb"))
	if len(debs) == 0 {
		t.Fatalf("no packages in %s (make deb)", from)
	}
	for _, deb := range debs {
		if strings.Contains(deb, "dbgsym") {
			continue
		}
		version, err := exec.Command("dpkg-deb", "-f", deb, "Version").Output()
		if err != nil {
			t.Fatal(err)
		}
		dir := filepath.Join(t.TempDir(), "tree")
		if out, err := exec.Command("dpkg-deb", "-R", deb, dir).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		control := filepath.Join(dir, "DEBIAN/control")
		text, err := os.ReadFile(control)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(control, []byte(strings.ReplaceAll(string(text), strings.TrimSpace(string(version)), "0~0before")), 0o644); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command("dpkg-deb", "-Znone", "--root-owner-group", "-b", dir, to).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
}
