// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"strconv"
	"strings"
)

// unicastBeside runs programs of other projects between two hosts that are in a group
// at the same time.
func unicastBeside(ctx context.Context, b *bench) error {
	spec := groupSpec{number: 1, hosts: b.hosts[:4], mtu: 1024}
	return withGroup(ctx, &spec, func(g *group) error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		done := make(chan error, 1)
		go func() { done <- b.programs(ctx, b.hosts[0], b.hosts[1]) }()
		for transfers := 0; ; transfers++ {
			select {
			case err := <-done:
				if err == nil && transfers == 0 {
					err = errors.New("no transfer of the group fell into the time of the programs")
				}
				return err
			default:
			}
			if err := g.transfer(ctx, mixed(1, 1<<16)...); err != nil {
				cancel()
				return errors.Join(err, <-done)
			}
		}
	})
}

// programs runs each program, with its server at one host and its client at
// another, in both directions.
func (b *bench) programs(ctx context.Context, x, y *host) error {
	port := 18600
	for _, p := range [][]string{
		{"ib_write_bw", "-s", "65536", "-n", "60", "-m", "1024", "-u", "18", "-F"},
		{"ib_send_bw", "-s", "65536", "-n", "60", "-m", "1024", "-u", "18", "-F"},
		{"ibv_rc_pingpong", "-s", "8192", "-n", "200", "-m", "1024", "-c"},
	} {
		for _, ends := range [][2]*host{{x, y}, {y, x}} {
			port++
			if err := pair(ctx, ends[0], ends[1], port, p); err != nil {
				return fmt.Errorf("%s from host %d to host %d: %w", p[0], ends[1].index, ends[0].index, err)
			}
		}
	}
	return nil
}

// pair runs a program's server and client.
func pair(ctx context.Context, server, client *host, port int, words []string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	start := func(h *host, more ...string) (*exec.Cmd, *bytes.Buffer, error) {
		gid := "-x"
		if words[0] == "ibv_rc_pingpong" {
			gid = "-g"
		}
		index, err := h.gidIndex(h.addr4)
		if err != nil {
			return nil, nil, err
		}
		args := append([]string{"-d", h.rdma, gid, strconv.Itoa(index), "-p", strconv.Itoa(port)}, words[1:]...)
		c := exec.CommandContext(ctx, words[0], append(args, more...)...)
		out := &bytes.Buffer{}
		c.Stdout, c.Stderr = out, out
		return c, out, c.Start()
	}
	s, sOut, err := start(server)
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Wait() }()
	err = until(ctx, "the server listens", func() (bool, error) {
		select {
		case err := <-ended:
			ended <- err
			return false, fmt.Errorf("the server has ended: %v", err)
		default:
		}
		return listening(port)
	})
	if err == nil {
		var c *exec.Cmd
		var cOut *bytes.Buffer
		if c, cOut, err = start(client, "127.0.0.1"); err == nil {
			if err = c.Wait(); err != nil {
				err = fmt.Errorf("client: %w\n%s", err, cOut)
			}
		}
	}
	if err != nil {
		cancel()
	}
	if e := <-ended; e != nil {
		err = errors.Join(err, fmt.Errorf("server: %w\n%s", e, sOut))
	}
	return err
}

// listening reports whether a process listens on a TCP port.
func listening(port int) (bool, error) {
	want := fmt.Sprintf(":%04X", port)
	for _, file := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		data, err := os.ReadFile(file)
		if err != nil {
			return false, err
		}
		for line := range strings.Lines(string(data)) {
			f := strings.Fields(line)
			if len(f) > 3 && strings.HasSuffix(f[1], want) && f[3] == "0A" {
				return true, nil
			}
		}
	}
	return false, nil
}

// gidIndex returns the index of ip's RoCEv2 GID in h's table.
func (h *host) gidIndex(ip netip.Addr) (int, error) {
	dir := "/sys/class/infiniband/" + h.rdma + "/ports/1/"
	for i := range 16 {
		gid, err := os.ReadFile(dir + "gids/" + strconv.Itoa(i))
		if err != nil {
			return 0, err
		}
		a, err := netip.ParseAddr(strings.TrimSpace(string(gid)))
		if err != nil || a.Unmap() != ip {
			continue
		}
		kind, err := os.ReadFile(dir + "gid_attrs/types/" + strconv.Itoa(i))
		if err == nil && strings.TrimSpace(string(kind)) == "RoCE v2" {
			return i, nil
		}
	}
	return 0, fmt.Errorf("%s has no RoCEv2 GID for %s", h.rdma, ip)
}
