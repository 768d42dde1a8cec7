// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// asHosts runs do while the first n hosts are other processes' to speak for.
func (b *bench) asHosts(n int, do func(hosts []*host) error) (err error) {
	for _, h := range b.hosts[:n] {
		err = errors.Join(err, h.deaf())
	}
	if err == nil {
		err = do(b.hosts[:n])
	}
	for _, h := range b.hosts[:n] {
		err = errors.Join(err, h.listen())
	}
	return err
}

// targetsInC runs targets.c: a program on libgleam with an exchange of its own, whose WRITEs go to
// other memory at each receiver.
func targetsInC(ctx context.Context, b *bench) error {
	return b.asHosts(4, func(hosts []*host) error {
		args := []string{groupAddr(4, false).String()}
		for _, h := range hosts {
			args = append(args, h.addr4.String())
		}
		c := exec.CommandContext(ctx, "targets", args...)
		c.Env = append(os.Environ(), fmt.Sprintf("GLEAM_KEY=%x", auth.Keys[1]))
		out, err := c.CombinedOutput()
		b.note("%s", strings.TrimSpace(string(out)))
		return err
	})
}

// perfRun is one run of gleam perf.
type perfRun struct {
	sent    uint64  // bytes on the sender's link
	average float64 // MiB/s that reach every receiver
}

// linkRate is the limit of the sender's link, so that it is the bottleneck and not the
// emulated machine.
const linkRate = "20mbit"

// perfAgainstUnicasts measures the group's advantage: the sender's link carries one
// copy instead of three, so that three times as much gets through it.
func perfAgainstUnicasts(ctx context.Context, b *bench) error {
	return b.asHosts(4, func(hosts []*host) error { return b.comparePerf(ctx, hosts) })
}

func (b *bench) comparePerf(ctx context.Context, hosts []*host) (err error) {
	key := filepath.Join(b.state, "key")
	if err := os.WriteFile(key, fmt.Appendf(nil, "%x\n", auth.Keys[1]), 0o600); err != nil {
		return err
	}
	if err := hosts[0].queue("netem", "limit", "10000", "rate", linkRate); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, hosts[0].queue("pfifo", "limit", "10000")) }()
	runs := make(map[string]perfRun)
	for _, mode := range []string{"group", "unicasts"} {
		r, err := b.perf(ctx, key, mode, hosts[0], hosts[1:]...)
		if err != nil {
			return fmt.Errorf("--mode %s: %w", mode, err)
		}
		runs[mode] = r
	}
	g, u := runs["group"], runs["unicasts"]
	share := float64(g.sent) / float64(u.sent)
	gain := g.average / u.average
	b.note("3 receivers: %d bytes on the sender's link by group, %d by unicasts: %.3f", g.sent, u.sent, share)
	b.note("goodput at %s: %.2f MiB/s by group, %.2f by unicasts: %.2f", linkRate, g.average, u.average, gain)
	if share > 0.40 || share < 0.28 { // 1/3, and some packets sent twice
		return fmt.Errorf("the sender's link carries %.3f of the bytes, want about 1/3", share)
	}
	if gain < 2 {
		return fmt.Errorf("the group is %.2f times as fast, want about 3", gain)
	}
	return nil
}

// perf runs gleam perf at sender and receivers.
func (b *bench) perf(ctx context.Context, key, mode string, sender *host, receivers ...*host) (r perfRun, err error) {
	const port = "18515"
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	command := func(h *host, more ...string) (*exec.Cmd, *bytes.Buffer) {
		args := append([]string{"perf", "write-bw", "--backend", "verbs", "--device", h.rdma, "--interface", h.link, "-u", "18",
			"--key-file", key, "--key-id", "1", "--timeout", "30s"}, more...)
		c := exec.CommandContext(ctx, "gleam", args...)
		c.Cancel = func() error { return c.Process.Signal(os.Interrupt) }
		c.WaitDelay = 10 * time.Second
		out := &bytes.Buffer{}
		c.Stderr = out
		return c, out
	}
	ends := make(chan error, len(receivers))
	for _, h := range receivers {
		c, out := command(h, "--listen="+h.addr4.String()+":"+port)
		if err := c.Start(); err != nil {
			return r, err
		}
		go func() {
			err := c.Wait()
			if err != nil {
				err = fmt.Errorf("receiver at host %d: %w\n%s", h.index, err, out)
			}
			ends <- err
		}()
	}
	args := []string{"-s", "65536", "-n", "80", "-m", "1024", "--mode", mode, "-o", "json"}
	if mode == "group" {
		args = append(args, "--group", groupAddr(4, false).String())
	}
	for _, h := range receivers {
		args = append(args, h.addr4.String()+":"+port)
	}
	c, out := command(sender, args...)
	before, err := b.init.LinkStats(sender.link)
	if err != nil {
		return r, err
	}
	answer, err := c.Output()
	if err != nil {
		cancel()
		err = fmt.Errorf("sender: %w\n%s", err, out)
	}
	for range receivers {
		err = errors.Join(err, <-ends)
	}
	if err != nil {
		return r, err
	}
	after, err := b.init.LinkStats(sender.link)
	if err != nil {
		return r, err
	}
	r.sent = after.Sub(before).TxBytes
	r.average, err = goodput(answer)
	return r, err
}

// goodput returns every receiver's goodput from gleam perf's JSON.
func goodput(answer []byte) (float64, error) {
	var doc struct {
		Results []struct {
			All struct {
				Average float64 `json:"bw_avg_mib_s"`
			} `json:"all"`
		} `json:"results"`
	}
	err := json.Unmarshal(answer, &doc)
	if err == nil && (len(doc.Results) != 1 || doc.Results[0].All.Average <= 0) {
		err = errors.New("it has no bandwidth")
	}
	if err != nil {
		return 0, fmt.Errorf("gleam perf's output: %w\n%s", err, answer)
	}
	return doc.Results[0].All.Average, nil
}
