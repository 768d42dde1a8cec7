// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// DefaultSocket is where gleamd listens unless its configuration says
// otherwise.
const DefaultSocket = "/run/gleam/gleamd.sock"

// maxSocketPath is what fits sockaddr_un.sun_path (unix(7)) with its final 0.
const maxSocketPath = 107

// lockSuffix is what the name of a file has more than that of the socket, which is there while the socket is made.
const lockSuffix = ".lock"

// ErrSocketInUse is the cause of Listen's error if another process answers on
// the socket.
var ErrSocketInUse = errors.New("another gleamd answers on it")

// Listen makes the Unix socket path, with permission bits mode, and its directory
// (0755) if need be. Users who may write to the socket may connect. A dead gleamd's
// socket is replaced; one with a listening process is not: the error then wraps
// ErrSocketInUse. Closing the listener removes the socket, unless the file has been
// replaced.
func Listen(path string, mode fs.FileMode) (*Listener, error) {
	if path == "" {
		return nil, errors.New("API socket: no path given")
	}
	if len(path) > maxSocketPath {
		return nil, fmt.Errorf("API socket %s: path of %d bytes is too long for a Unix socket; choose one of at most %d", path, len(path), maxSocketPath)
	}
	l, err := listen(path, mode)
	if err != nil {
		return nil, fmt.Errorf("API socket %s: %w", path, err)
	}
	return l, nil
}

func listen(path string, mode fs.FileMode) (_ *Listener, err error) {
	l := &Listener{base: filepath.Base(path), ownDir: path == DefaultSocket}
	dir := filepath.Dir(path)
	if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
		l.ownDir = true
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("make its directory: %w", err)
	}
	if l.dir, err = os.Open(dir); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			l.dir.Close()
		}
	}()
	// Between looking for a stale socket and binding, no second gleamd may do
	// the same, or it would remove the socket we have just bound.
	unlock, err := lock(l.dir, l.base+lockSuffix)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err := removeStale(path); err != nil {
		return nil, err
	}
	if l.UnixListener, err = net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"}); err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false) // Close checks first whether the file is its own
	if err := l.secure(mode); err != nil {
		l.UnixListener.Close()
		os.Remove(path)
		return nil, err
	}
	return l, nil
}

// lock holds an exclusive flock on a file in dir until the returned function is called, which removes the file. It does
// not wait. Only this user can open the file: whoever may read a directory can hold a flock on the directory itself.
func lock(dir *os.File, name string) (unlock func(), err error) {
	at := filepath.Join(dir.Name(), name)
	fd, err := unix.Openat(int(dir.Fd()), name, unix.O_RDWR|unix.O_CREAT|unix.O_NOFOLLOW|unix.O_CLOEXEC|unix.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock: %w; remove it if it is left over", &fs.PathError{Op: "open", Path: at, Err: err})
	}
	f := os.NewFile(uintptr(fd), at)
	var st unix.Stat_t
	err = unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB)
	if err == nil {
		err = unix.Fstat(fd, &st)
	}
	switch {
	case errors.Is(err, unix.EWOULDBLOCK), err == nil && st.Nlink == 0:
		err = fmt.Errorf("another process is making a socket in %s right now; try again", dir.Name())
	case err != nil:
		err = fmt.Errorf("lock %s: %w", at, err)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return func() {
		_ = unix.Unlinkat(int(dir.Fd()), name, 0) // first: who opens it afterwards makes another one
		f.Close()
	}, nil
}

// removeStale removes a socket at path on which no process listens.
func removeStale(path string) error {
	fi, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if fi.Mode().Type() != fs.ModeSocket {
		return errors.New("exists and is not a socket; remove it, or choose another path in the configuration")
	}
	c, err := net.DialTimeout("unix", path, time.Second)
	switch {
	case err == nil:
		c.Close()
		return fmt.Errorf("%w; stop that one first, or give this one a socket of its own in its configuration", ErrSocketInUse)
	case errors.Is(err, unix.ECONNREFUSED):
		return os.Remove(path)
	case errors.Is(err, unix.EAGAIN):
		// The backlog is full: a process listens, and is busy.
		return fmt.Errorf("%w; stop that one first, or give this one a socket of its own in its configuration", ErrSocketInUse)
	}
	return fmt.Errorf("find out whether it is in use: %w", err)
}

// Listener is a Unix listener that removes its socket only while that is still
// its own.
type Listener struct {
	*net.UnixListener
	dir    *os.File // where the socket is, however its parents may be reached later
	base   string
	ownDir bool // true: the directory holds only the socket
	made   unix.Stat_t
	once   sync.Once
	err    error
}

// secure sets the socket's permission bits and remembers which one it is. The
// directory may be another user's, so no name is followed.
func (l *Listener) secure(mode fs.FileMode) error {
	return l.withSocket(func(fd int) error {
		if err := unix.Fstat(fd, &l.made); err != nil {
			return err
		}
		if err := os.Chmod(fmt.Sprintf("/proc/self/fd/%d", fd), mode.Perm()); err != nil {
			return fmt.Errorf("set mode: %w", err)
		}
		return nil
	})
}

// withSocket calls do with a descriptor of the socket's file.
func (l *Listener) withSocket(do func(fd int) error) error {
	fd, err := unix.Openat(int(l.dir.Fd()), l.base, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFSOCK {
		return errors.New("another file has replaced it")
	}
	return do(fd)
}

// Give makes the socket belong to a user and a group; -1 leaves one unchanged. The
// directory goes to them as well if it holds only the socket: Listen has made it, or it
// is that of DefaultSocket. A user who may not write there cannot remove the socket.
func (l *Listener) Give(uid, gid int) error {
	if err := l.withSocket(func(fd int) error { return unix.Fchownat(fd, "", uid, gid, unix.AT_EMPTY_PATH) }); err != nil {
		return fmt.Errorf("give the socket %s to uid %d, gid %d: %w", l.Addr(), uid, gid, err)
	}
	if l.ownDir && uid >= 0 {
		if err := l.dir.Chown(uid, -1); err != nil {
			return fmt.Errorf("give the directory of %s to uid %d: %w", l.Addr(), uid, err)
		}
	}
	return nil
}

// Removable reports whether this process may remove the socket.
func (l *Listener) Removable() bool {
	return unix.Faccessat(int(l.dir.Fd()), ".", unix.W_OK|unix.X_OK, unix.AT_EACCESS) == nil
}

// Close stops listening and removes the socket. Closing again does nothing. A
// socket that cannot be removed is left: the next Listen replaces it.
func (l *Listener) Close() error {
	l.once.Do(func() {
		dir := int(l.dir.Fd())
		var st unix.Stat_t
		if unix.Fstatat(dir, l.base, &st, unix.AT_SYMLINK_NOFOLLOW) == nil && st.Dev == l.made.Dev && st.Ino == l.made.Ino {
			_ = unix.Unlinkat(dir, l.base, 0)
		}
		l.dir.Close()
		l.err = l.UnixListener.Close()
	})
	return l.err
}
