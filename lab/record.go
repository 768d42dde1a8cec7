// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// recordDir holds the records of named labs and the output of their processes. It is on
// a tmpfs, so a reboot removes the records with the namespaces. It is root's: /run/gleam, where the daemon's socket is,
// belongs to the daemon's user, and ends with the daemon.
const recordDir = "/run/gleam-lab"

// ErrNotFound is returned by Remove for a name no lab has.
var ErrNotFound = errors.New("no such lab")

// record is a named lab's file on disk: all that is needed to remove the lab.
type record struct {
	Name       string      `json:"name"`
	Owner      processID   `json:"owner"`
	Kept       bool        `json:"kept"`
	Namespaces []string    `json:"namespaces"` // file names under netnsDir
	Processes  []processID `json:"processes"`
}

// Info describes a named lab on this machine.
type Info struct {
	Name       string
	OwnerPID   int
	OwnerAlive bool
	Kept       bool     // stays until Remove
	Namespaces []string // the names that `ip netns` has of them
	Processes  []int    // process ids
}

func recordPath(name string) string { return filepath.Join(recordDir, "lab-"+name+".json") }

// createRecord claims name. The record appears complete or not at all, and only one
// process can claim a name: os.Link fails if the target exists.
func createRecord(name string) (*record, error) {
	self, err := identify(os.Getpid())
	if err != nil {
		return nil, err
	}
	r := &record{Name: name, Owner: self}
	if err := os.MkdirAll(recordDir, 0o755); err != nil {
		return nil, fmt.Errorf("lab %s: %w", name, err)
	}
	tmp, err := r.writeTemp()
	if err != nil {
		return nil, err
	}
	defer os.Remove(tmp)
	if err := os.Link(tmp, recordPath(name)); errors.Is(err, fs.ErrExist) {
		return nil, inUse(name)
	} else if err != nil {
		return nil, fmt.Errorf("lab %s: %w", name, err)
	}
	return r, nil
}

// inUse is the error for a name in use: it names the owner.
func inUse(name string) error {
	old, err := readRecord(recordPath(name))
	switch {
	case err != nil:
		return err
	case old.Kept:
		return fmt.Errorf("lab %s exists already: it was kept; remove it first", name)
	case old.Owner.alive():
		return fmt.Errorf("lab %s is in use by process %d", name, old.Owner.PID)
	}
	return fmt.Errorf("lab %s was left behind by process %d, which is gone; clean up stale labs first", name, old.Owner.PID)
}

func (r *record) writeTemp() (path string, err error) {
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return "", fmt.Errorf("record of lab %s: %w", r.Name, err)
	}
	f, err := os.CreateTemp(recordDir, ".lab-"+r.Name+"-*")
	if err != nil {
		return "", fmt.Errorf("record of lab %s: %w", r.Name, err)
	}
	_, err = f.Write(append(data, '\n'))
	if err = errors.Join(err, f.Close()); err != nil {
		return "", errors.Join(fmt.Errorf("record of lab %s: %w", r.Name, err), os.Remove(f.Name()))
	}
	return f.Name(), nil
}

// write replaces the record on disk.
func (r *record) write() error {
	tmp, err := r.writeTemp()
	if err != nil {
		return err
	}
	if err := os.Rename(tmp, recordPath(r.Name)); err != nil {
		return errors.Join(fmt.Errorf("record of lab %s: %w", r.Name, err), os.Remove(tmp))
	}
	return nil
}

func readRecord(path string) (*record, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("lab record: %w", err)
	}
	r := new(record)
	if err := json.Unmarshal(data, r); err != nil {
		return nil, fmt.Errorf("lab record %s (remove it by hand): %w", path, err)
	}
	// A record is trusted with unmounting and killing, so it must name its own lab
	// alone: its own name, and namespaces with that name in theirs.
	ours := filepath.Base(path) == filepath.Base(recordPath(r.Name)) && validName.MatchString(r.Name)
	for _, ns := range r.Namespaces {
		ours = ours && strings.HasPrefix(ns, r.Name+"-") && filepath.Base(ns) == ns
	}
	if !ours {
		return nil, fmt.Errorf("lab record %s (remove it by hand): names do not belong to the lab", path)
	}
	return r, nil
}

// remove takes down what r names: processes, mounts, output files, itself last,
// so that a failure can be repeated.
func (r *record) remove() error {
	var errs []error
	for _, p := range r.Processes {
		errs = append(errs, p.kill(stopGrace))
	}
	for _, ns := range r.Namespaces {
		path := filepath.Join(netnsDir, ns)
		if err := unix.Unmount(path, unix.MNT_DETACH); err != nil && err != unix.EINVAL && err != unix.ENOENT {
			errs = append(errs, fmt.Errorf("unmount %s: %w", path, err))
			continue
		}
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, fmt.Errorf("remove namespace: %w", err))
		}
	}
	for _, p := range r.Processes {
		if p.Log == "" || filepath.Dir(p.Log) != recordDir {
			continue
		}
		if err := os.Remove(p.Log); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, fmt.Errorf("remove process output: %w", err))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("lab %s: %w", r.Name, err)
	}
	if err := os.Remove(recordPath(r.Name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("lab %s: %w", r.Name, err)
	}
	return nil
}

// records reads all records; unreadable ones are reported in the error.
func records() ([]*record, error) {
	paths, err := filepath.Glob(recordPath("*"))
	if err != nil {
		return nil, err
	}
	slices.Sort(paths)
	var rs []*record
	var errs []error
	for _, path := range paths {
		r, err := readRecord(path)
		switch {
		case err == nil:
			rs = append(rs, r)
		case !errors.Is(err, fs.ErrNotExist): // removed meanwhile
			errs = append(errs, err)
		}
	}
	return rs, errors.Join(errs...)
}

// List describes the named labs of this machine, also those of other processes.
func List() ([]Info, error) {
	rs, err := records()
	infos := make([]Info, 0, len(rs))
	for _, r := range rs {
		i := Info{Name: r.Name, OwnerPID: r.Owner.PID, OwnerAlive: r.Owner.alive(), Kept: r.Kept, Namespaces: r.Namespaces}
		for _, p := range r.Processes {
			i.Processes = append(i.Processes, p.PID)
		}
		infos = append(infos, i)
	}
	return infos, err
}

// CleanStale removes the named labs whose owner died without closing them and
// returns their names. Kept labs and those of live processes are left alone.
func CleanStale() (removed []string, err error) {
	rs, err := records()
	errs := []error{err}
	for _, r := range rs {
		if r.Kept || r.Owner.alive() {
			continue
		}
		if err := r.remove(); err != nil {
			errs = append(errs, err)
			continue
		}
		removed = append(removed, r.Name)
	}
	return removed, errors.Join(errs...)
}

// Remove removes a kept or stale lab, with the processes it recorded that are
// still the same processes. ErrNotFound if there is none of that name; an error
// if a live process owns it and has not kept it.
func Remove(name string) error {
	if !validName.MatchString(name) {
		return fmt.Errorf("lab %q: %w", name, ErrNotFound)
	}
	r, err := readRecord(recordPath(name))
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("lab %s: %w", name, ErrNotFound)
	}
	if err != nil {
		return err
	}
	if !r.Kept && r.Owner.alive() {
		return fmt.Errorf("lab %s is in use by process %d; stop that first", name, r.Owner.PID)
	}
	return r.remove()
}
