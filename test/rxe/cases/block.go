// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gleam-rdma/gleam/lab/block/rig"
)

// The replicated block device of lab/block over verbs, with a file system of the kernel's
// on the kernel's NBD client.

const (
	blockSize  = 64 << 20
	blockNode  = "/dev/nbd0"
	blockFiles = 60 // files of the file system, 200 KiB on average
)

// disk is a device with three replicas, whose bytes are in files.
type disk struct {
	b        *bench
	dir      string
	hosts    []*host // the gateway's, and those of the replicas
	gateway  *joiner
	replicas []*joiner // replicas by host
}

func (d *disk) socket() string    { return filepath.Join(d.dir, "nbd.sock") }
func (d *disk) file(i int) string { return filepath.Join(d.dir, fmt.Sprintf("replica%d", i)) }
func (d *disk) mount() string     { return filepath.Join(d.dir, "mnt") }
func (d *disk) blockd(ctx context.Context, i int, args ...string) (*joiner, error) {
	h := d.hosts[i]
	args = append(append([]string{fmt.Sprintf("GLEAM_KEY=%x", auth.Keys[1]), "blockd"}, args...),
		"-backend", "verbs", "-device", h.rdma, "-interface", h.link, "-ip", h.addr4.String(), "-size", fmt.Sprint(blockSize), "-ring", "16M", "-timeout", "16")
	return start(ctx, h, "env", args...)
}

func (d *disk) startReplica(ctx context.Context, i int) (err error) {
	d.replicas[i], err = d.blockd(ctx, i, "replica", "-file", d.file(i))
	return err
}

// kill kills replica i, with all that it has not flushed.
func (d *disk) kill(i int) error {
	err := d.replicas[i].Process.Kill()
	_ = d.replicas[i].ended() // by the signal
	return err
}

// said waits until the gateway has written text n times.
func (d *disk) said(ctx context.Context, text string, n int) error {
	err := until(ctx, text, func() (bool, error) {
		select {
		case err := <-d.gateway.done:
			d.gateway.done <- err
			return false, fmt.Errorf("the gateway has ended: %v", err)
		default:
			return strings.Count(d.gateway.out.String(), text) >= n, nil
		}
	})
	if err != nil {
		err = fmt.Errorf("%w\ngateway: %s", err, d.gateway.out.String())
	}
	return err
}

func (d *disk) close() {
	for _, j := range append([]*joiner{d.gateway}, d.replicas...) {
		if j != nil {
			_ = j.Process.Signal(syscall.SIGTERM)
			_ = j.ended()
		}
	}
}

// exampleBlock makes a file system on the device, and fills it while a replica is killed and comes
// back, and while the switch is killed and comes back. Then e2fsck finds nothing, all files have
// their bytes, read from the replicas that are left, and these have the same bytes.
func exampleBlock(ctx context.Context, b *bench) error {
	return b.asHosts(4, func(hosts []*host) (err error) {
		d := &disk{b: b, hosts: hosts, replicas: make([]*joiner, 4)}
		if d.dir, err = os.MkdirTemp(b.state, "block-"); err != nil {
			return err
		}
		defer d.close()
		if err := os.Mkdir(d.mount(), 0o755); err != nil {
			return err
		}
		var at []string
		for i, h := range hosts[1:] {
			at = append(at, h.addr4.String()+":7300")
			if err := d.startReplica(ctx, 1+i); err != nil {
				return err
			}
		}
		if d.gateway, err = d.blockd(ctx, 0, "gateway", "-replicas", strings.Join(at, ","), "-group", groupAddr(5, false).String(),
			"-listen", d.socket(), "-dead-after", "400ms", "-create"); err != nil {
			return err
		}
		if err := d.said(ctx, "the device is ready", 1); err != nil {
			return err
		}
		k, err := rig.Attach(d.socket(), blockNode)
		if err != nil {
			return err
		}
		began := time.Now()
		written, err := d.fill(ctx)
		if err = errors.Join(err, k.Detach()); err != nil {
			return fmt.Errorf("%w\ngateway: %s", err, d.gateway.out.String())
		}
		b.note("%d files, %d bytes, written in %.1f s while a replica and the switch were killed", blockFiles, written, time.Since(began).Seconds())
		if err := d.kill(1); err != nil { // reads come from the others, of which one has come back
			return err
		}
		if k, err = rig.Attach(d.socket(), blockNode); err != nil {
			return err
		}
		if err := errors.Join(d.check(ctx), k.Detach()); err != nil {
			return fmt.Errorf("%w\ngateway: %s", err, d.gateway.out.String())
		}
		return d.compare()
	})
}

func run(ctx context.Context, command ...string) error {
	out, err := exec.CommandContext(ctx, command[0], command[1:]...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%v: %w\n%s", command, err, out)
	}
	return nil
}

// content is what file i holds.
func content(i int) []byte {
	r := rand.New(rand.NewPCG(uint64(i), 3))
	b := make([]byte, r.IntN(400<<10))
	for j := range b {
		b[j] = byte(r.Uint32())
	}
	return b
}

func (d *disk) name(i int) string { return filepath.Join(d.mount(), fmt.Sprintf("file%d", i)) }

// fill makes the file system and its files, of which every fourth is synchronized by itself.
func (d *disk) fill(ctx context.Context) (written int, err error) {
	if err := run(ctx, "mke2fs", "-q", "-t", "ext4", blockNode); err != nil {
		return 0, err
	}
	if err := unix.Mount(blockNode, d.mount(), "ext4", 0, ""); err != nil {
		return 0, fmt.Errorf("mount %s: %w", blockNode, err)
	}
	defer func() { err = errors.Join(err, unix.Unmount(d.mount(), 0)) }()
	const back = "is current again"
	for i := range blockFiles {
		switch i {
		case blockFiles / 4:
			err = d.kill(2)
		case blockFiles / 2:
			err = d.startReplica(ctx, 2)
		case blockFiles * 5 / 8:
			err = d.said(ctx, back, 1)
		case blockFiles * 3 / 4:
			err = d.b.daemon.restart(ctx, true)
		}
		if err != nil {
			return written, err
		}
		p := content(i)
		written += len(p)
		f, err := os.Create(d.name(i))
		if err != nil {
			return written, err
		}
		if _, err = f.Write(p); err == nil && i%4 == 0 {
			err = f.Sync()
		}
		if err = errors.Join(err, f.Close()); err != nil {
			return written, err
		}
	}
	return written, nil
}

// check checks the file system, and the bytes of its files.
func (d *disk) check(ctx context.Context) (err error) {
	if err := run(ctx, "e2fsck", "-fn", blockNode); err != nil {
		return err
	}
	if err := unix.Mount(blockNode, d.mount(), "ext4", unix.MS_RDONLY, ""); err != nil {
		return fmt.Errorf("mount %s: %w", blockNode, err)
	}
	defer func() { err = errors.Join(err, unix.Unmount(d.mount(), 0)) }()
	for i := range blockFiles {
		if got, err := os.ReadFile(d.name(i)); err != nil || !bytes.Equal(got, content(i)) {
			return wrongBytes{fmt.Errorf("%s has %d bytes, other ones than were written: %v", d.name(i), len(got), err)}
		}
	}
	return nil
}

// compare compares the bytes of the replicas that are left.
func (d *disk) compare() error {
	var both [2][]byte
	for i := range both {
		f, err := os.Open(d.file(2 + i))
		if err != nil {
			return err
		}
		both[i], err = io.ReadAll(io.LimitReader(f, blockSize))
		if err = errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
	if len(both[0]) != blockSize || !bytes.Equal(both[0], both[1]) {
		return wrongBytes{errors.New("the replicas' bytes differ")}
	}
	return nil
}
