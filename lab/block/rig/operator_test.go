// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gleam-rdma/gleam/lab"
	"github.com/gleam-rdma/gleam/lab/block"
)

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	b, err := os.ReadFile(from)
	ok(t, err)
	ok(t, os.WriteFile(to, b, 0o600))
}

// What an operator may do wrong with a replica's file costs no write: the replica gets all blocks, or is refused.
func TestFiles(t *testing.T) {
	ctx := context.Background()
	d := start(t, Config{Replicas: 3, Files: true})
	n := dial(t, d)
	p := make([]byte, 1<<20)
	write := func(b byte) {
		t.Helper()
		for i := range p {
			p[i] = b
		}
		ok(t, n.Do(Write, 0, 0, len(p), p))
	}
	back := func(what string) {
		t.Helper()
		ok(t, d.StartReplica(2))
		ok(t, Await(ctx, what, func() (bool, error) {
			f, err := d.Bytes(2)
			if err != nil {
				return false, nil // it has not made its file yet
			}
			defer f.Close()
			got := make([]byte, len(p))
			if _, err := f.ReadAt(got, 0); err != nil {
				return false, nil
			}
			return bytes.Equal(got, p) && d.Current(2), nil
		}))
	}
	refused := func(want string) {
		t.Helper()
		ok(t, d.StartReplica(2))
		ok(t, Await(ctx, want, func() (bool, error) {
			return strings.Contains(d.Replica(2).Output()+d.Gateway().Output(), want), nil
		}))
		if r := d.Replica(2); r != nil {
			_ = r.Stop(time.Second) // it may have ended with an error
		}
		_ = os.Remove(d.File(2))
	}
	write(1)
	ok(t, n.Do(Flush, 0, 0, 0, nil))
	copyFile(t, d.File(2), d.dir+"/old")
	write(2)
	ok(t, n.Do(Flush, 0, 0, 0, nil))

	ok(t, d.KillReplica(2))
	write(3)
	copyFile(t, d.dir+"/old", d.File(2))
	back("an old file to get all blocks")

	ok(t, d.KillReplica(2))
	write(4)
	ok(t, os.Remove(d.File(2)))
	back("an empty file to get all blocks")

	ok(t, d.KillReplica(2))
	copyFile(t, d.File(1), d.File(2))
	refused("is a copy of the other's file")
	ok(t, os.WriteFile(d.File(2), make([]byte, 4096), 0o600))
	refused("name the device's size")
	s, err := block.OpenStore(d.File(2), n.Size)
	ok(t, err)
	ok(t, s.Relabel(func(l *block.Label) { l.Device, l.Members, l.Seq = "another", []string{l.Store}, 1<<50 }))
	ok(t, s.Close())
	refused("it holds device another")
	write(5)
	back("an empty file to get all blocks, after refused ones")

	// The same replica once more.
	p2, err := d.run(3, "replica", "-file", d.File(2))
	ok(t, err)
	if err := p2.Wait(); err == nil || !strings.Contains(p2.Output(), "running already") {
		t.Errorf("a replica that runs already: %v, %s", err, p2.Output())
	}
}

// A gateway that starts waits for replicas that may have newer writes than those that answer.
func TestStaleReplica(t *testing.T) {
	ctx := context.Background()
	d := start(t, Config{Replicas: 2, Files: true})
	n := dial(t, d)
	p := bytes.Repeat([]byte{1}, 65536)
	ok(t, n.Do(Write, 0, 0, len(p), p))
	ok(t, d.KillReplica(1))
	ok(t, d.AwaitGateway(ctx, "1 current replicas go on"))
	p = bytes.Repeat([]byte{2}, 65536)
	ok(t, n.Do(Write, fua, 0, len(p), p))
	ok(t, d.Gateway().Signal(unix.SIGKILL))
	<-d.Gateway().Done()
	ok(t, d.KillReplica(2))
	ok(t, d.StartReplica(1)) // alone, and it lacks the last write
	ok(t, d.LaunchGateway())
	ok(t, d.AwaitGateway(ctx, "they may have newer writes"))
	ok(t, d.StartReplica(2))
	ok(t, d.AwaitGateway(ctx, "the device is ready"))
	ok(t, d.AwaitCurrent(ctx))
	n = dial(t, d)
	got := make([]byte, len(p))
	for range 8 {
		ok(t, n.Do(Read, 0, 0, len(got), got))
		if !bytes.Equal(got, p) {
			t.Fatal("a flushed write is lost")
		}
	}
}

// halt sends SIGSTOP to a process, and waits until all its threads are stopped: each goes on until
// it has been scheduled.
func halt(t *testing.T, p *lab.Process) {
	t.Helper()
	ok(t, p.Signal(unix.SIGSTOP))
	for {
		list, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", p.PID()))
		ok(t, err)
		running := len(list) == 0
		for _, f := range list {
			text, err := os.ReadFile(f)
			ok(t, err)
			_, rest, _ := strings.Cut(string(text), ") ")
			running = running || !strings.HasPrefix(rest, "T")
		}
		if !running {
			return
		}
		select {
		case <-t.Context().Done():
			t.Fatal("the process is not stopped")
		case <-time.After(time.Millisecond):
		}
	}
}

// A flush is complete when all current replicas have noted on disk that they have flushed, and not before.
func TestFlush(t *testing.T) {
	d := start(t, Config{Replicas: 3, Files: true, Gateway: []string{"-dead-after", "400ms"}})
	n := dial(t, d)
	label := func(i int) uint64 {
		t.Helper()
		l, err := block.ReadLabel(d.File(i), n.Size)
		ok(t, err)
		return l.Seq
	}
	for _, how := range []struct {
		name           string
		command, flags uint16
		n              int
	}{{"flush", Flush, 0, 0}, {"write with FUA", Write, fua, 512}, {"trim with FUA", Trim, fua, 512}, {"write-zeroes with FUA", WriteZeroes, fua, 512}} {
		before := []uint64{label(1), label(2), label(3)}
		ok(t, n.Do(Write, 0, 4096, 512, make([]byte, 512)))
		ok(t, n.Do(how.command, how.flags, 0, how.n, make([]byte, how.n)))
		for i, b := range before {
			if label(i+1) < b+2 {
				t.Errorf("%s: replica %d has flushed up to %d, before it up to %d, and there were two entries", how.name, i+1, label(i+1), b)
			}
		}
	}
	halt(t, d.Replica(3))
	began := time.Now()
	ok(t, n.Do(Flush, 0, 0, 0, nil))
	if took := time.Since(began); took < 300*time.Millisecond {
		t.Errorf("a flush took %v, while a current replica stood still", took)
	}
	ok(t, d.Replica(3).Signal(unix.SIGCONT))
}
