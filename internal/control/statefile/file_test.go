// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package statefile

import (
	"errors"
	"io/fs"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"
)

func epochChange(i int, e uint64) *Change {
	c := new(Change)
	c.SetEpoch(addr(i), e)
	return c
}

// A disk that is slow gathers the changes that come meanwhile into one batch.
func TestChangesShareBatches(t *testing.T) {
	d := &slowDisk{enter: make(chan struct{}), leave: make(chan struct{})}
	go func() { <-d.enter; d.leave <- struct{}{} }() // Open
	f, _, err := open(d, "state", Options{Interval: time.Nanosecond})
	if err != nil {
		t.Fatal(err)
	}
	first := f.Append(epochChange(1, 1))
	<-d.enter // the batch of the first change is being made durable
	for i := range 100 {
		f.Append(epochChange(2, uint64(i)+1))
	}
	last := f.Append(epochChange(3, 1))
	if f.Stored() >= first {
		t.Error("a change is stored before it is durable")
	}
	d.leave <- struct{}{}
	<-d.enter
	if got := f.Stored(); got != first {
		t.Errorf("stored %d, not %d: only the first batch is durable", got, first)
	}
	d.leave <- struct{}{}
	if err := f.Flush(); err != nil {
		t.Fatal(err)
	}
	if f.Stored() != last || last != first+101 {
		t.Errorf("stored %d, last %d, first %d", f.Stored(), last, first)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if f.log.syncs != 4 { // the file and its folder, two batches
		t.Errorf("%d syncs", f.log.syncs)
	}
	if !d.closed {
		t.Error("the folder is still open")
	}
	if s, _, err := load(d, "state"); err != nil || s.State.Epochs[addr(2)] != 100 {
		t.Errorf("%+v, %v", s.State, err)
	}
	if err := f.Flush(); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("Flush after Close: %v", err)
	}
	if err := f.Close(); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("second Close: %v", err)
	}
	if f.Stored() != last { // waits for nothing
		t.Errorf("stored %d after Close", f.Stored())
	}
}

// What is removed and was never there, as the group of each rejected registration, costs no write.
func TestRemovalsOfNothingAreNotWritten(t *testing.T) {
	f, _, err := open(&fakeDisk{}, "state", Options{Interval: time.Nanosecond})
	if err != nil {
		t.Fatal(err)
	}
	write := func(c *Change) (syncs int) {
		was := f.log.syncs
		n := f.Append(c)
		if err := f.Flush(); err != nil {
			t.Fatal(err)
		}
		if f.Stored() < n {
			t.Errorf("change %d is not stored", n)
		}
		return f.log.syncs - was
	}
	var nothing Change
	nothing.DropGroup(addr(1))
	nothing.SetEpoch(addr(2), 0)
	if n := write(&nothing); n != 0 {
		t.Errorf("%d syncs for removals of nothing", n)
	}
	write(epochChange(2, 7))
	var removal Change
	removal.SetEpoch(addr(2), 0)
	if n := write(&removal); n != 1 {
		t.Errorf("%d syncs for a removal", n)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// slowDisk waits in each sync.
type slowDisk struct {
	fakeDisk
	enter, leave chan struct{}
	closed       bool
}

type slowFile struct {
	diskFile
	disk *slowDisk
}

func (d *slowDisk) create() (diskFile, error) {
	f, err := d.fakeDisk.create()
	return slowFile{f, d}, err
}

func (d *slowDisk) close() error { d.closed = true; return nil }

func (f slowFile) sync() error {
	f.disk.enter <- struct{}{}
	<-f.disk.leave
	return f.diskFile.sync()
}

// Two batches are an interval apart, unless a Flush waits for the second one.
func TestIntervalBetweenBatches(t *testing.T) {
	d := new(fakeDisk)
	f, _, err := open(d, "state", Options{Interval: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	f.Append(epochChange(1, 1))
	for f.Stored() < 2 { // at once: nothing has been written lately
		time.Sleep(time.Millisecond)
	}
	n := f.Append(epochChange(1, 2))
	for range 20 {
		time.Sleep(time.Millisecond)
		if f.Stored() >= n {
			t.Fatal("the second batch was written within the interval")
		}
	}
	if err := f.Flush(); err != nil || f.Stored() != n {
		t.Errorf("%v, stored %d of %d", err, f.Stored(), n)
	}
	if took := time.Since(start); took > time.Minute {
		t.Errorf("took %v", took)
	}
	n = f.Append(epochChange(1, 3))
	for range 20 { // Flush has ended
		time.Sleep(time.Millisecond)
		if f.Stored() >= n {
			t.Fatal("the batch after Flush was written within the interval")
		}
	}
	mustClose(t, f)
	if !d.state.closed || d.closes != 1 {
		t.Errorf("file closed: %v; folder closed %d times", d.state.closed, d.closes)
	}
}

// Each change is written without a further one, also when the writer has slept.
func TestAppendWakesTheWriter(t *testing.T) {
	f, _, err := open(new(fakeDisk), "state", Options{Interval: time.Nanosecond})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		n := f.Append(epochChange(1, uint64(i)+1))
		for start := time.Now(); f.Stored() < n; time.Sleep(time.Millisecond) {
			if time.Since(start) > 5*time.Second {
				t.Fatalf("change %d is not written", i)
			}
		}
		time.Sleep(2 * time.Millisecond) // the writer sleeps again
	}
	mustClose(t, f)
	if f, _, err = open(new(fakeDisk), "state", Options{}); err != nil || f.options.Interval != 10*time.Millisecond || f.options.Retry != time.Second {
		t.Fatalf("defaults: %+v, %v", f.options, err)
	}
	mustClose(t, f)
}

// Flush does not return what an earlier try has met, and does not wait for the next one.
func TestFlushTriesAgain(t *testing.T) {
	d := new(fullDisk)
	f, _, err := open(d, "state", Options{Retry: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	d.set(unix.ENOSPC)
	n := f.Append(epochChange(1, 1))
	for range 2 {
		if err := f.Flush(); !errors.Is(err, unix.ENOSPC) {
			t.Errorf("Flush: %v", err)
		}
	}
	d.set(nil)
	if err := f.Flush(); err != nil || f.Stored() != n {
		t.Errorf("%v, stored %d of %d", err, f.Stored(), n)
	}
	mustClose(t, f)
}

// Flush does not return the error of a try that was under way when it was called.
func TestFlushDuringATry(t *testing.T) {
	d := &fullDisk{met: make(chan struct{}), goOn: make(chan struct{})}
	f, _, err := open(d, "state", Options{Retry: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	d.set(unix.ENOSPC)
	n := f.Append(epochChange(1, 1))
	<-d.met // the try has met the full disk, and has not ended
	d.set(nil)
	result := make(chan error, 1)
	go func() { result <- f.Flush() }()
	for urgent := 0; urgent == 0; { // until Flush waits
		time.Sleep(time.Millisecond)
		f.mu.Lock()
		urgent = f.urgent
		f.mu.Unlock()
	}
	close(d.goOn)
	if err := <-result; err != nil || f.Stored() != n {
		t.Errorf("%v, stored %d of %d", err, f.Stored(), n)
	}
	mustClose(t, f)
}

// fullDisk has errors as long as full is set.
type fullDisk struct {
	fakeDisk
	mu   sync.Mutex
	full error

	met, goOn chan struct{} // channels, or nil: an operation that has an error says so by met, and goes on after goOn
}

func (d *fullDisk) set(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.full = err
}

func (d *fullDisk) err() error {
	d.mu.Lock()
	full := d.full
	d.mu.Unlock()
	switch {
	case d.met == nil:
	case full != nil:
		d.met <- struct{}{}
		<-d.goOn
	default:
		time.Sleep(20 * time.Millisecond) // the error of the try before has time to be returned
	}
	return full
}

func (d *fullDisk) create() (diskFile, error) {
	if err := d.err(); err != nil {
		return nil, err
	}
	f, err := d.fakeDisk.create()
	return fullFile{f, d}, err
}

type fullFile struct {
	diskFile
	disk *fullDisk
}

func (f fullFile) write(b []byte) error {
	if err := f.disk.err(); err != nil {
		f.diskFile.write(b[:len(b)/2])
		return err
	}
	return f.diskFile.write(b)
}

// A full disk is reported once, with what to do; when there is room again everything is
// stored, and that is reported too.
func TestFullDisk(t *testing.T) {
	for _, c := range []struct {
		err  error
		step string
	}{
		{unix.ENOSPC, "make room"}, {unix.EDQUOT, "make room"}, {unix.EROFS, "mount that file system for writing"},
		{unix.EACCES, "give the user of this process"}, {unix.EPERM, "give the user of this process"}, {unix.EIO, "kernel's log"},
	} {
		d := new(fullDisk)
		reports := make(chan error, 100)
		f, _, err := open(d, "/var/state", Options{Interval: time.Nanosecond, Retry: time.Millisecond, Report: func(err error) {
			select {
			case reports <- err:
			default:
			}
		}})
		if err != nil {
			t.Fatal(err)
		}
		d.set(c.err)
		f.Append(epochChange(1, 1))
		got := <-reports
		for _, w := range []string{"/var/state", c.err.Error(), "go on without it", c.step} {
			if got == nil || !strings.Contains(got.Error(), w) {
				t.Fatalf("%v: without %q", got, w)
			}
		}
		if !errors.Is(got, c.err) {
			t.Errorf("%v is not %v", got, c.err)
		}
		if err := f.Flush(); !errors.Is(err, c.err) {
			t.Errorf("Flush: %v", err)
		}
		n := f.Append(epochChange(2, 2))
		if found, _, err := load(d, "state"); err != nil || len(found.State.Epochs) != 0 || found.State.Switch.Boots != 1 {
			t.Errorf("%+v, %v", found, err)
		}
		d.set(nil)
		if got := <-reports; got != nil {
			t.Errorf("reported again: %v", got)
		}
		if err := f.Flush(); err != nil || f.Stored() != n {
			t.Errorf("%v, stored %d of %d", err, f.Stored(), n)
		}
		mustClose(t, f)
		if found, _, err := load(d, "state"); err != nil || len(found.State.Epochs) != 2 {
			t.Errorf("%+v, %v", found, err)
		}
		if len(reports) > 0 {
			t.Errorf("reported again: %v", <-reports)
		}
	}
}

// A state that can be read and not written is used.
func TestReadOnlyFileSystem(t *testing.T) {
	d := new(fullDisk)
	f, _, err := open(d, "state", Options{})
	if err != nil {
		t.Fatal(err)
	}
	f.Append(epochChange(1, 1))
	mustClose(t, f)
	d.set(unix.EROFS)
	reports := 0
	f, found, err := open(d, "state", Options{Retry: time.Hour, Report: func(error) { reports++ }})
	if err != nil || found.State.Epochs[addr(1)] != 1 || reports != 1 {
		t.Fatalf("%+v, %v, %d reports", found, err, reports)
	}
	if err := f.Close(); !errors.Is(err, unix.EROFS) {
		t.Errorf("Close: %v", err)
	}
}

// A write that fails is tried again once in a Retry, however long the disk has been full: masters hear of evictions
// when the file has them.
func TestRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &countingDisk{}
		d.set(unix.ENOSPC)
		f, _, err := open(d, "state", Options{Retry: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(20*time.Second + time.Second/2)
		f.Append(epochChange(1, 1)) // brings no retry by itself
		synctest.Wait()
		d.mu.Lock()
		n := d.creates
		d.mu.Unlock()
		if n != 22 { // one of Open, and those at 0 to 20 s
			t.Errorf("%d tries in 20.5 s", n)
		}
		d.set(nil)
		time.Sleep(time.Second / 2)
		synctest.Wait()
		if f.Failing() {
			t.Error("a second after the last try the file is not written")
		}
		f.Close()
	})
}

type countingDisk struct {
	fullDisk
	creates int
}

func (d *countingDisk) create() (diskFile, error) {
	d.mu.Lock()
	d.creates++
	d.mu.Unlock()
	return d.fullDisk.create()
}

// If there is no room for two files, the one that is there goes on.
func TestNoRoomForANewFile(t *testing.T) {
	d := new(fakeDisk)
	l := newLog(d)
	mustCommit(t, l, "a", "", []byte("1"))
	file := d.state
	d.failAt, d.err = d.operations+1, unix.ENOSPC // the creation
	l.limit = 0
	mustCommit(t, l, "a", "", []byte("2"))
	d.failAt = d.operations + 2 // the write into the new file
	l.limit = 0
	mustCommit(t, l, "a", "", []byte("3"))
	if d.state != file || d.discards != 1 || l.limit <= l.end {
		t.Errorf("another file: %v, discarded %d, limit %d, end %d", d.state != file, d.discards, l.limit, l.end)
	}
	if got, _, torn, err := readFile(d.state.b); err != nil || torn != 0 || string(got.node("a")[""]) != "3" {
		t.Errorf("%q, %d, %v", got, torn, err)
	}
	if l.limit != minLog {
		t.Errorf("limit %d", l.limit)
	}
}
