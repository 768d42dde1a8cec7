// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package labtest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// ownMountsEnv tells a test process that it has a mount namespace of its own.
const ownMountsEnv = "GLEAM_OWN_MOUNTS"

// OwnMounts runs the tests of a package, from its TestMain, in a mount namespace of their own: what they mount ends with it.
func OwnMounts(run func() int) int {
	if os.Getuid() != 0 || os.Getenv(ownMountsEnv) != "" {
		return run()
	}
	c := exec.Command("/proc/self/exe", os.Args[1:]...)
	c.Env = append(os.Environ(), ownMountsEnv+"=1")
	c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
	c.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	err := c.Run()
	if failed := (*exec.ExitError)(nil); err != nil && !errors.As(err, &failed) {
		fmt.Fprintln(os.Stderr, "a mount namespace:", err)
		return 1
	}
	return c.ProcessState.ExitCode()
}

// SmallDisk mounts a disk of 8 MiB at a folder, which can be filled.
func SmallDisk(t testing.TB, dir string) {
	t.Helper()
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil { // gleamd becomes another user
		t.Fatal(err)
	}
	if err := syscall.Mount("small", dir, "tmpfs", 0, "size=8m,mode=755"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
}

// full returns the file that fills a small disk.
func full(dir string) string { return filepath.Join(dir, "full") }

// FillDisk leaves no room on a small disk.
func FillDisk(dir string) error {
	f, err := os.Create(full(dir))
	if err != nil {
		return err
	}
	defer f.Close()
	for n := 1 << 20; n > 0; { // halves of n, to the disk's last byte
		if _, err := f.Write(make([]byte, n)); errors.Is(err, syscall.ENOSPC) {
			n /= 2
		} else if err != nil {
			return err
		}
	}
	return nil
}

// FreeDisk takes that back.
func FreeDisk(dir string) error { return os.Remove(full(dir)) }
