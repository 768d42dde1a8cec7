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

// ErrSocketInUse is the cause of Listen's error if another process answers on
// the socket.
var ErrSocketInUse = errors.New("another gleamd answers on it")

// Listen makes the Unix socket path, with permission bits mode, and its
// directory (0755) if need be. Who may write to the socket may connect. A
// socket that a dead gleamd left is replaced; one that somebody answers on is
// not: the error then wraps ErrSocketInUse. Closing the listener removes the
// socket, unless somebody has put another one in its place.
func Listen(path string, mode fs.FileMode) (net.Listener, error) {
	if path == "" {
		return nil, errors.New("API socket: no path given")
	}
	if len(path) > maxSocketPath {
		return nil, fmt.Errorf("API socket %s: path of %d bytes is too long for a Unix socket; choose one of at most %d", path, len(path), maxSocketPath)
	}
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("API socket %s: make its directory: %w", path, err)
	}
	// Between looking for a stale socket and binding, no second gleamd may do
	// the same, or it would remove the socket we have just bound.
	unlock, err := lockDir(dir)
	if err != nil {
		return nil, fmt.Errorf("API socket %s: %w", path, err)
	}
	defer unlock()
	if err := removeStale(path); err != nil {
		return nil, fmt.Errorf("API socket %s: %w", path, err)
	}
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("API socket %s: %w", path, err)
	}
	ln.SetUnlinkOnClose(false) // socketListener.Close looks whose it is first
	l := &socketListener{UnixListener: ln, path: path}
	if err := l.secure(mode); err != nil {
		ln.Close()
		os.Remove(path)
		return nil, fmt.Errorf("API socket %s: %w", path, err)
	}
	return l, nil
}

// lockDir holds an exclusive flock on dir until the returned function is
// called. It does not wait.
func lockDir(dir string) (unlock func(), err error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("another process is making a socket in %s right now; try again", dir)
		}
		return nil, fmt.Errorf("lock %s: %w", dir, err)
	}
	return func() { f.Close() }, nil
}

// removeStale clears path of a socket nobody listens on.
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
		// The backlog is full: somebody is there, only busy.
		return fmt.Errorf("%w; stop that one first, or give this one a socket of its own in its configuration", ErrSocketInUse)
	}
	return fmt.Errorf("find out whether it is in use: %w", err)
}

// socketListener is a Unix listener that removes its socket only while that is
// still its own.
type socketListener struct {
	*net.UnixListener
	path string
	made fs.FileInfo
	once sync.Once
	err  error
}

// secure sets the socket's permission bits and remembers which one it is.
func (l *socketListener) secure(mode fs.FileMode) (err error) {
	if err := os.Chmod(l.path, mode.Perm()); err != nil {
		return fmt.Errorf("set mode: %w", err)
	}
	l.made, err = os.Lstat(l.path)
	return err
}

// Close stops listening and removes the socket. Closing again does nothing.
func (l *socketListener) Close() error {
	l.once.Do(func() {
		if fi, err := os.Lstat(l.path); err == nil && os.SameFile(fi, l.made) {
			os.Remove(l.path)
		}
		l.err = l.UnixListener.Close()
	})
	return l.err
}
