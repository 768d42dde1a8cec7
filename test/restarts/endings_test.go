// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"syscall"

	"github.com/gleam-rdma/gleam/test/labtest"
)

// ending is a way in which gleamd ends.
type ending struct {
	name string
	disk bool // all that gleamd writes is on a small disk
	// fail makes the state file fail before the situation's act. nil: it does not fail.
	fail func(*scene)
	// oldFile: a turn may begin after the file fails, so that the file has positions without a source. The group ends with
	// gleamd then.
	oldFile bool
	stop    syscall.Signal
	tear    func(*scene) // changes the file between end and start
	mend    func(*scene) // what fail has done
}

var endings = []ending{
	{name: "SIGTERM", stop: syscall.SIGTERM},
	{name: "kill -9", stop: syscall.SIGKILL},
	{name: "full disk", disk: true, fail: fill, stop: syscall.SIGKILL, mend: free},
	{name: "read-only disk", fail: readOnly, oldFile: true, stop: syscall.SIGKILL, mend: writable},
	{name: "torn", stop: syscall.SIGKILL, tear: tear},
}

// fill leaves no room on the small disk.
func fill(s *scene) {
	s.t.Helper()
	s.must(labtest.FillDisk(s.dir))
	s.failing(true)
}

func free(s *scene) {
	s.t.Helper()
	s.must(labtest.FreeDisk(s.dir))
	s.failing(false)
}

// readOnly has the folder of the state file mounted for reading alone when gleamd starts. A gleamd that runs has its
// folder open as it was.
func readOnly(s *scene) {
	s.t.Helper()
	s.stop(syscall.SIGTERM)
	dir := s.folder()
	s.must(syscall.Mount(dir, dir, "", syscall.MS_BIND, ""))
	s.t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) }) // it may be gone already
	s.must(syscall.Mount("", dir, "", syscall.MS_BIND|syscall.MS_REMOUNT|syscall.MS_RDONLY, ""))
	s.start()
	s.failing(true)
}

func writable(s *scene) {
	s.t.Helper()
	s.must(syscall.Mount("", s.folder(), "", syscall.MS_BIND|syscall.MS_REMOUNT, ""))
	s.failing(false)
}

// tear leaves the beginning of one more record, and what the disk had there before, at the end of the state file, as a gleamd
// does that is killed in the middle of a write. Whole records stay: any of them may have been promised to somebody.
func tear(s *scene) {
	s.t.Helper()
	name := filepath.Join(s.folder(), "groups")
	b, err := os.ReadFile(name)
	s.must(err)
	record := b[max(0, bytes.LastIndex(b, []byte("gfrm"))):] // statefile's mark of a record
	var noise [200]byte
	_, _ = rand.Read(noise[:])
	cut := 1 + int(noise[0])%len(record)
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_APPEND, 0)
	s.must(err)
	_, err = f.Write(append(append([]byte(nil), record[:cut]...), noise[:]...))
	s.must(errors.Join(err, f.Close()))
}
