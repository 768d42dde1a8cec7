// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/lab"
	"github.com/gleam-rdma/gleam/lab/labtest"
)

// The real gleamd, built as it is shipped, runs with no more than the kept
// capabilities in any thread, and still resolves members, reads counters and
// ends cleanly.
func TestPrivilegesAreDropped(t *testing.T) {
	star := labtest.Star(t, lab.StarConfig{Hosts: 2})
	dir := t.TempDir()
	program := filepath.Join(dir, "gleamd")
	build := exec.Command("go", "build", "-o", program, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build gleamd: %v\n%s", err, out)
	}
	socket, file := filepath.Join(dir, "s.sock"), filepath.Join(dir, "gleamd.yaml")
	text := star.Config() + "envelope: {insecure: true}\napi: {socket: " + socket + ", group: daemon}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := star.Switch.Start(exec.Command(program, "-c", file))
	if err != nil {
		t.Fatal(err)
	}
	client := api.Dial(socket)
	defer client.Close()
	if err := client.WaitReady(t.Context()); err != nil {
		t.Fatal(err, p.Output())
	}
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", p.PID()))
	if err != nil || len(tasks) < 2 {
		t.Fatalf("threads of gleamd: %v, %v", tasks, err)
	}
	for _, task := range tasks {
		status, err := os.ReadFile(task)
		if err != nil {
			continue // a thread that has ended
		}
		for _, want := range []string{"CapEff:\t0000008000001000", "CapPrm:\t0000008000001000", "CapInh:\t0000000000000000", "NoNewPrivs:\t1"} {
			if !strings.Contains(string(status), want) {
				t.Errorf("%s lacks %q:\n%s", task, want, status)
			}
		}
	}
	if i, err := os.Stat(socket); err != nil || i.Mode().Perm() != 0o660 {
		t.Errorf("socket %v, %v", i, err)
	}
	if ports, err := client.Ports(t.Context()); err != nil || len(ports) != 2 {
		t.Errorf("ports %v, %v", ports, err)
	}
	err = client.Register(t.Context(), &api.Register{
		Group: lab.StarGroupsIPv4.Addr().Next(), QPN: 0x4711, PMTU: 1024, Policy: "strict",
		Members: []api.RegisterMember{{IP: star.Hosts[0].IPv4, QPN: 0x11}, {IP: star.Hosts[1].IPv4, QPN: 0x12}},
	})
	if err != nil {
		t.Errorf("register: %v\n%s", err, p.Output())
	}
	if err := p.Stop(testTimeout); err != nil {
		t.Error(err)
	}
	if err := p.Wait(); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(socket); !os.IsNotExist(err) {
		t.Errorf("the socket is left behind: %v", err)
	}
}

// Each capability is named if it is what is missing, and CAP_SYS_ADMIN stands for
// those of BPF. Kernels 6.18 refused gleamd without any one of the four.
func TestMissingCapabilities(t *testing.T) {
	const all = 1<<unix.CAP_NET_ADMIN | 1<<unix.CAP_NET_RAW | 1<<unix.CAP_BPF | 1<<unix.CAP_PERFMON
	for _, c := range []struct {
		has  uint64
		want string
	}{
		{all, ""},
		{1<<unix.CAP_NET_ADMIN | 1<<unix.CAP_NET_RAW | 1<<unix.CAP_SYS_ADMIN, ""},
		{all &^ (1 << unix.CAP_NET_ADMIN), "CAP_NET_ADMIN"},
		{all &^ (1 << unix.CAP_NET_RAW), "CAP_NET_RAW"},
		{all &^ (1 << unix.CAP_BPF), "CAP_BPF"},
		{all &^ (1 << unix.CAP_PERFMON), "CAP_PERFMON"},
		{0, "CAP_NET_ADMIN CAP_NET_RAW CAP_BPF CAP_PERFMON"},
	} {
		if got := strings.Join(missing(c.has), " "); got != c.want {
			t.Errorf("%x: %q is missing, want %q", c.has, got, c.want)
		}
	}
}

// Without one of the needed capabilities gleamd says which: --check before it is
// started, and the error when it is.
func TestLackOfACapabilityIsNamed(t *testing.T) {
	star := labtest.Star(t, lab.StarConfig{Hosts: 2})
	if _, err := exec.LookPath("setpriv"); err != nil {
		labtest.Unavailable(t, "%v", err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "gleamd.yaml")
	text := star.Config() + "envelope: {insecure: true}\numem: {frames: 1024}\nrings: {rx: 128, tx: 128, fill: 128, completion: 128}\n" +
		"api: {socket: " + filepath.Join(dir, "s.sock") + "}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	all := []string{"+net_admin", "+net_raw", "+bpf", "+perfmon"}
	for i, lacking := range all {
		bounds := "--bounding-set=-all," + strings.Join(slices.Delete(slices.Clone(all), i, i+1), ",") + ",+ipc_lock,+chown"
		name := "CAP_" + strings.ToUpper(lacking[1:])
		start := func(args ...string) (string, error) {
			c := exec.Command("setpriv", append([]string{bounds, "--inh-caps=-all", self}, args...)...)
			c.Env = append(os.Environ(), "GLEAMD_TEST_MAIN=1")
			p, err := star.Switch.Start(c)
			if err != nil {
				t.Fatal(err)
			}
			err = p.Wait()
			return p.Output(), err
		}
		if said, err := start("--check", "-c", file); err != nil || !strings.Contains(said, "which lacks "+name+": run it as root") {
			t.Errorf("--check without %s: %v\n%s", name, err, said)
		}
		said, err := start("-c", file)
		last := said[strings.LastIndex(strings.TrimSpace(said), "\n")+1:]
		if err == nil || !strings.HasPrefix(last, "gleamd: ") || !strings.Contains(last, name) {
			t.Errorf("without %s: %v\n%s", name, err, said)
		}
	}
}
