// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package ownership gives files of tests the owner that a gleamd takes them from.
package ownership

import (
	"errors"
	"os"
	"syscall"
	"testing"

	"github.com/gleam-rdma/gleam/config"
	"github.com/gleam-rdma/gleam/internal/confine/privilege"
)

// ForGleamd gives a configuration, or a file of secrets, the owner and mode with which a gleamd
// of the user as takes it, nil: of one that is started as root, which reads it again as the user
// that it has become.
func ForGleamd(t *testing.T, file string, as *syscall.Credential) {
	t.Helper()
	uid, gid := 0, 0
	if as != nil {
		uid, gid = int(as.Uid), int(as.Gid)
	} else if id, err := privilege.Identify(config.UserAuto, os.Geteuid(), os.Getegid()); err != nil {
		t.Fatal(err)
	} else {
		gid = id.GID
	}
	if err := errors.Join(os.Chown(file, uid, gid), os.Chmod(file, 0o640)); err != nil {
		t.Fatal(err)
	}
}
