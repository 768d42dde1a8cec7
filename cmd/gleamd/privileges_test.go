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
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"golang.org/x/sys/unix"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/config/linkrate"
	"github.com/gleam-rdma/gleam/lab"
	"github.com/gleam-rdma/gleam/test/labtest"
)

// confined checks what each thread of the process pid may do.
func confined(t *testing.T, pid, uid int, bounding uint64) {
	t.Helper()
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
	if err != nil || len(tasks) < 2 {
		t.Fatalf("threads of gleamd: %v, %v", tasks, err)
	}
	for _, task := range tasks {
		status, err := os.ReadFile(task)
		if err != nil {
			continue // a thread that has ended
		}
		caps := "0000008000003000\n"
		if !strings.Contains(string(status), caps) {
			caps = "0000008000007000\n" // with CAP_IPC_LOCK, where the limit cannot be raised
		}
		for _, want := range []string{
			fmt.Sprintf("\nUid:\t%d\t%[1]d\t%[1]d\t%[1]d\n", uid), fmt.Sprintf("\nGid:\t%d\t%[1]d\t%[1]d\t%[1]d\n", uid), "\nGroups:\t \n",
			"\nCapEff:\t" + caps, "\nCapPrm:\t" + caps, "\nCapInh:\t0000000000000000\n",
			fmt.Sprintf("\nCapBnd:\t%016x\n", bounding), "\nCapAmb:\t0000000000000000\n", "\nNoNewPrivs:\t1\n", "\nSeccomp:\t2\n",
		} {
			if !strings.Contains(string(status), want) {
				t.Errorf("%s lacks %q:\n%s", task, want, status)
			}
		}
	}
}

// A user that this machine does not have.
const nobodyKnown = 61234

// The real gleamd, built as it is shipped, runs as its own user, with no more than the
// kept capabilities and the calls of its filter, in every thread and at every moment
// of its life; and does all that it did as root.
func TestPrivilegesAreDropped(t *testing.T) {
	const unprivileged = "+net_admin,+net_raw,+bpf,+perfmon,+ipc_lock"
	for name, as := range map[string][]string{
		"started as root": nil,
		"started as its user": {"setpriv", fmt.Sprintf("--reuid=%d", nobodyKnown), fmt.Sprintf("--regid=%d", nobodyKnown), "--clear-groups",
			"--inh-caps=-all,+net_admin,+net_raw,+bpf,+perfmon,+ipc_lock,+setpcap", "--ambient-caps=-all,+net_admin,+net_raw,+bpf,+perfmon,+ipc_lock,+setpcap"},
		"started as its user, without CAP_SETPCAP": {"setpriv", fmt.Sprintf("--reuid=%d", nobodyKnown), fmt.Sprintf("--regid=%d", nobodyKnown), "--clear-groups",
			"--inh-caps=-all," + unprivileged, "--ambient-caps=-all," + unprivileged, "--bounding-set=-all," + unprivileged},
	} {
		bounding := uint64(0)
		if strings.Contains(name, "CAP_SETPCAP") { // it stays
			bounding = 1<<unix.CAP_NET_ADMIN | 1<<unix.CAP_NET_RAW | 1<<unix.CAP_BPF | 1<<unix.CAP_PERFMON | 1<<unix.CAP_IPC_LOCK
		}
		t.Run(name, func(t *testing.T) { life(t, as, bounding) })
	}
}

// TestStateWithTheUnitsCapabilities: gleamd starts as root with the capabilities of its systemd unit, where the state
// folder is root's, and again, where the folder and the files are those of the user that it had become.
func TestStateWithTheUnitsCapabilities(t *testing.T) {
	unit, err := os.ReadFile("../../config/gleamd.service.in")
	if err != nil {
		t.Fatal(err)
	}
	_, set, _ := strings.Cut(string(unit), "\nCapabilityBoundingSet=")
	set, _, ok := strings.Cut(set, "\n")
	if !ok {
		t.Fatal("the unit has no bounding set")
	}
	caps := "-all"
	for _, name := range strings.Fields(set) {
		caps += ",+" + strings.ToLower(strings.TrimPrefix(name, "CAP_"))
	}
	p := &process{star: labtest.Star(t, lab.StarConfig{Hosts: 2}), as: []string{"setpriv", "--bounding-set=" + caps, "--inh-caps=-all"}}
	dir := t.TempDir()
	state := filepath.Join(dir, "state")
	if err := os.Mkdir(state, 0o700); err != nil {
		t.Fatal(err)
	}
	p.file = filepath.Join(dir, "gleamd.yaml")
	socket := filepath.Join(dir, "run", "s.sock")
	text := p.star.Config() + fmt.Sprintf("envelope: {insecure: true}\napi: {socket: %s}\nuser: %d\nstate: %s\numem: {frames: 8192}\nrings: {rx: 512, tx: 512, fill: 512, completion: 512}\n", socket, nobodyKnown, state)
	if err := os.WriteFile(p.file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for d := dir; d != os.TempDir() && d != "/"; d = filepath.Dir(d) { // gleamd becomes another user
		_ = os.Chmod(d, 0o755)
	}
	p.client = api.Dial(socket)
	t.Cleanup(p.client.Close)
	for range 2 {
		p.restart(t)
		confined(t, p.PID(), nobodyKnown, 0)
		if err := p.Stop(testTimeout); err != nil {
			t.Fatalf("%v\n%s", err, p.Output())
		}
	}
}

func life(t *testing.T, as []string, bounding uint64) {
	star := labtest.Star(t, lab.StarConfig{Hosts: 3})
	if len(as) > 0 {
		labtest.Needs(t, as[0])
	}
	dir, err := os.MkdirTemp("", "gleamd") // t.TempDir's parents are root's alone
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	socket, file := filepath.Join(dir, "run", "s.sock"), filepath.Join(dir, "gleamd.yaml")
	text := star.Config() + fmt.Sprintf("envelope: {insecure: true}\napi: {socket: %s, group: daemon}\nuser: %d\numem: {frames: 4096}\n", socket, nobodyKnown) +
		"rings: {rx: 512, tx: 512, fill: 512, completion: 512}\nworker: {cpu: [0, 1]}\n" +
		"switch: {id: '00000000000000a1', keys: [{id: 1, secret: hex:1f0e9d8c7b6a5948372615f4e3d2c1b00918273645546372819aabbccddeef01}]}\n"
	if err := errors.Join(os.WriteFile(file, []byte(text), 0o600), os.Chmod(file, 0o640), os.Chown(file, 0, nobodyKnown), os.Chmod(dir, 0o755), os.Chown(dir, nobodyKnown, nobodyKnown)); err != nil {
		t.Fatal(err)
	}
	args := append(slices.Clone(as), programs.Path(t, "gleamd"), "-c", file)
	start := func() (*lab.Process, *api.Client) {
		t.Helper()
		p, err := star.Switch.Start(exec.Command(args[0], args[1:]...))
		if err != nil {
			t.Fatal(err)
		}
		client := api.Dial(socket)
		t.Cleanup(client.Close)
		ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
		defer cancel()
		if err := client.WaitReady(ctx); err != nil {
			t.Fatal(err, p.Output())
		}
		confined(t, p.PID(), nobodyKnown, bounding)
		return p, client
	}
	killed, _ := start()
	if err := killed.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	killed.Wait()
	p, client := start() // over what the killed one left
	if i, err := os.Stat(socket); err != nil || i.Mode().Perm() != 0o660 {
		t.Errorf("socket %v, %v", i, err)
	}
	if ports, err := client.Ports(t.Context()); err != nil || len(ports) != 3 {
		t.Errorf("ports %v, %v", ports, err)
	}
	for end := time.Now().Add(testTimeout); ; time.Sleep(5 * time.Millisecond) { // hellos need no right that it has given up
		top, err := client.Topology(t.Context())
		if err == nil && top.Switch == "00000000000000a1" && len(top.Links) == 3 && top.Links[2].Sent > 5 && top.Links[2].NotSent == 0 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("hellos: %+v, %v", top, err)
		}
	}
	group := lab.StarGroupsIPv4.Addr().Next()
	member := func(i int) api.RegisterMember {
		return api.RegisterMember{IP: star.Hosts[i].IPv4, QPN: api.QPN(0x11 + i)}
	}
	limit := linkrate.Rate(50_000_000)
	for what, err := range map[string]error{
		"register": client.Register(t.Context(), &api.Register{Group: group, QPN: 0x4711, PMTU: 1024, Policy: "strict", Members: []api.RegisterMember{member(0), member(1)}}),
		"set port": client.SetPort(t.Context(), star.Ports[0], &api.SetPort{Rate: &limit}),
	} {
		if err != nil {
			t.Errorf("%s: %v\n%s", what, err, p.Output())
		}
	}
	// A port flaps, and a member behind it can still be found.
	l, err := star.Switch.Handle().LinkByName(star.Ports[2])
	if err != nil {
		t.Fatal(err)
	}
	for _, change := range []func(netlink.Link) error{star.Switch.Handle().LinkSetDown, star.Switch.Handle().LinkSetUp} {
		if err := change(l); err != nil {
			t.Fatal(err)
		}
		want := l.Attrs().Name
		for end := time.Now().Add(testTimeout); ; time.Sleep(5 * time.Millisecond) {
			ports, err := client.Ports(t.Context())
			i := slices.IndexFunc(ports, func(p api.Port) bool { return p.Name == want })
			now, lerr := star.Switch.Handle().LinkByName(want)
			if err == nil && lerr == nil && ports[i].Up == (now.Attrs().OperState == netlink.OperUp) {
				break
			}
			if time.Now().After(end) {
				t.Fatalf("port %+v, link %+v: %v, %v", ports, now, err, lerr)
			}
		}
	}
	last := member(2)
	for _, err := range []error{
		client.AddMember(t.Context(), group, &api.AddMember{RegisterMember: last}),
		client.RemoveMember(t.Context(), group, last.IP),
		client.Delete(t.Context(), group),
	} {
		if err != nil {
			t.Errorf("%v\n%s", err, p.Output())
		}
	}
	if s, err := client.Stats(t.Context()); err != nil || s == nil {
		t.Errorf("stats %v, %v", s, err)
	}
	if err := p.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	confined(t, p.PID(), nobodyKnown, bounding)
	if err := p.Stop(testTimeout); err != nil {
		t.Error(err)
	}
	if err := p.Wait(); err != nil {
		t.Error(err, p.Output())
	}
	if _, err := os.Lstat(socket); !os.IsNotExist(err) {
		t.Errorf("the socket is left behind: %v", err)
	}
	for _, forbidden := range []string{"not permitted", "not implemented", "permission denied", "SIGSYS", "bad system call"} {
		if strings.Contains(p.Output(), forbidden) {
			t.Errorf("something is forbidden to it:\n%s", p.Output())
		}
	}
}

// Without one of the needed capabilities gleamd says which: --check before it is
// started, and the error when it is.
func TestLackOfACapabilityIsNamed(t *testing.T) {
	star := labtest.Star(t, lab.StarConfig{Hosts: 2})
	labtest.Needs(t, "setpriv")
	dir := t.TempDir()
	file := filepath.Join(dir, "gleamd.yaml")
	text := star.Config() + "envelope: {insecure: true}\numem: {frames: 1024}\nrings: {rx: 128, tx: 128, fill: 128, completion: 128}\n" +
		"api: {socket: " + filepath.Join(dir, "s.sock") + "}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	all := []string{"+net_admin", "+net_raw", "+bpf", "+perfmon", "+setpcap", "+setuid", "+setgid"}
	for i, lacking := range all {
		bounds := "--bounding-set=-all," + strings.Join(slices.Delete(slices.Clone(all), i, i+1), ",") + ",+ipc_lock,+chown"
		name := "CAP_" + strings.ToUpper(lacking[1:])
		start := func(args ...string) (string, error) {
			c := exec.Command("setpriv", append([]string{bounds, "--inh-caps=-all", programs.Path(t, "gleamd")}, args...)...)
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
	// A user without CAP_SETPCAP, whose bounding set has more than this process.
	some := "-all,+net_admin,+net_raw,+bpf,+perfmon,+ipc_lock"
	user := []string{"--reuid=" + strconv.Itoa(nobodyKnown), "--clear-groups", "--inh-caps=" + some, "--ambient-caps=" + some, programs.Path(t, "gleamd"), "--check", "-c"}
	if err := errors.Join(os.Chmod(file, 0o644), os.Chmod(dir, 0o755), os.Chmod(filepath.Dir(dir), 0o755)); err != nil {
		t.Fatal(err)
	}
	p, err := star.Switch.Start(exec.Command("setpriv", append(user, file)...))
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Wait(); err != nil || !strings.Contains(p.Output(), "which lacks CAP_SETPCAP: run it as root") {
		t.Errorf("--check of a user with a wide bounding set: %v\n%s", err, p.Output())
	}
}
