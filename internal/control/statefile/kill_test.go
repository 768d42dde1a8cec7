// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package statefile

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"testing"
	"time"
)

// TestHelperWriter is the process that TestKill kills. It changes two groups and an epoch at
// once, again and again, and prints what is durable.
func TestHelperWriter(t *testing.T) {
	path := os.Getenv("GLEAM_STATE_FILE")
	if path == "" {
		t.Skip("only as a process of TestKill")
	}
	f, found, err := Open(path, Options{Interval: 100 * time.Microsecond})
	if err != nil || found.Damaged != nil {
		fmt.Println("failed:", err, found)
		os.Exit(1)
	}
	numbers := map[uint64]uint64{}
	printed := uint64(0)
	for i := found.State.Epochs[addr(9)] + 1; ; i++ {
		var c Change
		for g := range 2 {
			group := testGroup(g+1, 16)
			group.Registration.Epoch = i
			c.PutGroup(group)
		}
		c.SetEpoch(addr(9), i)
		numbers[f.Append(&c)] = i
		if stored := f.Stored(); numbers[stored] > printed {
			printed = numbers[stored]
			fmt.Println(printed)
		}
		if i%16 == 0 {
			time.Sleep(50 * time.Microsecond)
		}
	}
}

// A process that is killed at any moment leaves what it knew to be durable, or a later state,
// and never a mixture.
func TestKill(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	path := newPath(t)
	last := uint64(0)
	for round := range 25 {
		cmd := exec.Command(os.Args[0], "-test.run=^TestHelperWriter$")
		cmd.Env = append(os.Environ(), "GLEAM_STATE_FILE="+path)
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		kill := sync.OnceFunc(func() {
			time.AfterFunc(time.Duration(20+rand.IntN(130))*time.Millisecond, func() { cmd.Process.Kill() })
		})
		if round%2 == 0 { // else once it has a change, however slow the machine
			kill()
		}
		durable := last
		for lines := bufio.NewScanner(out); lines.Scan(); kill() {
			n, err := strconv.ParseUint(lines.Text(), 10, 64)
			if err != nil {
				break // a line that is not complete, or an error, which shows below
			}
			durable = n
		}
		cmd.Wait()
		b, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) && durable == 0 {
			continue // no process lived until it had a file
		}
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		table, _, torn, err := readFile(b)
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		s, err := table.state()
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		got := s.Epochs[addr(9)]
		for g := 1; got > 0 && g <= 2; g++ {
			if s.Groups[addr(g)] == nil || s.Groups[addr(g)].Registration.Epoch != got {
				t.Fatalf("round %d: a mixture: %d and %+v", round, got, s.Groups[addr(g)])
			}
		}
		if got < durable {
			t.Fatalf("round %d: %d was durable, and %d is there", round, durable, got)
		}
		t.Logf("round %d: %d was durable, %d is there, %d bytes torn, %d in all", round, durable, got, torn, len(b))
		last = got
	}
	if last < 12 {
		t.Errorf("only %d changes in all", last)
	}
}
