// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sync"

	"golang.org/x/sys/unix"
)

// netnsDir is where `ip netns` looks for named namespaces.
const netnsDir = "/run/netns"

// validName keeps names usable as file names and in `ip netns` commands.
var validName = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9_-]{0,31}$`)

// Options of a lab. The zero value is an anonymous one.
type Options struct {
	// Name makes a named lab: letters, digits, - and _, at most 32. Its
	// namespaces appear to `ip netns` as Name-NAMESPACE and its processes run
	// detached, with their output in files, so that it can be kept.
	Name string
}

// Lab owns namespaces and the processes started in them. Methods may be called
// from any goroutine.
type Lab struct {
	name string

	mu         sync.Mutex
	closed     bool
	kept       bool
	namespaces []*Namespace
	processes  []*Process
	record     *record // nil if anonymous
}

// Supported returns nil if this process can make namespaces, else why not.
func Supported() error {
	f, err := unshare()
	if err != nil {
		return err
	}
	return f.Close()
}

// New makes an empty lab. A name in use is an error that names the owner.
func New(o Options) (*Lab, error) {
	l := &Lab{name: o.Name}
	if o.Name == "" {
		return l, nil
	}
	if !validName.MatchString(o.Name) {
		return nil, fmt.Errorf("lab name %q: want letters, digits, - and _, at most 32", o.Name)
	}
	rec, err := createRecord(o.Name)
	if err != nil {
		return nil, err
	}
	l.record = rec
	return l, nil
}

// Name returns the lab's name, "" if it is anonymous.
func (l *Lab) Name() string { return l.name }

// Namespace makes a namespace called name, with its loopback interface up. IPv6
// addresses of interfaces made in it are usable at once, without duplicate
// address detection, and no router is solicited.
func (l *Lab) Namespace(name string) (*Namespace, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, fmt.Errorf("namespace %s: %w", name, ErrClosed)
	}
	if !validName.MatchString(name) {
		return nil, fmt.Errorf("namespace name %q: want letters, digits, - and _, at most 32", name)
	}
	if slices.ContainsFunc(l.namespaces, func(n *Namespace) bool { return n.name == name }) {
		return nil, fmt.Errorf("namespace %s exists already in this lab", name)
	}
	f, err := unshare()
	if err != nil {
		return nil, fmt.Errorf("namespace %s: %w", name, err)
	}
	n, err := newNamespace(f, name)
	if err != nil {
		return nil, err
	}
	n.lab = l
	if l.record != nil {
		if err := l.mountNamespace(n); err != nil {
			return nil, errors.Join(err, n.Close())
		}
	}
	l.namespaces = append(l.namespaces, n)
	if err := n.disableIPv6Noise(); err != nil {
		return nil, err
	}
	if err := n.SetUp("lo"); err != nil {
		return nil, err
	}
	return n, nil
}

// disableIPv6Noise makes interfaces made later in the namespace usable for IPv6 at
// once, and keeps the kernel from sending solicitations of its own.
func (n *Namespace) disableIPv6Noise() error {
	for _, key := range []string{"accept_dad", "accept_ra", "router_solicitations", "autoconf"} {
		if err := n.Sysctl("net.ipv6.conf.default."+key, "0"); err != nil {
			return err
		}
	}
	return nil
}

// mountNamespace gives n a name that outlives this process. The record is written
// first: a crash in between leaves a record without its namespace, which does no harm,
// and never the reverse.
func (l *Lab) mountNamespace(n *Namespace) error {
	full := l.name + "-" + n.name
	path := filepath.Join(netnsDir, full)
	if _, err := os.Lstat(path); err == nil {
		return fmt.Errorf("namespace %s exists already (remove it with: ip netns delete %s)", path, full)
	}
	l.record.Namespaces = append(l.record.Namespaces, full)
	if err := l.record.write(); err != nil {
		return err
	}
	if err := os.MkdirAll(netnsDir, 0o755); err != nil {
		return fmt.Errorf("named namespace: %w", err)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDONLY, 0o444)
	if err != nil {
		return fmt.Errorf("named namespace: %w", err)
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("named namespace: %w", err)
	}
	src := fmt.Sprintf("/proc/self/fd/%d", n.file.Fd())
	if err := unix.Mount(src, path, "", unix.MS_BIND, ""); err != nil {
		return errors.Join(fmt.Errorf("mount namespace on %s: %w", path, err), os.Remove(path))
	}
	n.mount = path
	return nil
}

// Keep makes a named lab stay after Close and after the end of this process,
// until Remove(name).
func (l *Lab) Keep() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed:
		return ErrClosed
	case l.record == nil:
		return errors.New("keep lab: it has no name, so nothing could find it afterwards")
	}
	l.record.Kept = true
	if err := l.record.write(); err != nil {
		return err
	}
	l.kept = true
	return nil
}

// Close stops the lab's processes, closes its namespaces and, unless Keep was
// called, removes a named lab from the system. Calling it again does nothing.
func (l *Lab) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil
	}
	l.closed = true
	var errs []error
	if !l.kept {
		for _, p := range slices.Backward(l.processes) {
			errs = append(errs, p.Stop(stopGrace))
		}
	}
	for _, n := range slices.Backward(l.namespaces) {
		if err := n.Close(); err != nil {
			errs = append(errs, fmt.Errorf("close namespace %s: %w", n.name, err))
		}
	}
	if l.record != nil && !l.kept {
		errs = append(errs, l.record.remove())
	}
	return errors.Join(errs...)
}
