// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package lockstep compares libgleam's state machines, in C, with those of package
// envelope: both get the same packets at the same times, with the same seeds, and have to
// send the same bytes, report the same events in the same words, and wait as long.
package lockstep

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gleam-rdma/gleam/test/labtest"
)

// program is testdata/machine.c with the sanitizers.
var program = labtest.Programs{More: func(dir string) error {
	sources, err := filepath.Glob("../src/*.c")
	if err != nil {
		return err
	}
	args := []string{"-std=gnu11", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-Wno-format-truncation", "-fsanitize=address,undefined", "-fno-sanitize-recover=all",
		"-I../src", "-o", dir + "/machine", "testdata/machine.c"}
	for _, s := range sources {
		if pure[filepath.Base(s)] {
			args = append(args, s)
		}
	}
	out, err := exec.Command("gcc", args...).CombinedOutput()
	if err != nil {
		err = fmt.Errorf("gcc: %w\n%s", err, out)
	}
	return err
}}

// pure are the sources of the machines. They use no system calls: TestMachinesArePure.
var pure = map[string]bool{
	"addr.c": true, "sha256.c": true, "wire.c": true, "records.c": true, "link.c": true, "private.c": true, "member.c": true, "reason.c": true,
	"registration.c": true, "master.c": true, "master_input.c": true, "master_time.c": true,
}

func TestMain(m *testing.M) { os.Exit(program.Run(m)) }

// process is a running machine.
type process struct {
	t     testing.TB
	in    io.WriteCloser
	lines *bufio.Scanner
}

func start(t testing.TB) *process {
	t.Helper()
	labtest.Needs(t, "gcc")
	c := exec.Command(program.Path(t, "machine"))
	var errs strings.Builder
	c.Stderr = &errs
	p, err := run(c)
	if err != nil {
		t.Fatal(err)
	}
	p.t = t
	t.Cleanup(func() {
		err := errors.Join(p.in.Close(), c.Wait())
		if err != nil || errs.Len() > 0 {
			t.Errorf("the machines in C ended with %v\n%s", err, errs.String())
		}
	})
	return p
}

// run starts a machine, which ends when its input does.
func run(c *exec.Cmd) (*process, error) {
	in, err := c.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := c.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p := &process{in: in, lines: bufio.NewScanner(out)}
	p.lines.Buffer(nil, 1<<20)
	return p, c.Start()
}

// ask gives a command and returns the lines of the answer.
func (p *process) ask(format string, args ...any) []string {
	p.t.Helper()
	if _, err := fmt.Fprintf(p.in, format+"\n", args...); err != nil {
		p.t.Fatal(err)
	}
	var lines []string
	for p.lines.Scan() {
		if p.lines.Text() == "." {
			return lines
		}
		lines = append(lines, p.lines.Text())
	}
	p.t.Fatalf("the machines in C have ended: %v", p.lines.Err())
	return nil
}
