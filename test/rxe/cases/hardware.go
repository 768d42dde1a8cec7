// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// hardwareKit runs gleam hardware at a source and two receivers: each trial that fits passes, and the report
// names the RDMA device.
func hardwareKit(ctx context.Context, b *bench) error {
	return b.asHosts(3, func(hosts []*host) error {
		key := filepath.Join(b.state, "key")
		if err := os.WriteFile(key, fmt.Appendf(nil, "%x\n", auth.Keys[1]), 0o600); err != nil {
			return err
		}
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		archive := func(h *host) string { return filepath.Join(b.state, fmt.Sprintf("host%d.tar.gz", h.index)) }
		command := func(h *host, more ...string) (*exec.Cmd, *bytes.Buffer) {
			args := []string{"hardware", "host", "--backend", "verbs", "--device", h.rdma, "--interface", h.link, "-u", "18", "--key-file", key, "--out", archive(h)}
			c := exec.CommandContext(ctx, "gleam", append(args, more...)...)
			c.Cancel = func() error { return c.Process.Signal(os.Interrupt) }
			c.WaitDelay = 10 * time.Second
			out := &bytes.Buffer{}
			c.Stdout, c.Stderr = out, out
			return c, out
		}
		// No other case has this group: doctor refuses a neighbour entry that one has left.
		args := []string{"--group", groupAddr(77, false).String(), "--seconds", "0.5"}
		ends := make(chan error, len(hosts)-1)
		for _, h := range hosts[1:] {
			c, _ := command(h, "--listen="+h.addr4.String())
			if err := c.Start(); err != nil {
				return err
			}
			go func() { ends <- c.Wait() }()
			args = append(args, h.addr4.String())
		}
		c, out := command(hosts[0], args...)
		if err := c.Run(); err != nil {
			return fmt.Errorf("source: %w\n%s", err, out)
		}
		b.note("%s", strings.TrimSpace(out.String()))
		for range hosts[1:] {
			if err := <-ends; err != nil {
				return fmt.Errorf("receiver: %w", err)
			}
		}
		report, err := exec.CommandContext(ctx, "gleam", "hardware", "show", archive(hosts[0])).Output()
		if err != nil {
			return err
		}
		for _, want := range []string{"| write-bw, path MTU 1024 | passed |", "| send-bw | passed |", "| write-lat | passed |", "| a group whose source changes | passed |", "4 turns of sources", "| a receiver that is killed, under evict | passed |", "longest pause", "| write-lat without a group, ip-2 | passed |", "| " + hosts[0].rdma + " | rdma_rxe |", "RoCE v2"} {
			if !strings.Contains(string(report), want) {
				return fmt.Errorf("the report lacks %q:\n%s", want, report)
			}
		}
		return nil
	})
}
