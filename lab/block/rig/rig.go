// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package rig sets up a replicated block device in a lab on this machine: a gateway and replicas, each a process in
// a network namespace of its own, around a switch with a real gleamd.
package rig

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gleam-rdma/gleam/lab"
	"github.com/gleam-rdma/gleam/lab/testbed"
)

const (
	runDir = "/run/gleam-lab/block"
	ready  = 30 * time.Second
)

// Config describes a device in a lab.
type Config struct {
	Blockd, Gleamd string // programs
	Replicas       int
	Files          bool // replicas have files, and not memory
	Size           string
	MTU            int      // path MTU
	Replica        []string // more arguments of every replica
	Gateway        []string // more arguments of the gateway
}

// Device is a running one. Host 1 of the star is the gateway's, host 1 + i that of replica i, from 1.
type Device struct {
	Bed    *testbed.Testbed
	Socket string // the socket for NBD clients

	cfg Config
	dir string

	mu       sync.Mutex
	gateway  *lab.Process
	replicas []*lab.Process
}

// Start makes the lab, the replicas and the device.
func Start(ctx context.Context, c Config) (_ *Device, err error) {
	bed, err := testbed.Build(ctx, testbed.Config{
		Dir: runDir, Gleamd: c.Gleamd, Star: lab.StarConfig{Hosts: c.Replicas + 1, MTU: testbed.PortMTU(c.MTU)},
	})
	if err != nil {
		return nil, err
	}
	d := &Device{Bed: bed, cfg: c, replicas: make([]*lab.Process, c.Replicas+1)}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.Close())
		}
	}()
	if d.dir, err = os.MkdirTemp("", "gleam-block-"); err != nil {
		return nil, err
	}
	d.Socket = filepath.Join(d.dir, "nbd.sock")
	for i := 1; i <= c.Replicas; i++ {
		if err := d.StartReplica(i); err != nil {
			return nil, err
		}
	}
	return d, d.StartGateway(ctx, "-create")
}

func (d *Device) run(host int, args ...string) (*lab.Process, error) {
	h := d.Bed.Star.Hosts[host-1]
	cmd := exec.Command(d.cfg.Blockd, append(args, "-interface", h.Interface, "-ip", h.IPv4.String(), "-size", d.cfg.Size)...)
	cmd.Env = append(os.Environ(), "GLEAM_KEY="+hex.EncodeToString(d.Bed.Key))
	return h.NS.Start(cmd)
}

// File is the file of replica i, if replicas have files.
func (d *Device) File(i int) string { return filepath.Join(d.dir, fmt.Sprintf("replica%d", i)) }

// StartReplica starts replica i, which has not been started or has ended.
func (d *Device) StartReplica(i int) error {
	args := append([]string{"replica"}, d.cfg.Replica...)
	if d.cfg.Files {
		args = append(args, "-file", d.File(i))
	}
	p, err := d.run(1+i, args...)
	if err != nil {
		return err
	}
	d.mu.Lock()
	d.replicas[i] = p
	d.mu.Unlock()
	return nil
}

// Replica returns the process of replica i.
func (d *Device) Replica(i int) *lab.Process {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.replicas[i]
}

// KillReplica kills replica i with all that it has in memory.
func (d *Device) KillReplica(i int) error {
	p := d.Replica(i)
	err := p.Signal(unix.SIGKILL)
	<-p.Done()
	return err
}

// StartGateway starts the gateway, and returns when the device is ready.
func (d *Device) StartGateway(ctx context.Context, more ...string) error {
	if err := d.LaunchGateway(more...); err != nil {
		return err
	}
	return d.AwaitGateway(ctx, "the device is ready")
}

// LaunchGateway starts the gateway.
func (d *Device) LaunchGateway(more ...string) error {
	var at []string
	for _, h := range d.Bed.Star.Hosts[1:] {
		at = append(at, h.IPv4.String()+":7300")
	}
	args := []string{"gateway", "-replicas", strings.Join(at, ","), "-group", "10.77.254.1", "-listen", d.Socket, "-mtu", fmt.Sprint(d.cfg.MTU)}
	_ = os.Remove(d.Socket) // of one that was killed
	p, err := d.run(1, append(append(args, d.cfg.Gateway...), more...)...)
	if err != nil {
		return err
	}
	d.mu.Lock()
	d.gateway = p
	d.mu.Unlock()
	return nil
}

// Gateway returns the process of the gateway.
func (d *Device) Gateway() *lab.Process {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.gateway
}

// AwaitGateway waits until the gateway has written text.
func (d *Device) AwaitGateway(ctx context.Context, text string) error {
	return Await(ctx, "the gateway to write \""+text+"\"", func() (bool, error) {
		p := d.Gateway()
		select {
		case <-p.Done():
			return false, fmt.Errorf("the gateway has ended: %w", errors.Join(p.Wait(), errors.New(p.Output())))
		default:
			return strings.Contains(p.Output(), text), nil
		}
	})
}

// Await polls until ok, for some time.
func Await(ctx context.Context, what string, ok func() (bool, error)) error {
	ctx, cancel := context.WithTimeoutCause(ctx, ready, fmt.Errorf("waited %v for %s", ready, what))
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		if done, err := ok(); done || err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Close ends all.
func (d *Device) Close() error {
	d.mu.Lock()
	all := append([]*lab.Process{d.gateway}, d.replicas...)
	d.mu.Unlock()
	for _, p := range all {
		if p != nil {
			_ = p.Signal(syscall.SIGTERM)
		}
	}
	for _, p := range all {
		if p != nil {
			_ = p.Stop(5 * time.Second) // how it ended is not asked here
		}
	}
	err := d.Bed.Close()
	if d.dir != "" {
		err = errors.Join(err, os.RemoveAll(d.dir))
	}
	return err
}

// Current reports whether replica i has all writes, by what the gateway has written of it.
func (d *Device) Current(i int) bool {
	_, text, _ := strings.Cut("\n"+d.Gateway().Output(), "\n")
	at := d.Bed.Star.Hosts[i].IPv4.String() + ":7300 is "
	last := strings.LastIndex(text, at)
	return last < 0 || strings.HasPrefix(text[last+len(at):], "current")
}

// AwaitCurrent waits until all replicas have all writes.
func (d *Device) AwaitCurrent(ctx context.Context) error {
	return Await(ctx, "all replicas to be current", func() (bool, error) {
		for i := 1; i <= d.cfg.Replicas; i++ {
			if !d.Current(i) {
				return false, nil
			}
		}
		return true, nil
	})
}

// Bytes opens the file, or the memory, in which replica i has the bytes.
func (d *Device) Bytes(i int) (*os.File, error) {
	if d.cfg.Files {
		return os.Open(d.File(i))
	}
	dir := fmt.Sprintf("/proc/%d/fd", d.Replica(i).PID())
	fds, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, fd := range fds {
		p := filepath.Join(dir, fd.Name())
		if to, _ := os.Readlink(p); strings.HasPrefix(to, "/memfd:gleam-block") {
			return os.Open(p)
		}
	}
	return nil, fmt.Errorf("replica %d has no memory", i)
}
