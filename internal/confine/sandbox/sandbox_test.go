// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/gleam-rdma/gleam/test/labtest"
)

// A process that has entered the sandbox starts no program, opens no packet socket,
// reads nothing of root's and becomes nobody else; and it never runs as root.
func TestSandboxHolds(t *testing.T) {
	labtest.Require(t)
	dir, err := os.MkdirTemp("", "sandbox")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	program, secret := filepath.Join(dir, "prisoner"), filepath.Join(dir, "secret")
	if err := errors.Join(labtest.Build(program, "./testdata/prisoner"), os.Chmod(dir, 0o755), os.WriteFile(secret, []byte("x"), 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		does, uid string
		as        uint32         // the user that starts it
		signal    syscall.Signal // the signal that ends it
		exit      int
		says      string
	}{
		{"nothing", "61234", 0, 0, 0, ""},
		{"nothing", "0", 0, 0, 3, "become uid 0, gid 0: root is no user to become"},
		{"nothing", "61234", 61234, 0, 3, "empty the capability bounding set: operation not permitted"},
		{"exec", "61234", 0, syscall.SIGSYS, 0, ""},
		{"fork", "61234", 0, 0, 4, "operation not permitted"},
		{"packets", "61234", 0, 0, 4, "operation not permitted"},
		{"file", "61234", 0, 0, 4, "permission denied"},
		{"root", "61234", 0, syscall.SIGSYS, 0, ""},
		{"namespace", "61234", 0, syscall.SIGSYS, 0, ""},
	} {
		c := exec.Command(program, tt.does, tt.uid, secret)
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: tt.as, Gid: tt.as, Groups: []uint32{4}}} // with a supplementary group, which the sandbox has to leave
		out, err := c.CombinedOutput()
		var status syscall.WaitStatus
		if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
			status = exit.Sys().(syscall.WaitStatus)
		} else if err != nil {
			t.Fatal(err)
		}
		ended := status.Exited() && status.ExitStatus() == tt.exit
		if tt.signal != 0 {
			ended = status.Signaled() && status.Signal() == tt.signal
		}
		if !ended || !strings.Contains(string(out), tt.says) {
			t.Errorf("%s as %s, started as %d: %v\n%s", tt.does, tt.uid, tt.as, err, out)
		}
	}
}
