// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"context"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/gleam-rdma/gleam/test/labtest"
)

// A file system is copied to the device by nbdcopy while a replica dies and returns, and back: e2fsck finds nothing,
// and the image is the same.
func TestFileSystem(t *testing.T) {
	d := start(t, Config{Replicas: 3, Files: true, Size: "64M"})
	labtest.Needs(t, "mke2fs", "e2fsck", "nbdcopy")
	dir := t.TempDir()
	image, back, uri := filepath.Join(dir, "image"), filepath.Join(dir, "back"), "nbd+unix:///?socket="+d.Socket
	run := func(command ...string) {
		t.Helper()
		if out, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", command, err, out)
		}
	}
	run("mke2fs", "-q", "-t", "ext4", "-d", "../../../examples", image, "64M")
	killed := make(chan error, 1)
	go func() {
		err := d.KillReplica(2)
		if err == nil {
			err = d.StartReplica(2)
		}
		killed <- err
	}()
	run("nbdcopy", "--flush", image, uri)
	ok(t, <-killed)
	ok(t, d.AwaitCurrent(context.Background()))
	ok(t, d.KillReplica(1)) // reads come from the others, of which one has come back
	run("nbdcopy", uri, back)
	run("e2fsck", "-fn", back)
	run("cmp", image, back)
}
