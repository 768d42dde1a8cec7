// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package test drives libgleam.so from C, in processes of their own at the
// hosts of a lab, against gleamd as a process at the switch. There is no RDMA:
// the queue pairs are numbers, which is all that the library knows of them.
package test

import (
	"bufio"
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/lab"
	"github.com/gleam-rdma/gleam/test/labtest"
)

const patience = 30 * time.Second

var built = labtest.Programs{Packages: []string{"../../../cmd/gleamd"}, More: func(dir string) error {
	folder := libraryFolder()
	sources, err := filepath.Glob(folder + "/src/*.c")
	if err != nil {
		return err
	}
	carrier := []string{"-std=c11", "-D_GNU_SOURCE", `-DGLEAM_RELEASE="test"`, "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-Wno-format-truncation",
		"-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-I" + folder, "-o", dir + "/carrier", "testdata/carrier.c", "-pthread"}
	for _, s := range sources {
		if filepath.Base(s) != "tls.c" {
			carrier = append(carrier, s)
		}
	}
	races := slices.Clone(carrier)
	for i, a := range races {
		switch a {
		case "-fsanitize=address,undefined":
			races[i] = "-fsanitize=thread"
		case dir + "/carrier":
			races[i] = dir + "/carrier-threads"
		}
	}
	const sanitized = "-O1 -g -Wall -Wextra -Werror -fsanitize=address,undefined -fno-sanitize-recover=all"
	participant := func(name, lib string, flags ...string) *exec.Cmd {
		return exec.Command("gcc", append(flags, "-I"+folder, "-o", dir+"/"+name, "testdata/participant.c", "-L"+lib, "-lgleam", "-lpthread", "-Wl,-rpath,"+lib)...)
	}
	for _, c := range []*exec.Cmd{
		exec.Command("gcc", carrier...),
		exec.Command("gcc", races...),
		exec.Command("make", "-s", "-C", folder, "BUILD="+dir, "CFLAGS=-O1 -g -Wall -Wextra -Werror"),
		exec.Command("make", "-s", "-C", folder, "BUILD="+dir+"/sanitized", "CFLAGS="+sanitized, "shared=-shared -Wl,-z,now"), // symbols of the sanitizers are the program's
		participant("participant", dir+"/sanitized", strings.Fields(sanitized)...),
		participant("participant-plain", dir, "-O1", "-Wall", "-Wextra", "-Werror"),
	} {
		if out, err := c.CombinedOutput(); err != nil {
			return fmt.Errorf("%v: %w\n%s", c, err, out)
		}
	}
	return nil
}}

func TestMain(m *testing.M) { os.Exit(built.Run(m)) }

// programs returns a directory with libgleam.so.1, participant and gleamd.
func programs(t *testing.T) string {
	t.Helper()
	labtest.Require(t)
	labtest.Needs(t, "gcc", "make")
	return built.Dir(t)
}

// world is a star with gleamd at its switch.
type world struct {
	*lab.Star
	dir    string
	client *api.Client
}

var (
	rightKey = hex.EncodeToString([]byte("the right key of the lab, 32 b.."))
	wrongKey = hex.EncodeToString([]byte("a wrong key for the lab, 32 by.."))
)

func newWorld(t *testing.T, hosts int) *world {
	t.Helper()
	w := &world{dir: programs(t), Star: labtest.Star(t, lab.StarConfig{Hosts: hosts})}
	dir := t.TempDir()
	text := w.Config() + fmt.Sprintf("envelope: {keys: [{id: 1, secret: \"hex:%s\"}]}\napi: {socket: %s/s.sock}\n"+
		"umem: {frames: 8192}\nrings: {rx: 512, tx: 512, fill: 512, completion: 512}\n", rightKey, dir)
	file := filepath.Join(dir, "gleamd.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := w.Switch.Start(exec.Command(w.dir+"/gleamd", "-c", file))
	if err != nil {
		t.Fatal(err)
	}
	w.client = api.Dial(dir + "/s.sock")
	t.Cleanup(w.client.Close)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := w.client.WaitReady(ctx); err != nil {
		t.Fatalf("%v\n%s", err, p.Output())
	}
	return w
}

// participant is a process of participant.c.
type participant struct {
	t     *testing.T
	name  string
	p     *lab.Process
	in    io.Writer
	lines chan string
}

// start starts a participant at host i.
func (w *world) start(t *testing.T, i int, args ...string) *participant {
	t.Helper()
	return w.startProgram(t, "participant", i, args...)
}

func (w *world) startProgram(t *testing.T, program string, i int, args ...string) *participant {
	t.Helper()
	c := exec.Command(w.dir+"/"+program, args...)
	// AddressSanitizer's dlopen does not look beside the library that calls it.
	c.Env = append(os.Environ(), "LD_LIBRARY_PATH="+w.dir+"/sanitized")
	return w.startCommand(t, c, i)
}

func (w *world) startCommand(t *testing.T, c *exec.Cmd, i int) *participant {
	t.Helper()
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	r, out := io.Pipe()
	c.Stdout = out
	x := &participant{t: t, name: w.Hosts[i].Name, in: in, lines: make(chan string, 100)}
	if x.p, err = w.Hosts[i].NS.Start(c); err != nil {
		t.Fatal(err)
	}
	go func() {
		for s := bufio.NewScanner(r); s.Scan(); {
			x.lines <- s.Text()
		}
	}()
	go func() {
		<-x.p.Done()
		out.Close()
	}()
	return x
}

const exchangePort = 7100

// master starts a master at host 0, with the timeout in ms, and member one at
// another host.
func (w *world) master(t *testing.T, key, group string, members, ms int, v6 bool) *participant {
	return w.start(t, 0, "master", w.ip(0, v6), "0x20", key, w.exchange(v6), fmt.Sprint(ms), group, fmt.Sprint(members))
}

func (w *world) member(t *testing.T, i int, key string, ms int, v6 bool, failure ...string) *participant {
	return w.start(t, i, append([]string{"member", w.ip(i, v6), fmt.Sprintf("0x%x", 0x20+i), key, w.exchange(v6), fmt.Sprint(ms)}, failure...)...)
}

func (w *world) ip(i int, v6 bool) string {
	if v6 {
		return w.Hosts[i].IPv6.String()
	}
	return w.Hosts[i].IPv4.String()
}

func (w *world) exchange(v6 bool) string {
	if v6 {
		return fmt.Sprintf("[%s]:%d", w.ip(0, true), exchangePort)
	}
	return fmt.Sprintf("%s:%d", w.ip(0, false), exchangePort)
}

// expect reads one line, which must begin with start and contain the rest.
func (x *participant) expect(start string, parts ...string) string {
	x.t.Helper()
	select {
	case line := <-x.lines:
		if !strings.HasPrefix(line, start) {
			x.t.Fatalf("%s says %q, want %q", x.name, line, start)
		}
		for _, p := range parts {
			if !strings.Contains(line, p) {
				x.t.Errorf("%s says %q, want %q in it", x.name, line, p)
			}
		}
		return line
	case <-time.After(patience):
		x.t.Fatalf("%s says nothing, want %q", x.name, start)
	}
	return ""
}

// silent fails if anything is said within a time.
func (x *participant) silent(d time.Duration) {
	x.t.Helper()
	select {
	case line := <-x.lines:
		x.t.Fatalf("%s says %q", x.name, line)
	case <-time.After(d):
	}
}

// do gives a command.
func (x *participant) do(command string) {
	x.t.Helper()
	if _, err := io.WriteString(x.in, command+"\n"); err != nil {
		x.t.Fatal(err)
	}
}

// end lets the process end, which must do so without failure.
func (x *participant) end() {
	x.t.Helper()
	if c, ok := x.in.(io.Closer); ok {
		_ = c.Close()
	}
	if err := x.p.Wait(); err != nil {
		x.t.Error(err)
	}
}
