// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// pseudo returns a terminal of the kernel.
func pseudo(t *testing.T) *os.File {
	t.Helper()
	ptmx, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { ptmx.Close() })
	n, err := unix.IoctlGetInt(int(ptmx.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(ptmx.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	tty, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tty.Close() })
	return tty
}

// TestDrawable: what has no escape sequences is not drawn on, and the reason is said.
func TestDrawable(t *testing.T) {
	tty := pseudo(t)
	for kind, says := range map[string]string{
		"xterm-256color": "", "linux": "", "screen": "", "dumb": "TERM=dumb", "emacs": "TERM=emacs", "unknown": "TERM=unknown", "": "TERM is not set",
	} {
		t.Setenv("TERM", kind)
		f, whyNot := Drawable(NewWriter(tty))
		if (f == tty) != (says == "") || (whyNot == "") != (says == "") || !strings.Contains(whyNot, says) {
			t.Errorf("TERM=%s: %v, %q", kind, f, whyNot)
		}
		if _, ok := Of(tty); !ok {
			t.Errorf("TERM=%s: no terminal", kind)
		}
	}
	t.Setenv("TERM", "xterm")
	if f, whyNot := Drawable(&bytes.Buffer{}); f != nil || whyNot != "standard output is no terminal" {
		t.Errorf("a buffer: %v, %q", f, whyNot)
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	if f, whyNot := Drawable(null); f != nil || whyNot != "standard output is no terminal" {
		t.Errorf("%s: %v, %q", os.DevNull, f, whyNot)
	}
}
