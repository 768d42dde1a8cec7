// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/gleam-rdma/gleam/api"
)

// Programs of other projects, unmodified, between a client and several servers
// (docs/CM.md). All servers are in one kernel: each has a port of its own.

// program is a pair of programs for one client and one server.
type program struct {
	name           string
	server, client []string // %s is the port of a server, or its address if there is but one port; the group's address
	port           uint16   // the only one of the program; 0: each server has one of its own
	sessions       int      // connections that the client makes at once
	stays          bool     // the server does not end by itself
	most           int      // servers that it works with: 1 or manyServers
	wants          string   // printed by the client at the end
	said           string   // printed by each server at the end
	why            string   // the reason that the table gives
}

const manyServers = 7

// address is that of server i, at h, and with it the argument of p that makes it so.
func (p *program) address(h *host, i int) (at netip.AddrPort, argument string) {
	if p.port != 0 {
		return netip.AddrPortFrom(h.addr4, p.port), h.addr4.String()
	}
	at = netip.AddrPortFrom(h.addr4, uint16(7500+i))
	return at, strconv.Itoa(int(at.Port()))
}

// foreign are the programs of the table.
var foreign = []program{
	{name: "rdma_client, rdma_server", server: []string{"rdma_server", "-p", "%s"}, client: []string{"rdma_client", "-p", "7471", "-s", "%s"}, sessions: 1, most: manyServers, wants: "rdma_client: end 0", said: "rdma_server: end 0"},
	{name: "ucmatose", server: []string{"ucmatose", "-p", "%s"}, client: []string{"ucmatose", "-p", "7471", "-s", "%s"}, sessions: 1, most: manyServers, wants: "return status 0", said: "return status 0"},
	{name: "ib_send_bw -R", server: perftest("ib_send_bw", "%s"), client: perftest("ib_send_bw", "7471", "%s"), sessions: 2, most: manyServers, wants: " 65536 ", said: " 65536 "},
	{name: "ib_send_lat -R", server: perftest("ib_send_lat", "%s"), client: perftest("ib_send_lat", "7471", "%s"), sessions: 2, most: manyServers, wants: " 65536 ", said: " 65536 "},
	{name: "cmtime", server: []string{"cmtime", "-p", "%s"}, client: []string{"cmtime", "-p", "7471", "-c", "1", "-s", "%s"}, sessions: 1, stays: true, most: manyServers, wants: "disconnect", said: ""},
	{name: "rping", server: []string{"rping", "-s", "-v", "-C", "3", "-p", "%s"}, client: []string{"rping", "-c", "-v", "-C", "3", "-p", "7471", "-a", "%s"}, sessions: 1, most: 1, wants: "ping data: rdma-ping-2", said: "server ping data: rdma-ping-2",
		why: "client and first server work; the others' READs from the client get a NAK, and they fail"},
	{name: "ib_write_bw -R", server: perftest("ib_write_bw", "%s"), client: perftest("ib_write_bw", "7471", "%s"), sessions: 2, most: 1, wants: " 65536 ", said: "",
		why: "the client knows the R_Key of the leader alone; the others answer with a NAK, status 10"},
	{name: "ib_read_bw -R", server: perftest("ib_read_bw", "%s"), client: perftest("ib_read_bw", "7471", "%s"), sessions: 2, most: 0, wants: " 65536 ", said: "",
		why: "a group cannot be READ from: status 9"},
	{name: "udaddy", server: []string{"udaddy", "-b", "%s"}, client: []string{"udaddy", "-s", "%s"}, port: 7174, sessions: 1, most: 0, wants: "return status 0", said: "",
		why: "UD is dialled by SIDR, which is not answered"},
}

func perftest(name string, port string, more ...string) []string {
	return append([]string{name, "-R", "-F", "-s", "65536", "-n", "40", "-u", "19", "-p", port}, more...)
}

// programTable is the table of docs/CM.md.
func programTable() string {
	var b strings.Builder
	b.WriteString("| program | 1 server | 2, 3 and 7 servers | `--sessions` | |\n|---|---|---|---|---|\n")
	mark := map[bool]string{true: "yes", false: "no"}
	for _, p := range foreign {
		fmt.Fprintf(&b, "| %s | %s | %s | %d | %s |\n", p.name, mark[p.most >= 1], mark[p.most > 1], p.sessions, p.why)
	}
	return b.String()
}

// programCases are the lines of the rxe machine's table.
func programCases() (cs []testCase) {
	add := func(name string, long bool, run func(context.Context, *bench) error) {
		cs = append(cs, testCase{name: "RDMA-CM: " + name, long: long, run: run})
	}
	for i := range foreign {
		p := &foreign[i]
		for _, n := range []int{1, 2, 3, manyServers} {
			add(fmt.Sprintf("%s, %d servers", p.name, n), n != 2 || p.most <= 1, func(ctx context.Context, b *bench) error { return b.foreign(ctx, p, n) })
		}
	}
	add("ib_send_bw -R: 3 servers by a group against three clients in turn, 20 Mbit/s", true, turnsAgainstGroup)
	return cs
}

// foreign runs a program with n servers, and fails if it does not work although the table says
// so, or the other way round.
func (b *bench) foreign(ctx context.Context, p *program, n int) error {
	limit := 60 * time.Second
	if n > p.most {
		limit = 8 * time.Second // it may wait for ever
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	out, err := b.serve(ctx, p, b.hosts[:n+1], 0)
	switch {
	case err == nil && n > p.most:
		return fmt.Errorf("%s works with %d servers, and the table says no\n%s", p.name, n, out)
	case n > p.most:
		reason, _, _ := strings.Cut(err.Error(), "\n")
		b.note("%s; printed: %s", reason, strings.Join(strings.Fields(out[:min(len(out), 160)]), " "))
		return nil
	}
	return err
}

// serve runs the servers of p at hosts[1:], and its client at hosts[0], whose output it
// returns. first is the number of the first server.
func (b *bench) serve(ctx context.Context, p *program, hosts []*host, first int) (out string, err error) {
	spec := &api.CreateGroup{Group: groupAddr(9, false), Replies: api.RepliesLeader, Sessions: p.sessions, Port: p.port}
	for i, h := range hosts[1:] {
		at, _ := p.address(h, first+i)
		spec.Listeners = append(spec.Listeners, at)
	}
	err = b.evenMTU(len(hosts), func() error {
		return b.dialling(context.WithoutCancel(ctx), spec, hosts, func(g *created) (err error) {
			var all peers
			defer func() { all.kill() }()
			for i, h := range hosts[1:] {
				_, argument := p.address(h, first+i)
				j, err := start(ctx, h, p.server[0], fill(p.server[1:], argument)...)
				if err != nil {
					return err
				}
				all = append(all, j)
			}
			for i, j := range all {
				if err := j.listens(ctx, spec.Listeners[i].Port()); err != nil {
					return fmt.Errorf("%w\n%s", err, j.out.String())
				}
			}
			c, err := start(ctx, hosts[0], p.client[0], fill(p.client[1:], g.ip.String())...)
			if err != nil {
				return err
			}
			err = c.ended()
			out = c.out.String()
			if err != nil || !strings.Contains(out, p.wants) {
				return fmt.Errorf("%s: %w, want %q\n%s\nserver:\n%s", p.client[0], errors.Join(err, ctx.Err(), errPrinted), p.wants, out, all[0].out.String())
			}
			for _, j := range all {
				if err := b.served(ctx, p, j); err != nil {
					return err
				}
			}
			return nil
		})
	})
	return out, err
}

// served waits for the end of server j.
func (b *bench) served(ctx context.Context, p *program, j *joiner) error {
	if p.stays {
		return nil
	}
	if err := j.ended(); err != nil || !strings.Contains(j.out.String(), p.said) {
		return fmt.Errorf("%s at host %d: %w, want %q\n%s", p.server[0], j.h.index, errors.Join(err, ctx.Err(), errPrinted), p.said, j.out.String())
	}
	return nil
}

// listens waits until the kernel has a listener of j at its host's device. Programs do not
// say when they listen, and a client that is too early is rejected.
func (j *joiner) listens(ctx context.Context, port uint16) error {
	return until(ctx, fmt.Sprintf("%s at host %d listens", j.Args[0], j.h.index), func() (bool, error) {
		out, err := exec.CommandContext(ctx, "rdma", "resource", "show", "cm_id").CombinedOutput()
		if err != nil {
			return false, fmt.Errorf("rdma resource show cm_id: %w\n%s", err, out)
		}
		for line := range strings.Lines(string(out)) {
			if strings.HasPrefix(line, "link "+j.h.rdma+"/") && strings.Contains(line, " state LISTEN ") && strings.Contains(line, fmt.Sprintf(":%d ", port)) {
				return true, nil
			}
		}
		return false, nil
	})
}

var errPrinted = errors.New("it has printed")

func fill(args []string, with string) (all []string) {
	for _, a := range args {
		all = append(all, strings.ReplaceAll(a, "%s", with))
	}
	return all
}

// averageBandwidth is the line of ib_send_bw with its results.
var averageBandwidth = regexp.MustCompile(`(?m)^ *65536 +\d+ +[\d.]+ +([\d.]+) `)

// turnsAgainstGroup compares one ib_send_bw -R to three servers with three to one server each,
// one after the other: bytes on the sender's link, and how fast every server has the data. A
// client of one server dials a group of one listener, so that its data passes the same switch.
func turnsAgainstGroup(ctx context.Context, b *bench) (err error) {
	p := &program{sessions: 2, wants: " 65536 ", said: " 65536 "}
	p.server = []string{"ib_send_bw", "-R", "-F", "-s", "65536", "-n", "80", "-u", "19", "-p", "%s"}
	p.client = []string{"ib_send_bw", "-R", "-F", "-s", "65536", "-n", "80", "-u", "19", "-p", "7471", "%s"}
	hosts := b.hosts[:4]
	if err := hosts[0].queue("netem", "limit", "10000", "rate", linkRate); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, hosts[0].queue("pfifo", "limit", "10000")) }()
	run := func(first int, hosts ...*host) (sent uint64, seconds float64, err error) {
		before, err := b.init.LinkStats(b.hosts[0].link)
		if err != nil {
			return 0, 0, err
		}
		out, err := b.serve(ctx, p, hosts, first)
		if err != nil {
			return 0, 0, err
		}
		after, err := b.init.LinkStats(b.hosts[0].link)
		if err != nil {
			return 0, 0, err
		}
		m := averageBandwidth.FindStringSubmatch(out)
		if m == nil {
			return 0, 0, fmt.Errorf("no bandwidth in\n%s", out)
		}
		rate, err := strconv.ParseFloat(m[1], 64)
		if err == nil && (rate <= 0 || rate > 2.5) { // 20 Mbit/s are 2.38 MiB/s
			return 0, 0, fmt.Errorf("ib_send_bw says %v MiB/s through 20 Mbit/s: its clock, of processor cycles, is wrong; run it again\n%s", rate, out)
		}
		return after.Sub(before).TxBytes, 5 / rate, err // 80 messages are 5 MiB
	}
	sent, seconds, err := run(0, hosts...)
	if err != nil {
		return err
	}
	var turnsSent uint64
	var turnsSeconds float64
	for i, h := range hosts[1:] {
		x, s, err := run(i, hosts[0], h)
		if err != nil {
			return err
		}
		turnsSent, turnsSeconds = turnsSent+x, turnsSeconds+s
	}
	share, gain := float64(sent)/float64(turnsSent), turnsSeconds/seconds
	b.note("| ib_send_bw -R, 5 MiB to each of 3 servers, %s | bytes on the sender's link | MiB/s until every server has all |", linkRate)
	b.note("|---|---|---|")
	b.note("| one client, a group of 3 | %d | %.2f |", sent, 5/seconds)
	b.note("| three clients in turn | %d | %.2f |", turnsSent, 5/turnsSeconds)
	b.note("| ratio | %.3f | %.2f |", share, gain)
	if share > 0.40 || share < 0.28 || gain < 2 {
		return fmt.Errorf("the group takes %.3f of the bytes and is %.2f times as fast, want about 1/3 and 3", share, gain)
	}
	return nil
}
