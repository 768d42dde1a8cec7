// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/test/labtest"
)

const receiver = 3 // the host of TestGroup that never sends

// TestGroup: one master, three members, of which one only receives; the switch has their
// numbers; one leaves, then the master.
func TestGroup(t *testing.T) {
	for _, c := range []struct {
		name, group, gid string
		v6               bool
	}{
		{"IPv4", "10.77.254.1", "gid00000000000000000000ffff0a4dfe01", false},
		{"IPv6", "fd77::6c65:1", "gidfd7700000000000000000000" + "6c650001", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, 4)
			all := []*participant{w.master(t, rightKey, c.group, 3, 20000, c.v6)}
			for i := 1; i < 3; i++ {
				all = append(all, w.member(t, i, rightKey, 20000, c.v6))
			}
			all = append(all, w.start(t, receiver, "receiver", w.ip(receiver, c.v6), "0x23", rightKey, w.exchange(c.v6), "20000"))
			for _, x := range all {
				x.expect("peer "+c.group+" 0x4711 1024 3 ", c.gid)
				x.expect("registered 0x5000000 1048576 4 members, rkey set")
				x.expect("event joined |")
			}
			w.checkRegistered(t, c.group, c.v6)

			all[2].do("leave")
			all[2].expect("gone")
			all[2].expect("event ended |", "left")
			all[0].expect("event left "+w.ip(2, c.v6)+"|", "left")
			all[2].do("wait")
			all[2].expect("waited -61 ", "the group is over, and all its events have been read")
			all[1].do("wait") // it goes on for the others
			all[1].expect("waited 0 ")

			all[0].do("leave")
			all[0].expect("gone")
			for _, i := range []int{0, 1, 3} {
				all[i].expect("event ended |", "deleted")
			}
			for _, x := range all {
				x.end()
			}
			if list, err := w.client.Groups(t.Context()); err != nil || len(list) != 0 {
				t.Errorf("the switch has %v (%v) after the master left", list, err)
			}
		})
	}
}

// checkRegistered compares the switch's members with what participant.c makes up.
func (w *world) checkRegistered(t *testing.T, group string, v6 bool) {
	t.Helper()
	g, err := w.client.Group(t.Context(), netip.MustParseAddr(group))
	if err != nil {
		t.Fatal(err)
	}
	if len(g.Members) != 4 || g.QPN != 0x4711 || g.PMTU != 1024 || g.Policy != "strict" || g.Origin != "envelope" {
		t.Errorf("registered: %+v", g)
	}
	for i := range w.Hosts {
		at := slices.IndexFunc(g.Members, func(m api.Member) bool { return m.IP.String() == w.ip(i, v6) })
		if at < 0 || g.Members[at].QPN != 0x20+api.QPN(i) || !g.Members[at].Window {
			t.Errorf("host %d is not registered as it said: %+v", i, g.Members)
		} else if only := g.Members[at].Role == "receive-only"; only != (i == receiver) {
			t.Errorf("host %d is registered as %s", i, g.Members[at].Role)
		}
	}
}

// TestMasterEndsWithoutLeaving: closing is leaving.
func TestMasterEndsWithoutLeaving(t *testing.T) {
	w := newWorld(t, 2)
	m, x := w.master(t, rightKey, "10.77.254.1", 1, 20000, false), w.member(t, 1, rightKey, 20000, false)
	for _, p := range []*participant{m, x} {
		p.expect("peer")
		p.expect("registered")
		p.expect("event joined |")
	}
	m.end()
	x.expect("event ended |", "deleted")
	x.end()
}

// TestFailures: each is told to everybody, with its cause and what to do.
func TestFailures(t *testing.T) {
	w := newWorld(t, 3)
	t.Run("wrong key", func(t *testing.T) {
		m := w.master(t, wrongKey, "10.77.254.1", 2, 20000, false)
		all := []*participant{m, w.member(t, 1, wrongKey, 20000, false), w.member(t, 2, wrongKey, 20000, false)}
		for _, x := range all {
			x.expect("peer")
			x.expect("error wait -5 ", "authentic", "key")
		}
	})
	t.Run("the caller's time is over first", func(t *testing.T) {
		m, x := w.master(t, wrongKey, "10.77.254.1", 1, 2000, false), w.member(t, 1, wrongKey, 20000, false)
		m.expect("peer")
		m.expect("error wait -110 ", "no authentic answer from the switch in ", "check key id and key on both sides", "timed out after 2s", "allow more time")
		x.expect("peer")
		x.expect("error wait -5 ", "gave up", "no authentic answer from the switch", "check key id and key on both sides")
	})
	t.Run("a member's key", func(t *testing.T) {
		m, x := w.master(t, rightKey, "10.77.254.1", 1, 4000, false), w.member(t, 1, wrongKey, 20000, false)
		m.expect("peer")
		x.expect("error join -5 ", "10.77.0.1:7100 has another key than this host under id 1: give all hosts of a group the same")
		m.expect("error wait -110 ", "0 of 1 members have connected", "10.77.0.2:", "key 1 is another one there: give all hosts of a group the same")
	})
	t.Run("a member is missing", func(t *testing.T) {
		m, x := w.master(t, rightKey, "10.77.254.1", 2, 2000, false), w.member(t, 1, rightKey, 20000, false)
		m.expect("peer")
		m.expect("error wait -110 ", "1 of 2 members have connected to 10.77.0.1:7100", "timed out after 2s",
			"start what is missing, or allow more time", "connected: 10.77.0.2")
		x.expect("error join -5 ", "gave up", "1 of 2 members have connected")
	})
	t.Run("no master", func(t *testing.T) {
		x := w.member(t, 1, rightKey, 300, false)
		x.expect("error join -110 ", "connect to the master at 10.77.0.1:7100", "timed out after 300ms", "start what is missing", "connection refused", "is the other side started?")
	})
	t.Run("the queue pair does not connect", func(t *testing.T) {
		m := w.master(t, rightKey, "10.77.254.1", 2, 20000, false)
		x, y := w.member(t, 1, rightKey, 20000, false), w.member(t, 2, rightKey, 20000, false, "modify to RTR: ETIMEDOUT")
		m.expect("peer")
		m.expect("error wait -5 ", "10.77.0.3", "gave up", "could not connect its queue pair: modify to RTR: ETIMEDOUT")
		x.expect("peer")
		x.expect("error wait -5 ", "modify to RTR: ETIMEDOUT")
		y.expect("peer")
		y.expect("error wait -5 ", "modify to RTR: ETIMEDOUT")
	})
	t.Run("a group that the switch does not serve", func(t *testing.T) {
		m, x := w.master(t, rightKey, "10.77.9.9", 1, 20000, false), w.member(t, 1, rightKey, 20000, false)
		m.expect("peer")
		m.expect("error wait -5 ", "no answer from the switch in 3s; check that it serves this GroupIP and UDP port, and that 10.77.9.9 routes to it")
		x.expect("peer")
		x.expect("error wait -5 ", "10.77.9.9")
	})
	t.Run("the master's loopback is down", func(t *testing.T) {
		if err := w.Hosts[0].NS.SetDown("lo"); err != nil {
			t.Fatal(err)
		}
		m, x := w.master(t, rightKey, "10.77.254.1", 1, 20000, false), w.member(t, 1, rightKey, 20000, false)
		m.expect("peer")
		m.expect("error wait -5 ", "the loopback interface lo is down", "type `ip link set lo up`")
		x.expect("error join -5 ", "gave up", "the loopback interface lo is down")
		if err := w.Hosts[0].NS.SetUp("lo"); err != nil {
			t.Fatal(err)
		}
		m, x = w.master(t, rightKey, "10.77.254.1", 1, 20000, false), w.member(t, 1, rightKey, 20000, false)
		m.expect("peer")
		x.expect("peer")
		m.expect("registered")
		x.expect("registered")
	})
	t.Run("address of another host", func(t *testing.T) {
		x := w.start(t, 1, "member", "10.77.0.99", "0x20", rightKey, w.exchange(false), "2000")
		x.expect("error join -5 ", "10.77.0.99", "cannot assign requested address")
	})
}

// TestArguments: a program that gets everything wrong is told so, and lives.
func TestArguments(t *testing.T) {
	w := newWorld(t, 1)
	x := w.start(t, 0, "arguments", w.ip(0, false))
	if err := x.p.Wait(); err != nil {
		t.Fatal(err)
	}
	x.expect("all as it should be")
}

// TestValgrind: the same reads no byte that was not written, and leaves none allocated.
func TestValgrind(t *testing.T) {
	w := newWorld(t, 1)
	labtest.Needs(t, "valgrind")
	suppressions, err := filepath.Abs("testdata/valgrind.supp")
	if err != nil {
		t.Fatal(err)
	}
	p, err := w.Hosts[0].NS.Start(exec.Command("valgrind", "-q", "--error-exitcode=99", "--suppressions="+suppressions, "--leak-check=full",
		"--errors-for-leak-kinds=definite,indirect,possible", w.dir+"/participant-plain", "arguments", w.ip(0, false)))
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Wait(); err != nil || !strings.Contains(p.Output(), "all as it should be") {
		t.Errorf("%v\n%s", err, p.Output())
	}
}

// TestSymbols: the library shows what gleam.h declares, and has its soname.
func TestSymbols(t *testing.T) {
	dir := programs(t)
	out, err := exec.Command("readelf", "-dW", "--dyn-syms", dir+"/libgleam.so.1").Output()
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"cm_private@@GLEAM_1.1", "connected@@GLEAM_1", "create@@GLEAM_1", "describe@@GLEAM_1.1", "destroy@@GLEAM_1", "error@@GLEAM_1", "export@@GLEAM_1.1", "fd@@GLEAM_1",
		"import@@GLEAM_1.1", "join@@GLEAM_1", "leave@@GLEAM_1", "next_event@@GLEAM_1", "peer@@GLEAM_1.1", "progress@@GLEAM_1.1", "remove@@GLEAM_1.1",
		"targets@@GLEAM_1.1", "update@@GLEAM_1.1", "version@@GLEAM_1", "wait@@GLEAM_1", "window@@GLEAM_1.1",
	}
	var got []string
	for line := range strings.Lines(string(out)) {
		f := strings.Fields(line)
		if len(f) >= 8 && f[3] == "FUNC" && f[4] == "GLOBAL" && f[6] != "UND" {
			got = append(got, strings.TrimPrefix(f[7], "gleam_"))
		}
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("the library shows %v, want %v", got, want)
	}
	if !strings.Contains(string(out), "Library soname: [libgleam.so.1]") {
		t.Errorf("no soname in:\n%s", out)
	}
}

// TestInstalled builds the examples, and a program, against what make install
// leaves, by pkg-config; imports pygleam; and formats the manual page. make uninstall removes all.
func TestInstalled(t *testing.T) {
	dir, to := programs(t), t.TempDir()
	run := func(name string, args ...string) string {
		t.Helper()
		c := exec.Command(name, args...)
		c.Env = append(os.Environ(), "PKG_CONFIG_PATH="+to+"/usr/lib/pkgconfig", "PKG_CONFIG_SYSROOT_DIR="+to)
		var errs strings.Builder
		c.Stderr = &errs
		out, err := c.Output()
		if err != nil || errs.Len() > 0 {
			t.Fatalf("%v: %v\n%s%s", c, err, out, errs.String())
		}
		return strings.TrimSpace(string(out))
	}
	run("make", "-s", "-C", "..", "BUILD="+dir, "DESTDIR="+to, "PREFIX=/usr", "PYTHON="+python, "install")
	flags := []string{"-I" + to + "/usr/include", "-L" + to + "/usr/lib", "-lgleam"}
	if labtest.Has(t, "pkg-config") {
		flags = strings.Fields(run("pkg-config", "--cflags", "--libs", "gleam"))
	}
	args := append([]string{"-Wall", "-Werror", "-o", to + "/p", "testdata/participant.c", "-lpthread", "-Wl,-rpath," + to + "/usr/lib"}, flags...)
	run("gcc", args...)
	if out, err := exec.Command(to+"/p", "member").CombinedOutput(); err == nil || !strings.Contains(string(out), "participant.c") {
		t.Errorf("the program against the installed library says %q, %v", out, err)
	}
	modules, err := filepath.Glob(to + "/usr/lib/python*/dist-packages/pygleam*.py")
	if err != nil || len(modules) != 2 {
		t.Fatalf("installed of pygleam: %v, %v", modules, err)
	}
	if labtest.Has(t, python) {
		folder := filepath.Dir(modules[0])
		if path := run(python, "-c", "import sys; print(sys.path)"); !strings.Contains(path, "'"+strings.TrimPrefix(folder, to)+"'") {
			t.Errorf("pygleam is installed in %s, which is not in %s", folder, path)
		}
		if said := run("env", "PYTHONPATH="+folder, "LD_LIBRARY_PATH="+to+"/usr/lib", python, "-B", "-c", "import pygleam; print(pygleam.__file__)"); said != modules[0] {
			t.Errorf("pygleam is from %s", said)
		}
	}
	run("gcc", "-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-x", "c", to+"/usr/include/gleam.h")
	if labtest.Has(t, "groff") {
		if page := run("groff", "-mandoc", "-ww", "-Tascii", to+"/usr/share/man/man3/gleam.3"); !strings.Contains(page, "SYNOPSIS") && !strings.Contains(page, "S\bSY") {
			t.Errorf("the manual page is:\n%.500s", page)
		}
	}
	labtest.Needs(t, "/usr/include/infiniband/verbs.h")
	run("gcc", "-std=c99", "-D_DEFAULT_SOURCE", "-pedantic", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-x", "c", to+"/usr/include/gleam_verbs.h")
	run("make", "-s", "-C", "../../../examples", "BUILD="+to, "CFLAGS=-O2 -Wall -Wextra -Werror", "GLEAM="+strings.Join(flags, " "))
	for program, args := range map[string][]string{"log-leader": {"127.0.0.1", "7200", "10.77.254.1", "3", "2"}, "log-follower": {"127.0.0.1", "127.0.0.1", "7200"}} {
		c := exec.Command(to+"/"+program, args...)
		c.Env = append(os.Environ(), "LD_LIBRARY_PATH="+to+"/usr/lib", "GLEAM_KEY=short")
		if out, err := c.CombinedOutput(); err == nil || !strings.Contains(string(out), "GLEAM_KEY: want 64 hexadecimal digits") {
			t.Errorf("%s says %q, %v", program, out, err)
		}
	}
	run("make", "-s", "-C", "..", "BUILD="+dir, "DESTDIR="+to, "PREFIX=/usr", "PYTHON="+python, "uninstall")
	if left := run("find", to+"/usr", "-type", "f", "-o", "-type", "l"); left != "" {
		t.Errorf("after make uninstall:\n%s", left)
	}
}
