// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package labtest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// ThreadOnCPU0 finds the thread of a process that is pinned to CPU 0, such as a worker's with
// worker.cpu: 0.
func ThreadOnCPU0(t testing.TB, pid int) int {
	t.Helper()
	if runtime.NumCPU() == 1 {
		t.Skip("one CPU: no thread differs by its CPUs")
	}
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
	for _, f := range files {
		text, _ := os.ReadFile(f)
		if strings.Contains(string(text), "Cpus_allowed_list:\t0\n") {
			tid, err := strconv.Atoi(filepath.Base(filepath.Dir(f)))
			if err != nil {
				t.Fatal(err)
			}
			return tid
		}
	}
	t.Fatalf("no thread of %d is pinned to CPU 0", pid)
	return 0
}

// holdTries is how often HoldThread interrupts a thread until it finds it in the kernel.
const holdTries = 1000

// HoldThread stops one thread of another process, until the function that it returns is called. The
// thread waits in ppoll: a Go program whose thread is held in the middle of a goroutine's own code stands still as a
// whole at its next garbage collection, which waits for that goroutine.
func HoldThread(t testing.TB, tid int) (goOn func()) {
	t.Helper()
	held, let, done := make(chan error), make(chan struct{}), make(chan error, 1)
	go func() {
		runtime.LockOSThread() // a tracer is a thread
		defer runtime.UnlockOSThread()
		err := holdInPpoll(tid)
		if held <- err; err != nil {
			return
		}
		for {
			select {
			case <-let:
				done <- unix.PtraceDetach(tid)
				return
			case <-time.After(10 * time.Millisecond):
				// A process that is killed meanwhile does not end before its tracer has seen the thread's end.
				var status unix.WaitStatus
				if pid, _ := unix.Wait4(tid, &status, unix.WALL|unix.WNOHANG, nil); pid == tid && (status.Exited() || status.Signaled()) {
					<-let
					done <- nil
					return
				}
			}
		}
	}()
	if err := <-held; err != nil {
		t.Fatalf("thread %d does not stop: %v", tid, err)
	}
	goOn = func() {
		close(let)
		if err := <-done; err != nil && !errors.Is(err, syscall.ESRCH) {
			t.Error(err)
		}
	}
	return goOn
}

// holdInPpoll has the calling thread trace another one, which it leaves stopped in ppoll.
func holdInPpoll(tid int) error {
	for range holdTries {
		err := unix.PtraceSeize(tid)
		if err == nil {
			err = unix.PtraceInterrupt(tid)
		}
		if err == nil {
			_, err = unix.Wait4(tid, nil, unix.WALL, nil)
		}
		if err != nil {
			return err
		}
		call, err := os.ReadFile(fmt.Sprintf("/proc/%d/syscall", tid))
		if err == nil && strings.HasPrefix(string(call), fmt.Sprintf("%d ", unix.SYS_PPOLL)) {
			return nil
		}
		if err := errors.Join(err, unix.PtraceDetach(tid)); err != nil {
			return err
		}
		time.Sleep(time.Millisecond)
	}
	return fmt.Errorf("it was not in ppoll when it was looked at %d times", holdTries)
}
