// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package hardware

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/gleam-rdma/gleam/internal/cli"
)

// States of a step.
const (
	Passed = "passed"
	Failed = "failed"
	NotRun = "not run"
)

// Step is a thing that was tried, with what came of it.
type Step struct {
	Name    string          `json:"name"`
	Command string          `json:"command,omitempty"`
	State   string          `json:"state"`
	Seconds float64         `json:"seconds"`
	Reason  string          `json:"reason,omitempty"` // the error, or why it was not run
	Next    string          `json:"next,omitempty"`   // the command to type after a failure
	Output  string          `json:"output,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"` // what the program has printed as JSON
}

// Bounds of programs.
const (
	outputLimit = 256 << 10       // bytes of an output that are stored
	endGrace    = 5 * time.Second // the time between SIGINT and SIGKILL
)

// steps are those of a run, in order.
type steps struct {
	log io.Writer // the lines for people
	mu  sync.Mutex
	all []*Step
}

// notRun notes a step that is not tried.
func (s *steps) notRun(name, reason string) {
	s.add(&Step{Name: name, State: NotRun, Reason: reason})
}

// add notes the outcome of a step, and prints it.
func (s *steps) add(x *Step) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, x)
	line := fmt.Sprintf("%-8s %s", x.State, x.Name)
	if n := x.numbers(); n != "" {
		line += ": " + n
	} else if x.Reason != "" {
		line += ": " + x.Reason
	}
	fmt.Fprintln(s.log, line)
}

// failure is the first step that failed as an error of one line; nil: none did.
func (s *steps) failure() error {
	for _, x := range s.all {
		if x.State == Failed {
			return fmt.Errorf("%s: %s; next, type: %s", x.Name, x.Reason, x.Next)
		}
	}
	return nil
}

// run executes a program of Gleam for at most limit. Next is what to type if it fails.
func run(ctx context.Context, name string, limit time.Duration, next, program string, args ...string) *Step {
	return runSaying(ctx, name, limit, next, io.Discard, program, args...)
}

// runSaying is run with a copy of the program's messages.
func runSaying(ctx context.Context, name string, limit time.Duration, next string, say io.Writer, program string, args ...string) *Step {
	x := &Step{Name: name, Command: program + " " + strings.Join(args, " "), State: Failed}
	defer func(start time.Time) {
		if x.Seconds = time.Since(start).Seconds(); x.State == Failed {
			x.Next = next
		}
	}(time.Now())
	path, err := cli.FindProgram(program)
	if err != nil {
		x.Reason = program + " is neither beside gleam-lab nor in PATH"
		return x
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var out, errs bytes.Buffer
	c := exec.CommandContext(ctx, path, args...)
	c.Stdout, c.Stderr, c.WaitDelay = &out, io.MultiWriter(&errs, say), endGrace
	killed := func() bool { return errors.Is(context.Cause(ctx), errKilled) }
	c.Cancel = func() error {
		if killed() {
			return c.Process.Kill()
		}
		return c.Process.Signal(os.Interrupt)
	}
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL} // Ctrl-C reaches this process alone
	err = c.Run()
	if json.Valid(out.Bytes()) && out.Len() <= outputLimit {
		x.Result = out.Bytes()
	} else {
		x.Output = strings.TrimSpace(cut(out.String()))
	}
	said := strings.Join(strings.FieldsFunc(strings.ReplaceAll(cut("\n"+errs.String()), "\ngleam: ", "\n"), func(r rune) bool { return r == '\n' }), "; ")
	switch {
	case err != nil && killed():
		x.State, x.Reason = Passed, errKilled.Error()
	case err == nil:
		x.State = Passed
		x.Output = strings.TrimSpace(x.Output + "\n" + said)
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		x.Reason = strings.TrimSuffix(fmt.Sprintf("not done within %v: %s", limit, said), ": ")
	case said != "":
		x.Reason = said
	default:
		x.Reason = err.Error()
	}
	return x
}

// errKilled is the end of a program that is to be killed.
var errKilled = errors.New("killed in the middle of the transfer, as is wanted")

func cut(text string) string { return text[:min(len(text), outputLimit)] }

// versions is the name of the step of version.
const versions = "versions"

// version is the step that records the versions of the programs and what the kernel has.
func version(ctx context.Context, socket string) *Step {
	x := run(ctx, versions, time.Minute, "gleam version", "gleam", "--socket", socket, "version", "-o", "json")
	if x.State == Passed {
		x.Output = "" // hosts have no gleamd, which is nothing to report
	}
	return x
}

// report is what the kit reads of a report of gleam doctor.
type report struct {
	Findings []struct {
		Check, Severity, Text, Command, At, Remedy string
	}
	Errors, Warnings int
}

// doctor runs gleam doctor. Its first error is the reason of the step, and what repairs it is next.
func doctor(ctx context.Context, name string, args ...string) *Step {
	x := run(ctx, name, 2*time.Minute, "gleam "+strings.Join(args, " "), "gleam", append(args, "-o", "json")...)
	var r report
	if json.Unmarshal(x.Result, &r) != nil {
		return x
	}
	x.State, x.Next = Passed, ""
	for _, f := range r.Findings {
		if f.Severity == "error" {
			x.State, x.Reason, x.Next = Failed, f.Check+": "+f.Text, f.Command
			if f.Command == "" {
				x.Next = "gleam " + strings.Join(args, " ") + " (" + f.Remedy + ")"
			} else if f.At != "" {
				x.Next += " (" + f.At + ")"
			}
			break
		}
	}
	return x
}

// measured is what the kit reads of a result of gleam perf.
type measured struct {
	Bytes int
	All   struct {
		Rate    *float64 `json:"bw_avg_mib_s"`
		Typical float64  `json:"t_typical_usec"`
		P99     float64  `json:"percentile_99_usec"`
	}
	Turns   []struct{ Source string }
	Evicted []string
	Pause   float64 `json:"longest_pause_seconds"`
}

// measured is the result of gleam perf; nil: the step has none.
func (x *Step) measured() *measured {
	var perf struct{ Results []measured }
	if x.State != Passed || json.Unmarshal(x.Result, &perf) != nil || len(perf.Results) == 0 {
		return nil
	}
	return &perf.Results[0]
}

// numbers are the figures of a step in a line; empty: it has none.
func (x *Step) numbers() string {
	if r := x.measured(); r != nil {
		if r.All.Rate != nil {
			line := fmt.Sprintf("%.1f MiB/s, messages of %d bytes", *r.All.Rate, r.Bytes)
			if len(r.Turns) > 0 {
				line += fmt.Sprintf(", %d turns of sources", len(r.Turns))
			}
			if len(r.Evicted) > 0 {
				line += fmt.Sprintf(", longest pause %.0f ms", r.Pause*1000)
			}
			return line
		}
		return fmt.Sprintf("median %.1f µs, 99 %% %.1f µs, messages of %d bytes", r.All.Typical, r.All.P99, r.Bytes)
	}
	var r report
	if json.Unmarshal(x.Result, &r) == nil && r.Errors+r.Warnings > 0 && x.State == Passed {
		return fmt.Sprintf("%d warnings", r.Warnings)
	}
	return ""
}
