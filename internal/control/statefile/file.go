// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package statefile

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"sync"
	"time"
)

// Options are those of a File. Zero fields take the defaults.
type Options struct {
	// Interval is the least time between two batches. Changes that come meanwhile share
	// one. Default 10 ms.
	Interval time.Duration
	// Retry is the wait after the first failed write, doubled up to 4 times that:
	// what waits for the file is not told of meanwhile.
	// Default 1 s.
	Retry time.Duration
	// Report is called when changes can no longer be stored, and with nil when all of them
	// are stored again. It is called by Open or by the goroutine that writes, which wait for it.
	Report func(error)
	// Owner, if not 0, is the user that this process becomes later: the folder and its files
	// are given to that user.
	Owner int
	// Stored is called by the goroutine that writes when more changes are durable, or when
	// the file cannot be written.
	Stored func()
}

// Found is what Open found.
type Found struct {
	State *State
	New   bool // true: there was no file
	// Torn is the length of the last batch, if its writing was interrupted: State is that
	// before it.
	Torn int64
	// Damaged is set if the file was not as it was written. It is DamagedFile now, and State
	// is empty.
	Damaged     error
	DamagedFile string
}

// File is the state file of this process. Its methods may be called by any goroutine.
type File struct {
	path    string
	options Options
	log     log // the log of the goroutine

	mu      sync.Mutex
	changed *sync.Cond // next, pending, stored or closed has changed
	pending batch
	next    uint64 // number of the last change
	stored  uint64 // number of the last change that is durable
	failing bool   // the last write failed, and Report was told
	failure error  // the error of the last try to write that failed
	begun   uint64 // tries to write; the last one may be under way
	failed  uint64 // the number of the last try that failed; 0: none
	written uint64 // tries that succeeded
	errors  uint64 // tries that did not succeed
	urgent  int    // calls of Flush that wait
	closed  bool

	wake chan struct{}
	done chan struct{}
}

// Open reads the state file, or begins one, and keeps other processes from doing so. If the
// file can be read but not written, File works without storing anything until it can:
// Report says so. Any other error is returned, and the file is as it was.
func Open(path string, o Options) (*File, *Found, error) {
	disk, err := openFolder(path, o.Owner)
	if err != nil {
		return nil, nil, err
	}
	f, found, err := open(disk, path, o)
	if err != nil {
		disk.close()
		return nil, nil, err
	}
	return f, found, nil
}

func open(disk disk, path string, o Options) (*File, *Found, error) {
	if o.Interval == 0 {
		o.Interval = 10 * time.Millisecond
	}
	if o.Retry == 0 {
		o.Retry = time.Second
	}
	if o.Stored == nil {
		o.Stored = func() {}
	}
	if o.Report == nil {
		o.Report = func(error) {}
	}
	found, t, err := load(disk, path)
	if err != nil {
		return nil, nil, err
	}
	f := &File{path: path, options: o, log: log{disk: disk, draw: rand.Uint64, table: t, size: t.encodedLen()}, wake: make(chan struct{}, 1), done: make(chan struct{})}
	f.changed = sync.NewCond(&f.mu)
	found.State.Switch.Boots++
	var boot Change
	boot.PutSwitch(found.State.Switch)
	f.next = 1
	f.store(&boot.edits, f.next) // shows whether the file can be written
	go f.work()
	return f, found, nil
}

// load reads the state file.
func load(disk disk, path string) (*Found, table, error) {
	b, err := disk.read()
	if errors.Is(err, fs.ErrNotExist) {
		t := make(table)
		s, err := t.state()
		return &Found{State: s, New: true}, t, err
	}
	if err != nil {
		return nil, nil, err
	}
	t, _, torn, err := readFile(b)
	if errors.Is(err, ErrVersion) {
		return nil, nil, otherVersion(path, err)
	}
	var s *State
	if err == nil {
		s, err = t.state()
	}
	if err == nil {
		return &Found{State: s, Torn: torn}, t, nil
	}
	found := &Found{Damaged: fmt.Errorf("state file %s is damaged: %w", path, err)}
	if found.DamagedFile, err = disk.setAside(); err != nil {
		return nil, nil, fmt.Errorf("%w; it cannot be moved out of the way: %w", found.Damaged, err)
	}
	t = make(table)
	found.State, err = t.state()
	return found, t, err
}

func otherVersion(path string, err error) error {
	return fmt.Errorf("state file %s: %w of gleamd, which this one cannot read: install that version again, or move the file away, which ends the groups in it", path, err)
}

// Append stores c after the changes of before. It does not wait. The number that it returns
// is for Stored.
func (f *File) Append(c *Change) uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !c.edits.empty() {
		f.pending.merge(&c.edits)
		f.next++
		f.signal()
	}
	return f.next
}

// Stored returns the number of the last change that is durable, with all before it.
func (f *File) Stored() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.stored
}

// Failing reports whether the last change could not be stored.
func (f *File) Failing() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.failing
}

// Status is how writing goes.
type Status struct {
	Writes, Errors uint64 // writes that succeeded, and that did not, which are tried again
	Err            error  // the error of the last write, if that failed
	Waiting        bool   // true: there are changes that are not durable
}

// Status returns how writing goes.
func (f *File) Status() Status {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := Status{Writes: f.written, Errors: f.errors, Waiting: f.stored < f.next}
	if f.failing {
		s.Err = f.failure
	}
	return s
}

// Flush waits until all changes are durable, or a try to make them so has failed.
func (f *File) Flush() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.flush()
}

func (f *File) flush() error {
	if f.closed {
		return fs.ErrClosed
	}
	f.urgent++
	defer func() { f.urgent-- }()
	f.signal()
	// A try that is under way may have met what has passed since.
	for until, own := f.next, f.begun+1; f.stored < until; {
		if f.failed >= own {
			return f.failure
		}
		f.changed.Wait()
	}
	return nil
}

// Close stores all changes, if that is possible, and ends the use of the file.
func (f *File) Close() error {
	f.mu.Lock()
	err := f.flush()
	if f.closed {
		f.mu.Unlock()
		return err
	}
	f.closed = true
	f.signal()
	f.mu.Unlock()
	<-f.done
	f.log.abandon()
	return errors.Join(err, f.log.disk.close())
}

func (f *File) signal() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}
