// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/config"
	"github.com/gleam-rdma/gleam/lab"
	"github.com/gleam-rdma/gleam/test/labtest"
)

var programs = labtest.Programs{Packages: []string{"."}}

func TestMain(m *testing.M) { os.Exit(programs.Run(m)) }

// process is gleamd as a process of its own in the switch of a star.
type process struct {
	*lab.Process
	as     []string // command before gleamd's
	env    []string // more of its environment
	star   *lab.Star
	file   string
	socket string
	client *api.Client
}

// startProcess starts gleamd and waits until it answers.
func startProcess(t *testing.T) *process {
	t.Helper()
	p := &process{star: labtest.Star(t, lab.StarConfig{Hosts: 2})}
	p.configure(t, "")
	return p
}

// configure writes a configuration with these lines more, starts gleamd and waits until it answers.
func (p *process) configure(t *testing.T, more string) {
	t.Helper()
	dir := t.TempDir()
	p.file = filepath.Join(dir, "gleamd.yaml")
	socket := filepath.Join(dir, "run", "s.sock") // in a directory that gleamd makes
	text := p.star.Config() + fmt.Sprintf("envelope: {insecure: true}\napi: {socket: %s}\numem: {frames: 8192}\nrings: {rx: 512, tx: 512, fill: 512, completion: 512}\n%s", socket, more)
	if err := os.WriteFile(p.file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p.client, p.socket = api.Dial(socket), socket
	t.Cleanup(p.client.Close)
	p.restart(t)
}

// restart starts gleamd, again.
func (p *process) restart(t *testing.T) {
	t.Helper()
	words := append(slices.Clone(p.as), programs.Path(t, "gleamd"), "-c", p.file)
	c := exec.Command(words[0], words[1:]...)
	c.Env = append(os.Environ(), p.env...)
	var err error
	if p.Process, err = p.star.Switch.Start(c); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	ended := p.Done()
	go func() { // an answer will not come from one that has ended
		select {
		case <-ended:
			cancel()
		case <-ctx.Done():
		}
	}()
	if err := p.client.WaitReady(ctx); err != nil {
		t.Fatalf("%v\n%s", err, p.Output())
	}
}

// logs reports whether the log becomes as is wanted within five seconds: what the process has
// written before an answer may come after that.
func (p *process) logs(wanted func(log string) bool) bool {
	for end := time.Now().Add(5 * time.Second); !wanted(p.Output()); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}

// xdp counts the ports with an XDP program.
func (p *process) xdp(t *testing.T) (n int) {
	t.Helper()
	for _, name := range p.star.Ports {
		l, err := p.star.Switch.Handle().LinkByName(name)
		if err != nil {
			t.Fatal(err)
		}
		if x := l.Attrs().Xdp; x != nil && x.Attached {
			n++
		}
	}
	return n
}

// TestPortsGoBackToTheKernel: after SIGTERM and after SIGKILL alike; and what a
// killed one leaves does not stop the next one.
func TestPortsGoBackToTheKernel(t *testing.T) {
	p := startProcess(t)
	if n := p.xdp(t); n != 2 {
		t.Errorf("%d ports have an XDP program while gleamd runs, want 2", n)
	}
	ports, err := p.client.Ports(t.Context())
	if err != nil || len(ports) != 2 || ports[0].Name != p.star.Ports[0] || !ports[0].Up {
		t.Errorf("ports: %+v, %v", ports, err)
	}
	if err := p.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	p.Wait()
	if n := p.xdp(t); n != 0 {
		t.Errorf("%d ports have an XDP program after SIGKILL", n)
	}
	p.restart(t) // over the killed one's socket
	if err := p.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := p.Wait(); err != nil {
		t.Errorf("after SIGTERM: %v\n%s", err, p.Output())
	}
	if n := p.xdp(t); n != 0 {
		t.Errorf("%d ports have an XDP program after SIGTERM", n)
	}
}

// TestSecondDaemonOnTheSamePorts has a socket of its own, so that the ports are
// what stands in its way.
func TestSecondDaemonOnTheSamePorts(t *testing.T) {
	p := startProcess(t)
	text, err := os.ReadFile(p.file)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "second.yaml")
	if err := os.WriteFile(file, []byte(strings.Replace(string(text), "s.sock", "second.sock", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	second, err := p.star.Switch.Start(exec.Command(programs.Path(t, "gleamd"), "-c", file))
	if err != nil {
		t.Fatal(err)
	}
	err = second.Wait()
	if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) || exit.ExitCode() != 1 || !strings.Contains(second.Output(), "attached to "+p.star.Ports[0]) {
		t.Errorf("%v\n%s", err, second.Output())
	}
	if _, err := p.client.Stats(t.Context()); err != nil || p.xdp(t) != 2 {
		t.Errorf("the first one is disturbed: %v, %d ports with a program", err, p.xdp(t))
	}
}

// TestCheckInTheSwitch looks for the configured interfaces where gleamd runs. Its own XDP programs
// are no finding for a configuration with its API socket; they are for one with another socket.
func TestCheckInTheSwitch(t *testing.T) {
	p := startProcess(t)
	check := func(file string) string {
		t.Helper()
		c, err := p.star.Switch.Start(exec.Command(programs.Path(t, "gleamd"), "--check", "-c", file))
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Wait(); err != nil {
			t.Errorf("%v\n%s", err, c.Output())
		}
		return c.Output()
	}
	const attached = "an XDP program is attached"
	runs := fmt.Sprintf("runs with this API socket (process %d)", p.PID())
	if said := check(p.file); strings.Contains(said, attached) || !strings.Contains(said, runs) {
		t.Errorf("beside its own gleamd, --check says\n%s\nwant %q", said, runs)
	}
	text, err := os.ReadFile(p.file)
	if err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(t.TempDir(), "other.yaml")
	if err := os.WriteFile(other, []byte(strings.Replace(string(text), "s.sock", "other.sock", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if said := check(other); strings.Count(said, attached) != len(p.star.Ports) || strings.Contains(said, "runs with") {
		t.Errorf("beside another gleamd, --check says\n%s\nwant %q for each port", said, attached)
	}
}

// TestHangup: SIGHUP ends neither the switch nor its groups, and reloads the keys. A file
// with a mistake changes nothing. What needs a restart is named. No line has a secret.
func TestHangup(t *testing.T) {
	p := startProcess(t)
	const secret = "7f3a91c4d2e8065b4c19aa07e35d88f16b20cd9e417af35502d6b8e1943c7a0d"
	text, err := os.ReadFile(p.file)
	if err != nil {
		t.Fatal(err)
	}
	rest := strings.Replace(string(text), "insecure: true", "keys: [%s]", 1)
	key := func(id int) string { return fmt.Sprintf("{id: %d, secret: \"hex:%s%d\"}", id, secret[1:], id) }
	write := func(text string) { t.Helper(); p.rewrite(t, text) }
	write(fmt.Sprintf(rest, key(1)))
	if err := p.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := p.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, p.Output())
	}
	p.restart(t)
	if err := p.client.Register(t.Context(), &api.Register{
		Group: lab.StarGroupsIPv4.Addr().Next(), QPN: 0x4711, PMTU: 1024, Policy: "strict",
		Members: []api.RegisterMember{{IP: p.star.Hosts[0].IPv4, QPN: 0x11}, {IP: p.star.Hosts[1].IPv4, QPN: 0x12}},
	}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ text, says string }{
		{fmt.Sprintf(rest, key(1)+", "+key(2)), "the configuration is reloaded"},
		{fmt.Sprintf(rest, key(1)+", "+key(1)), "key id is there already"},
		{fmt.Sprintf(rest, ""), "the configuration is that of before"},
		{fmt.Sprintf(rest, key(2)) + "psn_probe: 3ms\n", "psn_probe"},
		{string(text), "needs a restart"},
	} {
		before := len(p.Output())
		write(c.text)
		if err := p.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		for end := time.Now().Add(testTimeout); !strings.Contains(p.Output()[before:], c.says); time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("the log does not say %q:\n%s", c.says, p.Output()[before:])
			}
		}
	}
	write(fmt.Sprintf(rest, key(2)+", "+key(3)) + "psn_probe: 3ms\n")
	for _, applied := range []string{"[envelope.keys]", "[]"} { // the second time nothing has changed
		x, err := p.client.Reload(t.Context(), api.Reload{})
		if err != nil || fmt.Sprint(x.Keys, x.Applied, x.NeedsRestart) != "[2 3] "+applied+" [{psn_probe "+config.RestartReason("psn_probe")+"}]" {
			t.Errorf("reload by the API: %+v, %v", x, err)
		}
	}
	write(fmt.Sprintf(rest, key(2)+", "+key(2)))
	if _, err := p.client.Reload(t.Context(), api.Reload{}); err == nil || !strings.Contains(err.Error(), "key id is there already") {
		t.Errorf("reload of a file with a mistake: %v", err)
	}
	for _, result := range []string{`"result": "ok"`, "key id is there already"} {
		if !p.logs(func(log string) bool {
			return slices.ContainsFunc(strings.Split(log, "\n"), func(l string) bool {
				return strings.Contains(l, "audit") && strings.Contains(l, "reload the configuration") && strings.Contains(l, result)
			})
		}) {
			t.Errorf("no audit line of a reload with %s:\n%s", result, p.Output())
		}
	}
	if strings.Contains(p.Output(), secret[:16]) {
		t.Error("the log has a secret")
	}
	if gs, err := p.client.Groups(t.Context()); err != nil || len(gs) != 1 || p.xdp(t) != 2 {
		t.Errorf("after SIGHUP: groups %v, %v, %d ports with a program", gs, err, p.xdp(t))
	}
	if err := p.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := p.Wait(); err != nil {
		t.Errorf("after SIGTERM: %v\n%s", err, p.Output())
	}
}
