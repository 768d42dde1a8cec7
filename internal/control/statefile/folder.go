// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package statefile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// folder is the folder of the state file. Every file in it is opened relative to the open
// folder, and never through a symbolic link.
type folder struct {
	path string // the path of the state file
	name string // the name of the state file in dir
	dir  *os.File
	uid  int      // the user that this process becomes, or is
	lock *os.File // holds the lock; nil on a file system that is read-only
}

// Suffixes of the files beside the state file.
const (
	tempSuffix    = ".tmp"
	lockSuffix    = ".lock"
	damagedSuffix = ".damaged"
)

// openFolder opens the folder of the file path for this process alone.
func openFolder(path string, owner int) (*folder, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	f := &folder{path: abs, name: filepath.Base(abs), uid: os.Geteuid()}
	if owner != 0 && f.uid == 0 {
		f.uid = owner
	}
	if f.dir, err = makeDir(filepath.Dir(abs), f.uid); err != nil {
		return nil, err
	}
	err = f.checkFolder()
	if err == nil {
		err = f.takeLock()
	}
	if err != nil {
		f.dir.Close()
		return nil, err
	}
	return f, nil
}

// dirMode is the mode of a folder that is made for the state file alone.
const dirMode = 0o700

// makeDir opens a folder, and makes it if it is missing and its parent is there.
func makeDir(at string, owner int) (*os.File, error) {
	if err := os.Mkdir(at, dirMode); err != nil && !errors.Is(err, fs.ErrExist) {
		if _, missing := os.Lstat(at); errors.Is(missing, fs.ErrNotExist) {
			return nil, noDir(at, err, owner)
		}
	}
	return openDir(at, owner)
}

func openDir(at string, owner int) (*os.File, error) {
	dir, err := os.OpenFile(at, unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, noDir(at, err, owner)
	}
	return dir, nil
}

// noDir says by which command a folder comes to be.
func noDir(at string, err error, owner int) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("folder of the state file: %w; run: mkdir -p %s && chown %d %s && chmod %o %s", err, at, owner, at, dirMode, at)
	}
	return fmt.Errorf("folder of the state file: %w; make it, or name another one", err)
}

// checkFolder refuses a folder in which another user can replace files, and gives it to the
// user that this process becomes.
func (f *folder) checkFolder() error {
	give, err := f.inspect()
	if err == nil && give {
		err = f.give(f.dir)
	}
	return err
}

// inspect refuses a folder in which another user can replace files. It reports whether the
// folder is root's, to be given to the user that this process becomes.
func (f *folder) inspect() (give bool, err error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(f.dir.Fd()), &st); err != nil {
		return false, fmt.Errorf("folder %s: %w", f.dir.Name(), err)
	}
	if st.Uid != 0 && int(st.Uid) != f.uid {
		return false, fmt.Errorf("folder %s belongs to user %d, who could replace the state file; it must belong to user %d or to root: chown %d %s",
			f.dir.Name(), st.Uid, f.uid, f.uid, f.dir.Name())
	}
	if st.Mode&0o022 != 0 {
		return false, fmt.Errorf("folder %s has mode %04o, so other users could replace the state file: chmod go-w %s", f.dir.Name(), st.Mode&0o7777, f.dir.Name())
	}
	if int(st.Uid) == f.uid || f.uid == os.Geteuid() {
		return false, nil
	}
	if st.Mode&0o777 != 0o700 {
		return false, fmt.Errorf("folder %s has mode %04o, so it may be for other things, too: name one that is for the state file alone, with mode 0700", f.dir.Name(), st.Mode&0o7777)
	}
	return true, nil
}

// give makes file belong to the user that this process becomes.
func (f *folder) give(file *os.File) error {
	if f.uid == os.Geteuid() {
		return nil
	}
	if err := file.Chown(f.uid, -1); err != nil {
		return fmt.Errorf("give %s to user %d: %w", file.Name(), f.uid, err)
	}
	return nil
}

func (f *folder) takeLock() error {
	fd, err := unix.Openat(int(f.dir.Fd()), f.name+lockSuffix, unix.O_RDWR|unix.O_CREAT|unix.O_NOFOLLOW|unix.O_CLOEXEC|unix.O_NONBLOCK, 0o600)
	if errors.Is(err, unix.EROFS) {
		return nil // no process can write
	}
	if err != nil {
		return fmt.Errorf("lock of the state file: %w", &fs.PathError{Op: "open", Path: f.path + lockSuffix, Err: err})
	}
	lock := os.NewFile(uintptr(fd), f.path+lockSuffix)
	err = f.checkFile(lock)
	if err == nil {
		err = f.give(lock)
	}
	if err != nil {
		lock.Close()
		return err
	}
	if err := unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB); err != nil {
		lock.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return fmt.Errorf("state file %s is in use by another process; end that one, or name another file", f.path)
		}
		return fmt.Errorf("lock %s: %w", f.path+lockSuffix, err)
	}
	f.lock = lock
	return nil
}

// checkFile refuses a file that another user can read or has made.
func (f *folder) checkFile(file *os.File) error {
	var st unix.Stat_t
	if err := unix.Fstat(int(file.Fd()), &st); err != nil {
		return fmt.Errorf("%s: %w", file.Name(), err)
	}
	switch {
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		return fmt.Errorf("%s is no regular file: remove it, or name another one", file.Name())
	case int(st.Uid) != os.Geteuid() && int(st.Uid) != f.uid:
		return fmt.Errorf("%s belongs to user %d, and must belong to user %d: remove it, or chown %d %s", file.Name(), st.Uid, f.uid, f.uid, file.Name())
	case st.Mode&0o077 != 0:
		return fmt.Errorf("%s has mode %04o, so other users can read or change it: remove it if they may have, then chmod 600 %s", file.Name(), st.Mode&0o7777, file.Name())
	case st.Nlink > 1:
		return fmt.Errorf("%s has %d names (hard links): remove the others", file.Name(), st.Nlink)
	}
	return nil
}

func (f *folder) read() ([]byte, error) {
	fd, err := unix.Openat(int(f.dir.Fd()), f.name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if errors.Is(err, unix.ELOOP) {
		return nil, fmt.Errorf("state file %s is a symbolic link: name the file itself", f.path)
	}
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: f.path, Err: err}
	}
	file := os.NewFile(uintptr(fd), f.path)
	defer file.Close()
	if err := f.checkFile(file); err != nil {
		return nil, err
	}
	b, err := io.ReadAll(file)
	if err != nil {
		return nil, fmt.Errorf("state file: %w", err)
	}
	return b, nil
}

func (f *folder) create() (diskFile, error) {
	f.discard() // of a process that ended while it wrote
	fd, err := unix.Openat(int(f.dir.Fd()), f.name+tempSuffix, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, &fs.PathError{Op: "create", Path: f.path + tempSuffix, Err: err}
	}
	file := os.NewFile(uintptr(fd), f.path)
	if err := f.give(file); err != nil {
		file.Close()
		return nil, err
	}
	return openFile{file}, nil
}

func (f *folder) discard() { unix.Unlinkat(int(f.dir.Fd()), f.name+tempSuffix, 0) }

func (f *folder) rename(old, new string) error {
	dir := int(f.dir.Fd())
	if err := unix.Renameat(dir, old, dir, new); err != nil {
		return &os.LinkError{Op: "rename", Old: old, New: new, Err: err}
	}
	return f.dir.Sync()
}

func (f *folder) replace() error { return f.rename(f.name+tempSuffix, f.name) }

func (f *folder) setAside() (string, error) {
	return f.path + damagedSuffix, f.rename(f.name, f.name+damagedSuffix)
}

func (f *folder) close() error {
	var err error
	if f.lock != nil {
		err = f.lock.Close()
	}
	return errors.Join(err, f.dir.Close())
}

// openFile is a file of a folder.
type openFile struct{ file *os.File }

func (o openFile) write(b []byte) error {
	_, err := o.file.Write(b)
	return err
}

func (o openFile) sync() error {
	if err := unix.Fdatasync(int(o.file.Fd())); err != nil {
		return &fs.PathError{Op: "fdatasync", Path: o.file.Name(), Err: err}
	}
	return nil
}

func (o openFile) close() error { return o.file.Close() }
