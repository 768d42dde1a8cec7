// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	stopGrace = 5 * time.Second // the time between SIGTERM and SIGKILL
	outputCap = 64 << 10        // bytes of output stored for error messages
)

// Process is a program running in a namespace. Methods may be called from any
// goroutine.
type Process struct {
	cmd  *exec.Cmd
	id   processID
	name string
	tail *outputTail   // output of an attached process
	done chan struct{} // closed when the process has been waited for
	err  error         // the error of Wait; valid after done
}

// Start starts cmd in the namespace. Its output is captured, and also copied to
// cmd.Stdout and cmd.Stderr where these are set. It runs in a process group of its own,
// so that Ctrl-C on the terminal reaches only the caller, which decides the order of
// ends.
//
// In an anonymous lab the process is killed when this process ends, however it
// ends. In a named one it runs on detached, so that the lab can be kept: it is
// recorded in the lab, and its output goes to a file.
func (n *Namespace) Start(cmd *exec.Cmd) (*Process, error) {
	p := &Process{cmd: cmd, name: filepath.Base(cmd.Path), done: make(chan struct{})}
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	detached := n.lab != nil && n.lab.record != nil
	if detached {
		cmd.SysProcAttr.Setsid = true
	} else {
		cmd.SysProcAttr.Setpgid = true
		cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	}
	closeLog, err := p.capture(n, detached)
	if err != nil {
		return nil, err
	}
	if cmd.WaitDelay == 0 {
		cmd.WaitDelay = time.Second // a grandchild may hold the output pipe open
	}
	started := make(chan error, 1)
	go p.run(n, started)
	if err := <-started; err != nil {
		return nil, errors.Join(fmt.Errorf("start %s in namespace %s: %w", p.name, n.name, err), closeLog())
	}
	if err := closeLog(); err != nil { // the process has its own descriptor now
		return nil, errors.Join(err, p.Stop(0))
	}
	if n.lab != nil {
		if err := n.lab.track(p); err != nil {
			return nil, errors.Join(err, p.Stop(0))
		}
	}
	return p, nil
}

// run starts the process and waits for it, all inside Do: Pdeathsig fires when
// the *thread* that forked ends, so that thread is held until the process has
// ended.
func (p *Process) run(n *Namespace, started chan<- error) {
	told := false
	err := n.Do(func() error {
		err := p.cmd.Start()
		if err == nil {
			p.id, err = p.identify()
		}
		if err != nil {
			return err
		}
		told = true
		started <- nil
		p.err = p.cmd.Wait()
		close(p.done)
		return nil
	})
	if !told {
		started <- err
	}
}

func (p *Process) identify() (processID, error) {
	id, err := identify(p.cmd.Process.Pid)
	if err != nil { // not waited for yet, so /proc must have it
		return id, errors.Join(err, p.cmd.Process.Kill(), p.cmd.Wait())
	}
	id.Log = p.id.Log
	return id, nil
}

// capture wires the output of p: to a bounded buffer, or to a file if the
// process is to outlive us.
func (p *Process) capture(n *Namespace, detached bool) (closeLog func() error, err error) {
	if !detached {
		p.tail = &outputTail{}
		p.cmd.Stdout = copyOutput(p.cmd.Stdout, p.tail)
		p.cmd.Stderr = copyOutput(p.cmd.Stderr, p.tail)
		return func() error { return nil }, nil
	}
	f, err := os.CreateTemp(recordDir, fmt.Sprintf("lab-%s-%s-%s-*.log", n.lab.name, n.name, p.name))
	if err != nil {
		return nil, fmt.Errorf("output of %s: %w", p.name, err)
	}
	p.id.Log = f.Name()
	p.cmd.Stdout, p.cmd.Stderr = f, f
	return f.Close, nil
}

func copyOutput(w io.Writer, t *outputTail) io.Writer {
	if w == nil {
		return t
	}
	return io.MultiWriter(w, t)
}

// track makes the lab stop p on Close, and on Remove if it is named.
func (l *Lab) track(p *Process) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return fmt.Errorf("start %s: %w", p.name, ErrClosed)
	}
	l.processes = append(l.processes, p)
	if l.record == nil {
		return nil
	}
	l.record.Processes = append(l.record.Processes, p.id)
	return l.record.write()
}

// PID returns the process id.
func (p *Process) PID() int { return p.id.PID }

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Signal sends a signal to the process; an ended one is os.ErrProcessDone.
func (p *Process) Signal(s os.Signal) error { return p.cmd.Process.Signal(s) }

// Wait waits for the end of the process. A failure is reported with the last of
// its output.
func (p *Process) Wait() error {
	<-p.done
	if p.err == nil {
		return nil
	}
	out := strings.TrimSpace(p.Output())
	if out == "" {
		return fmt.Errorf("%s: %w", p.name, p.err)
	}
	return fmt.Errorf("%s: %w; its output ends with:\n%s", p.name, p.err, out)
}

// Output returns what the process has written to its standard output and error
// so far, at most the last 64 KiB.
func (p *Process) Output() string {
	if p.tail != nil {
		return p.tail.String()
	}
	data, err := os.ReadFile(p.id.Log)
	if err != nil {
		return ""
	}
	return string(data[max(0, len(data)-outputCap):])
}

// Stop ends the process: SIGTERM, after grace SIGKILL. It returns when the
// process is gone; one that has already ended is not an error.
func (p *Process) Stop(grace time.Duration) error {
	for _, step := range []struct {
		signal os.Signal
		wait   time.Duration
	}{{syscall.SIGTERM, grace}, {syscall.SIGKILL, stopGrace}} {
		if err := p.Signal(step.signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
			return fmt.Errorf("stop %s (process %d): %w", p.name, p.PID(), err)
		}
		select {
		case <-p.done:
			return nil
		case <-time.After(step.wait):
		}
	}
	return fmt.Errorf("stop %s (process %d): still there %v after SIGKILL", p.name, p.PID(), stopGrace)
}

// outputTail stores the last outputCap bytes written to it.
type outputTail struct {
	mu  sync.Mutex
	buf []byte
}

func (t *outputTail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, b...)
	if over := len(t.buf) - outputCap; over > 0 {
		t.buf = append(t.buf[:0], t.buf[over:]...)
	}
	return len(b), nil
}

func (t *outputTail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.buf)
}
