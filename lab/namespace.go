// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// ErrClosed is returned by a namespace or lab after its Close.
var ErrClosed = errors.New("lab is closed")

// Namespace is a network namespace, held by a file descriptor of this process.
// Its methods may be called from any goroutine; the lab that made it closes it.
type Namespace struct {
	lab    *Lab   // nil for OpenNamespace
	name   string // short: "sw", "h1"
	mount  string // where it is bind-mounted; "" if anonymous
	inode  uint64 // its identity in the kernel, as in net:[INODE]
	file   *os.File
	handle *netlink.Handle

	mu     sync.RWMutex // guards file against use after Close
	closed bool
}

// OpenNamespace opens a namespace by path: /run/netns/NAME, /proc/PID/ns/net,
// or the Path of another Namespace. The caller closes it.
func OpenNamespace(path string) (*Namespace, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open network namespace: %w", err)
	}
	return newNamespace(f, path)
}

// newNamespace takes over f, an open namespace, also on error.
func newNamespace(f *os.File, name string) (*Namespace, error) {
	n := &Namespace{name: name, file: f}
	var st unix.Stat_t
	err := unix.Fstat(int(f.Fd()), &st)
	if err == nil {
		n.inode = st.Ino
		err = n.Do(func() (err error) {
			n.handle, err = netlink.NewHandle(unix.NETLINK_ROUTE)
			return err
		})
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("network namespace %s: %w", name, err), f.Close())
	}
	return n, nil
}

// unshare returns a new network namespace, which lives as long as the file.
func unshare() (f *os.File, err error) {
	restored := onThread(func() error {
		if err = unix.Unshare(unix.CLONE_NEWNET); err != nil {
			err = fmt.Errorf("make a network namespace (needs CAP_SYS_ADMIN; run as root): %w", err)
			return nil
		}
		f, err = os.Open(threadNS)
		return nil
	})
	return f, errors.Join(err, restored)
}

// threadNS is the namespace of the calling thread, not of the process's first.
const threadNS = "/proc/thread-self/ns/net"

// onThread runs fn on a thread of its own and puts the thread's network
// namespace back afterwards. A thread that cannot be put back stays locked to
// its goroutine, and so dies with it instead of serving other goroutines from
// the wrong namespace. A panic in fn continues in the caller.
func onThread(fn func() error) error {
	var err error
	var panicked any
	finished := false
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		home, openErr := os.Open(threadNS)
		if openErr != nil {
			err, finished = fmt.Errorf("open this thread's network namespace: %w", openErr), true
			runtime.UnlockOSThread()
			return
		}
		defer home.Close()
		defer func() {
			if panicked = recover(); panicked != nil {
				finished = true
			}
			if unix.Setns(int(home.Fd()), unix.CLONE_NEWNET) == nil {
				runtime.UnlockOSThread()
			}
		}()
		err = fn()
		finished = true
	}()
	<-done
	if panicked != nil {
		panic(panicked)
	}
	if !finished { // runtime.Goexit, as by t.FailNow in fn
		return errors.New("function ended its goroutine (t.Fatal must be called outside of Namespace.Do)")
	}
	return err
}

// Do runs fn on an operating system thread inside the namespace and returns its
// error. Sockets and files opened in fn stay in the namespace afterwards;
// goroutines started in fn do not run in it.
func (n *Namespace) Do(fn func() error) error {
	return onThread(func() error {
		if err := n.enter(); err != nil {
			return err
		}
		return fn()
	})
}

// In runs fn in a namespace, as Do does, and returns its result.
func In[T any](n *Namespace, fn func() (T, error)) (result T, err error) {
	err = n.Do(func() (err error) { result, err = fn(); return err })
	return result, err
}

// enter moves the calling thread into the namespace.
func (n *Namespace) enter() error {
	n.mu.RLock()
	defer n.mu.RUnlock()
	if n.closed {
		return fmt.Errorf("namespace %s: %w", n.name, ErrClosed)
	}
	if err := unix.Setns(int(n.file.Fd()), unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("enter network namespace %s: %w", n.name, err)
	}
	return nil
}

// Name returns the name within the lab, such as "h1".
func (n *Namespace) Name() string { return n.name }

// Inode returns the kernel's number of the namespace, as in net:[INODE].
func (n *Namespace) Inode() uint64 { return n.inode }

// Handle returns a netlink handle (NETLINK_ROUTE) inside the namespace, good
// for any goroutine until Close.
func (n *Namespace) Handle() *netlink.Handle { return n.handle }

// Path returns a path by which other processes can open the namespace while
// this process, or for a named one its lab, lives.
func (n *Namespace) Path() string {
	if n.mount != "" {
		return n.mount
	}
	return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), n.file.Fd())
}

// Close closes the namespace's descriptor. Calling it again has no effect.
func (n *Namespace) Close() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return nil
	}
	n.closed = true
	n.handle.Close()
	return n.file.Close()
}
