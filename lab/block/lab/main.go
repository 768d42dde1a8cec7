// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Lab starts a replicated block device in a lab on this machine, runs fio on it, kills a replica, starts it again,
// and prints what happened. With -bench it measures the device instead.
package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/gleam-rdma/gleam/lab/block/rig"
)

const module = "github.com/gleam-rdma/gleam"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "lab:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	var o options
	o.flags()
	flag.Parse()
	if os.Getuid() != 0 {
		return errors.New("it makes network namespaces, and needs root")
	}
	dir, err := os.MkdirTemp("", "gleam-block-programs")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil {
		return err
	}
	c := exec.CommandContext(ctx, "go", "build", "-o", dir, module+"/lab/block/blockd", module+"/cmd/gleamd")
	c.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("build the programs: %w\n%s", err, out)
	}
	o.config = rig.Config{
		Blockd: filepath.Join(dir, "blockd"), Gleamd: filepath.Join(dir, "gleamd"), Size: "256M", MTU: o.mtu,
	}
	if o.bench != "" {
		return bench(ctx, &o)
	}
	return show(ctx, o.config)
}

// show kills a replica of three while fio writes.
func show(ctx context.Context, c rig.Config) (err error) {
	c.Replicas = 3
	d, err := rig.Start(ctx, c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	fmt.Println("a device of 256 MiB with 3 replicas in memory: fio writes 8 KiB at random places, 16 at a time, for 6 s")
	start := time.Now()
	say := func(what string) { fmt.Printf("%5.2f s  %s\n", time.Since(start).Seconds(), what) }
	killed := make(chan error, 1)
	go func() {
		killed <- func() error {
			time.Sleep(2 * time.Second)
			if err := d.KillReplica(2); err != nil {
				return err
			}
			say("replica 2 is killed, with all that it had in memory")
			time.Sleep(1500 * time.Millisecond)
			if err := d.StartReplica(2); err != nil {
				return err
			}
			say("replica 2 is started again, empty")
			if err := d.AwaitGateway(ctx, d.Bed.Star.Hosts[2].IPv4.String()+":7300 is current again"); err != nil {
				return err
			}
			say("replica 2 has all again")
			return nil
		}()
	}()
	f, err := d.Fio(ctx, rig.Job{Size: 8 << 10, Depth: 16, Time: 6 * time.Second})
	if err = errors.Join(err, <-killed); err != nil {
		return err
	}
	say(fmt.Sprintf("fio is done: %d writes, %.0f IOPS, %.1f MB/s", f.Writes, f.IOPS, f.MBs))
	fmt.Printf("\nlatency of a write: %v in the middle, %v for 99.9 %%, the longest %v\n\nthe gateway:\n", round(f.P50), round(f.P999), round(f.Max))
	for line := range strings.Lines(d.Gateway().Output()) {
		fmt.Print("  ", line)
	}
	return same(ctx, d)
}

func round(d time.Duration) time.Duration { return d.Round(10 * time.Microsecond) }

// same compares the replicas.
func same(ctx context.Context, d *rig.Device) error {
	if err := d.AwaitCurrent(ctx); err != nil {
		return err
	}
	n, err := rig.Dial(d.Socket)
	if err != nil {
		return err
	}
	defer n.Close()
	if err := n.Do(rig.Flush, 0, 0, 0, nil); err != nil {
		return err
	}
	t := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "\nREPLICA\tSHA-256")
	sums := make(map[string]bool)
	for i := 1; i <= 3; i++ {
		f, err := d.Bytes(i)
		if err != nil {
			return err
		}
		h := sha256.New()
		_, err = io.CopyN(h, f, n.Size)
		_ = f.Close()
		if err != nil {
			return err
		}
		sum := fmt.Sprintf("%x", h.Sum(nil))
		sums[sum] = true
		fmt.Fprintf(t, "%d\t%.16s…\n", i, sum)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if len(sums) != 1 {
		return errors.New("the replicas differ")
	}
	fmt.Println("\nok: the replicas hold the same bytes")
	return nil
}
