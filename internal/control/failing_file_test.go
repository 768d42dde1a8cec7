// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/internal/control/statefile"
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
	"github.com/gleam-rdma/gleam/test/labtest"
)

// While the state file cannot be written, the groups that it has go on: they are renewed, and lose
// members. Nothing is said that a kill -9 would undo, and no member is taken that a restart would not
// know. Operators hear of the beginning and of the end.
func TestFailingFile(t *testing.T) {
	labtest.Require(t)
	for _, c := range []struct {
		name     string
		readOnly bool // true: read-only since the switch was started again; false: full, with a part of a frame for which there was room
	}{{"full, the last write torn", false}, {"read-only", true}} {
		t.Run(c.name, func(t *testing.T) {
			dir, killed := t.TempDir(), t.TempDir()
			onSmallDisk(t, dir, func() { testFailingFile(t, dir, killed, c.readOnly) })
		})
	}
}

// onSmallDisk runs a test for which dir is a file system of 128 KiB.
func onSmallDisk(t *testing.T, dir string, test func()) {
	t.Helper()
	ended := make(chan struct{})
	go func() { // its thread ends with it, and the mount with the thread
		defer close(ended)
		runtime.LockOSThread()
		if err := errors.Join(unix.Unshare(unix.CLONE_NEWNS|unix.CLONE_FS), unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""),
			unix.Mount("tmpfs", dir, "tmpfs", 0, "size=128k,mode=700")); err != nil {
			t.Error(err)
			return
		}
		test()
	}()
	<-ended
}

// While the state file cannot be written, a turn that begins does not wait for the next try, a second later.
func TestTurnBeginsWhileTheFileFails(t *testing.T) {
	labtest.Require(t)
	dir := t.TempDir()
	onSmallDisk(t, dir, func() {
		f := newFakeSwitchWith(t, 3, 1, failingConfig+dir+"\n")
		const groups = 8
		for i := range groups {
			f.register(i, 3, 0x100+api.QPN(3*i), api.PolicyStrict)
		}
		if err := fill(dir); err != nil {
			t.Error(err)
			return
		}
		for n := uint64(1); !f.control.keeper.Failing(); n++ { // what is free in the last block is written
			var c statefile.Change
			c.SetEpoch(netip.MustParseAddr("10.77.254.99"), n)
			f.control.keeper.Append(&c)
			_ = f.control.keeper.Flush()
		}
		tries := func() uint64 { return f.control.keeper.Status().Errors }
		waited := 0
		for i := range groups {
			before := tries()
			f.eventually("the source is served", func() bool {
				f.feed(i, answer(1, 999, rocev2.SyndromeACK), answer(2, 1999, rocev2.SyndromeACK)) // to keepalive probes
				f.feed(i, send(0, 0))
				g, err := f.Group(fakeGroup(i))
				return err == nil && g.NextPSN == 1
			})
			if tries() != before {
				waited++
			}
		}
		if waited == groups { // a try may come meanwhile, but not each time
			t.Errorf("each of %d sources was served after a try to write the file", groups)
		}
		f.stop()
		_ = f.control.keeper.Close() // the file's last write fails
	})
}

// fill leaves no block of the file system free.
func fill(dir string) error {
	if err := os.WriteFile(filepath.Join(dir, "filler"), make([]byte, 128<<10), 0o600); !errors.Is(err, unix.ENOSPC) {
		return errors.Join(errors.New("the file system is not full"), err)
	}
	return nil
}

const failingConfig = "psn_probe: 1ms\nenvelope: {insecure: true}\nstate: "

func testFailingFile(t *testing.T, dir, killed string, readOnly bool) {
	check := func(err error) {
		if err != nil {
			t.Helper()
			t.Error(err)
			runtime.Goexit()
		}
	}
	f := newFakeSwitchWith(t, 5, 1, failingConfig+dir+"\n")
	head := envelope.Header{Epoch: 1, Transaction: 1, Total: 1, Group: fakeGroup(0), ReplyTo: netip.AddrPortFrom(fakeHost(0), 4797)}
	body := envelope.GroupBody{GroupParams: mcast.GroupParams{QPN: 0x4711, PathMTU: 1024, Policy: mcast.Strict}, TotalMembers: 3, NoRepair: true, Lease: time.Minute}
	for i := range 3 {
		m := f.record(i, api.QPN(0x100+i))
		body.Members = append(body.Members, record(&m))
	}
	known := func() { f.control.dir.hosts.FollowKernel(true); f.know(5) }
	head.Instance, head.Epoch = f.challenge(head, &envelope.Register{GroupBody: body})
	head.Epoch++
	f.give(head, &envelope.Register{GroupBody: body}, known)
	f.answered("the registration", 1, envelope.TypeAccept)
	for n := 1; n < 3; n++ {
		f.register(n, 1+n, api.QPN(0x200+16*n), api.PolicyStrict)
	}
	answer := func(what string, head envelope.Header, body envelope.Body, want envelope.Type) *envelope.Message {
		f.control.do(func() { f.left = nil })
		f.give(head, body, known)
		return f.answered(what, head.Transaction, want)
	}

	if readOnly {
		f.end()
		check(unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""))
		f = newFakeSwitchWith(t, 5, 1, failingConfig+dir+"\n")
	} else {
		check(fill(dir))
	}
	for n := uint64(1); f.control.keeper.Flush() == nil; n++ { // what is left of the file's last block
		var c statefile.Change
		c.SetEpoch(netip.MustParseAddr("10.77.254.99"), n)
		f.control.keeper.Append(&c)
	}
	f.eventually("the journal has it", func() bool { return len(f.storageEvents()) == 1 })
	if e := f.storageEvents(); !strings.Contains(e[0], "cannot be written") {
		t.Errorf("events: %q", e)
	}

	// What adds members is refused.
	update := head
	update.Epoch, update.Transaction = head.Epoch+1, 2
	more := body
	joiner := f.record(3, 0x103)
	more.Base, more.Members, more.TotalMembers = head.Epoch, append(slices.Clone(body.Members), record(&joiner)), 4
	if m := answer("an update", update, &envelope.Register{GroupBody: more}, envelope.TypeReject); m.Body.(*envelope.Reject).Problem.Reason != envelope.NotStored {
		t.Errorf("an update: %+v", m.Body)
	}
	wantReason := func(what string, err error, want string) {
		var e *api.Error
		if !errors.As(err, &e) || e.Reason != want {
			t.Helper()
			t.Errorf("%s: %v, want %s", what, err, want)
		}
	}
	wantReason("a registration", f.Register(&api.Register{Group: fakeGroup(3), QPN: 0x4711, PMTU: 1024, Policy: api.PolicyStrict, Members: []api.RegisterMember{f.record(3, 0x303), f.record(4, 0x304)}}), envelope.NotStored.String())
	wantReason("a group to connect to", f.CreateGroup(f.create(4, 2)), envelope.NotStored.String())
	// What does not is done. Whoever asked is told nothing yet, or that a restart would undo it.
	renewal := head
	renewal.Transaction = 3
	answer("a renewal", renewal, &envelope.Renew{Lease: time.Minute}, envelope.TypeAccept)
	wantReason("a deletion", f.Delete(fakeGroup(1)), api.ReasonNotStored)
	wantReason("a member's removal", f.RemoveMember(fakeGroup(2), fakeHost(2)), api.ReasonNotStored)
	leave := head
	leave.Transaction = 1000
	f.give(leave, &envelope.Leave{Member: body.Members[2].Key()}, known)
	renewal.Transaction = 4
	answer("a renewal after the Leave", renewal, &envelope.Renew{Lease: time.Minute}, envelope.TypeAccept)
	if n := len(f.members(0)); n != 2 {
		t.Errorf("%d members after a Leave", n)
	}
	if types := f.typesLeft(leave.Transaction); len(types) > 0 {
		t.Errorf("the Leave is answered by %v", types)
	}

	// A kill -9 finds what was said.
	check(copyFile(dir, killed))
	file, found, err := statefile.Open(filepath.Join(killed, "groups"), statefile.Options{Owner: os.Getuid()})
	check(err)
	check(file.Close())
	if found.Torn == 0 && !readOnly {
		t.Error("the last frame of the file is whole")
	}
	g := newFakeSwitchWith(t, 5, 1, failingConfig+killed+"\n")
	if a, b := len(g.members(0)), len(g.members(1)); a != 3 || b != 2 {
		t.Errorf("after a kill the groups have %d and %d members", a, b)
	}
	g.end()

	if readOnly {
		check(unix.Mount("", dir, "", unix.MS_REMOUNT, ""))
	} else {
		check(os.Remove(filepath.Join(dir, "filler")))
	}
	f.answered("the Leave, when the file is whole", leave.Transaction, envelope.TypeAccept)
	f.eventually("the journal has the end", func() bool { return len(f.storageEvents()) == 2 })
	check(copyFile(dir, killed))
	if n := len(keptMembers(t, killed)); n != 2 {
		t.Errorf("the file has %d members", n)
	}
	update.Transaction = 5
	more.Members, more.TotalMembers = append(slices.Clone(body.Members[:2]), record(&joiner)), 3
	f.control.do(func() { f.left = nil })
	update.Epoch++ // the other one was rejected
	answer("an update afterwards", update, &envelope.Register{GroupBody: more}, envelope.TypeAccept)
	f.end()
}

// storageEvents are the reasons of the events about the state file.
func (f *fakeSwitch) storageEvents() (reasons []string) {
	for _, e := range f.control.journal.After(ended(), 0).Events {
		if e.Kind == api.EventStorage {
			reasons = append(reasons, e.Reason)
		}
	}
	return reasons
}

// answered waits for a message of a transaction to leave.
func (f *fakeSwitch) answered(what string, transaction uint32, want envelope.Type) (answer *envelope.Message) {
	f.t.Helper()
	f.eventually(what+" is answered", func() bool {
		f.control.do(func() {
			for _, p := range f.left {
				if m, err := envelope.Open(p.Data, nil, true); err == nil && m.Transaction == transaction && m.Type != envelope.TypeNotify {
					answer = &m
				}
			}
		})
		return answer != nil
	})
	if answer == nil || answer.Type != want {
		f.t.Errorf("%s: %v", what, answer)
		runtime.Goexit()
	}
	return answer
}

// typesLeft are the types of the messages of a transaction that have left.
func (f *fakeSwitch) typesLeft(transaction uint32) (types []envelope.Type) {
	f.control.do(func() {
		for _, p := range f.left {
			if m, err := envelope.Open(p.Data, nil, true); err == nil && m.Transaction == transaction {
				types = append(types, m.Type)
			}
		}
	})
	return types
}
