// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gleam-rdma/gleam/api"
)

// Cases of joining by RDMA-CM (docs/CM.md). The members are processes of member.c, which has
// librdmacm and nothing of ours.

const cmPort = 7471

// connectCases are their lines of the table.
func connectCases() (cs []testCase) {
	add := func(name string, run func(context.Context, *bench) error) {
		cs = append(cs, testCase{name: "RDMA-CM: " + name, run: run})
	}
	add("everybody connects, 2 receivers, twice", connectTwice(3, false))
	add("everybody connects, 3 receivers, IPv6", connectTwice(4, true))
	add("everybody connects, 7 receivers", connectTwice(8, false))
	add("15 % of all packets lost, MADs included", connectLossy)
	add("refusals: port, address, key, path MTU, one too many, alone", connectRefused)
	add("a receiver is killed, and another one takes its place", connectKilled)
	add("a receiver's host is cut off, policy evict, and connects again", connectAway("evict"))
	add("a receiver's host is cut off, policy quorum:2, and connects again", connectAway("quorum:2"))
	add("the group is deleted: members are disconnected", connectDeleted)
	add("private data under the right key: every operation", connectKeyed)
	add("gleam_cm_connect of libgleam: every operation", connectByLibrary(false))
	add("gleam_cm_connect of libgleam, IPv6", connectByLibrary(true))
	cs[len(cs)-1].long = true
	add("the first REQ makes the group, which ends with its members", connectByFirstREQ)
	add("gleamd restarts, kill -9: members wait, and then are connected", connectRestart)
	return cs
}

// created is a group that members connect to.
type created struct {
	b  *bench
	ip netip.Addr
	v6 bool
}

// create makes a group for n members, and ends it after do.
func (b *bench) create(ctx context.Context, g *api.CreateGroup, do func(*created) error) error {
	if g.Port == 0 {
		g.Port = cmPort
	}
	if g.Key == 0 && g.From == nil {
		g.From = []netip.Prefix{netip.PrefixFrom(b.hosts[0].addr(g.Group.Is6()), 8).Masked()}
	}
	if err := b.daemon.client.CreateGroup(ctx, g); err != nil {
		return err
	}
	err := do(&created{b: b, ip: g.Group, v6: g.Group.Is6()})
	if err != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		if s, e := b.daemon.client.Group(ctx, g.Group); e == nil {
			text, _ := json.Marshal(s)
			err = fmt.Errorf("%w\n    group: %s", err, text)
			if x, e := b.daemon.client.ExplainACK(ctx, g.Group); e == nil {
				text, _ = json.Marshal(x)
				err = fmt.Errorf("%w\n    next ACK: %s", err, text)
			}
			qps, _ := exec.CommandContext(ctx, "rdma", "-d", "resource", "show", "qp").CombinedOutput()
			err = fmt.Errorf("%w\n    queue pairs of all hosts:\n%s", err, qps)
		} else {
			err = fmt.Errorf("%w\n    group: %v", err, e)
		}
		if es, e := b.daemon.client.Events(ctx, 0, 0); e == nil {
			for _, v := range es.Events[max(0, len(es.Events)-20):] {
				err = fmt.Errorf("%w\n    event: %s %s %s %s %s", err, v.Time.Format("15:04:05.000"), v.Kind, v.Group, v.Member, v.Reason)
			}
		}
	}
	return errors.Join(err, b.daemon.client.Delete(context.WithoutCancel(ctx), g.Group))
}

// joiner is a process that connects, or listens, at a host.
type joiner struct {
	*exec.Cmd
	h    *host
	out  printed
	done chan error
}

// printed is what a process has printed so far.
type printed struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (p *printed) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.Write(b)
}

func (p *printed) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.String()
}

// join starts a member at h.
func (g *created) join(ctx context.Context, h *host, args ...string) (*joiner, error) {
	return start(ctx, h, "member", append([]string{g.ip.String(), strconv.Itoa(cmPort), h.addr(g.v6).String()}, args...)...)
}

// start starts a program at h.
func start(ctx context.Context, h *host, name string, args ...string) (*joiner, error) {
	return startWith(ctx, nil, h, name, args...)
}

// startWith is start for a program that reads in.
func startWith(ctx context.Context, in io.Reader, h *host, name string, args ...string) (*joiner, error) {
	j := &joiner{h: h, done: make(chan error, 1)}
	j.Cmd = exec.CommandContext(ctx, name, args...)
	j.Stdin = in
	j.Stdout, j.Stderr = &j.out, &j.out
	if err := j.Start(); err != nil {
		return nil, err
	}
	go func() { j.done <- j.Wait() }()
	return j, nil
}

// ends waits for the end of j, which prints want.
func (j *joiner) ends(want string) error {
	err := j.ended()
	if text := j.out.String(); !strings.Contains(text, want) {
		return fmt.Errorf("%s at host %d: %v, want %q\n%s", j.Path, j.h.index, err, want, text)
	}
	return nil
}

// ended waits for the end of j.
func (j *joiner) ended() error {
	err := <-j.done
	j.done <- err
	return err
}

// prints waits until j has printed want.
func (j *joiner) prints(ctx context.Context, want string) error {
	err := until(ctx, want, func() (bool, error) {
		if strings.Contains(j.out.String(), want) {
			return true, nil
		}
		select {
		case err := <-j.done:
			j.done <- err
			return false, fmt.Errorf("%s at host %d has ended: %v", j.Path, j.h.index, err)
		default:
			return false, nil
		}
	})
	if err != nil {
		return fmt.Errorf("%w\n%s", err, j.out.String())
	}
	return nil
}

// transfer has the first host send to all others: messages of a size.
func (g *created) transfer(ctx context.Context, hosts []*host, messages, size int) error {
	all, err := g.joinAll(ctx, hosts, messages, size)
	if err != nil {
		return err
	}
	var errs []error
	for i, j := range all {
		errs = append(errs, j.ends(outcome(i, messages, size)))
	}
	return errors.Join(errs...)
}

// joinAll starts a sender at the first host, and at the others receivers with the further
// arguments that are given.
func (g *created) joinAll(ctx context.Context, hosts []*host, messages, size int, receivers ...string) (all []*joiner, err error) {
	for i, h := range hosts {
		args := append([]string{"receive", strconv.Itoa(messages), strconv.Itoa(size)}, receivers...)
		if i == 0 {
			args = []string{"send", strconv.Itoa(messages), strconv.Itoa(size)}
		}
		j, err := g.join(ctx, h, args...)
		if err != nil {
			return all, err
		}
		all = append(all, j)
	}
	return all, nil
}

// outcome is what the i-th process of joinAll prints at the end of a transfer.
func outcome(i, messages, size int) string {
	what := "received and compared"
	if i == 0 {
		what = "sent"
	}
	return fmt.Sprintf("%d messages of %d bytes %s", messages, size, what)
}

// vacant waits until no member is left.
func (g *created) vacant(ctx context.Context) error {
	return until(ctx, "all members have left", func() (bool, error) {
		_, err := g.b.daemon.client.Group(ctx, g.ip)
		var e *api.Error
		return errors.As(err, &e) && strings.Contains(e.Message, " 0 of "), nil
	})
}

// connectTwice has n members connect, transfer and leave, and then all of them again.
func connectTwice(n int, v6 bool) func(context.Context, *bench) error {
	return func(ctx context.Context, b *bench) (err error) {
		return b.evenMTU(n, func() error {
			return b.create(ctx, &api.CreateGroup{Group: groupAddr(9, v6), Expect: n}, func(g *created) error {
				for _, size := range []int{1, 100_000} {
					if err := g.transfer(ctx, b.hosts[:n], 40, size); err != nil {
						return err
					}
					if err := g.vacant(ctx); err != nil {
						return err
					}
				}
				return nil
			})
		})
	}
}

// connectLossy loses packets of all members, of RDMA-CM and of data alike. Receivers keep
// their queue pairs until the sender has all its completions: one that disconnects after its last
// message cannot acknowledge that message again.
func connectLossy(ctx context.Context, b *bench) error {
	hosts := b.hosts[:3]
	for _, h := range hosts {
		if err := h.lose("15%", "15%"); err != nil {
			return err
		}
	}
	var all []*joiner
	err := b.create(ctx, &api.CreateGroup{Group: groupAddr(9, false), Expect: 3}, func(g *created) (err error) {
		const messages, size = 40, 5000
		if all, err = g.joinAll(ctx, hosts, messages, size, "wait"); err != nil {
			return err
		}
		if err := all[0].ends(outcome(0, messages, size)); err != nil {
			return err
		}
		for i, j := range all[1:] {
			if err := j.prints(ctx, outcome(i+1, messages, size)); err != nil {
				return err
			}
		}
		return nil
	})
	for i, j := range all {
		if i > 0 {
			err = errors.Join(err, j.ends("RDMA_CM_EVENT_DISCONNECTED")) // the group is deleted
		}
	}
	for _, h := range hosts {
		err = errors.Join(err, h.heal())
	}
	return err
}

// connectRefused has members connect that cannot.
func connectRefused(ctx context.Context, b *bench) error {
	hosts := b.hosts[:4]
	attempt := func(g *created, h *host, want string) error {
		j, err := g.join(ctx, h, "receive", "1", "1")
		if err != nil {
			return err
		}
		return j.ends(want)
	}
	none := &created{b: b, ip: groupAddr(10, false)}
	err := attempt(none, hosts[0], "rejected: reason 8,")
	err = errors.Join(err, b.create(ctx, &api.CreateGroup{Group: groupAddr(9, false), Expect: 2, Key: 1}, func(g *created) error {
		return attempt(g, hosts[0], "rejected: reason 28, code 1, the private data is not authentic under key 1")
	}))
	own := []netip.Prefix{netip.PrefixFrom(hosts[1].addr4, 32)}
	err = errors.Join(err, b.create(ctx, &api.CreateGroup{Group: groupAddr(9, false), Expect: 2, From: own}, func(g *created) error {
		return attempt(g, hosts[0], "rejected: reason 28, code 1, the group is not open for this address")
	}))
	err = errors.Join(err, b.create(ctx, &api.CreateGroup{Group: groupAddr(9, false), Expect: 2, PMTU: 512}, func(g *created) error {
		return attempt(g, hosts[0], "rejected: reason 26,")
	}))
	err = errors.Join(err, b.create(ctx, &api.CreateGroup{Group: groupAddr(9, false), Expect: 2, WaitMS: 500}, func(g *created) error {
		return attempt(g, hosts[0], "rejected: reason 28, code 4, 1 of 2 members have connected")
	}))
	return errors.Join(err, b.create(ctx, &api.CreateGroup{Group: groupAddr(9, false), Expect: 2}, func(g *created) error {
		x, err := g.join(ctx, hosts[0], "send", "0", "1", "wait")
		if err != nil {
			return err
		}
		y, err := g.join(ctx, hosts[1], "receive", "0", "1", "wait")
		if err != nil {
			return err
		}
		if err := g.members(ctx, 2); err != nil {
			return err
		}
		err = attempt(g, hosts[2], "rejected: reason 3,")
		return errors.Join(err, x.Process.Kill(), x.ends("connected"), y.ends("RDMA_CM_EVENT_DISCONNECTED"))
	}))
}

// members waits until the group has n members.
func (g *created) members(ctx context.Context, n int) error {
	return until(ctx, fmt.Sprintf("the group has %d members", n), func() (bool, error) {
		s, err := g.b.daemon.client.Group(ctx, g.ip)
		return err == nil && len(s.Members) == n, nil
	})
}

// waits waits until one of three members has connected.
func (g *created) waits(ctx context.Context) error {
	return until(ctx, "a member waits", func() (bool, error) {
		_, err := g.b.daemon.client.Group(ctx, g.ip)
		var e *api.Error
		return errors.As(err, &e) && strings.Contains(e.Message, "1 of 3 have"), nil
	})
}

// connectKilled kills a receiver: the others hear nothing of it, and another host joins.
func connectKilled(ctx context.Context, b *bench) error {
	hosts := b.hosts[:4]
	return b.create(ctx, &api.CreateGroup{Group: groupAddr(9, false), Expect: 3}, func(g *created) error {
		var all []*joiner
		for i, h := range hosts[:3] {
			what := []string{"send", "receive", "receive"}[i]
			j, err := g.join(ctx, h, what, "0", "1", "wait")
			if err != nil {
				return err
			}
			all = append(all, j)
		}
		if err := g.members(ctx, 3); err != nil {
			return err
		}
		if err := errors.Join(all[2].Process.Kill(), all[2].ended()); err == nil {
			return errors.New("a process that is killed has ended well")
		}
		if err := g.members(ctx, 2); err != nil {
			return err
		}
		last, err := g.join(ctx, hosts[3], "receive", "0", "1", "wait")
		if err != nil {
			return err
		}
		if err := g.members(ctx, 3); err != nil {
			return err
		}
		if err := b.daemon.client.RemoveMember(ctx, g.ip, hosts[3].addr4); err != nil {
			return err
		}
		if err := errors.Join(last.ends("RDMA_CM_EVENT_DISCONNECTED"), g.members(ctx, 2)); err != nil {
			return err
		}
		// With the next one only one would be left: both are out.
		return errors.Join(all[1].Process.Kill(), all[1].ends("connected"), all[0].ends("RDMA_CM_EVENT_DISCONNECTED"))
	})
}

// connectDeleted deletes a group with members.
func connectDeleted(ctx context.Context, b *bench) error {
	hosts := b.hosts[:3]
	var all []*joiner
	err := b.create(ctx, &api.CreateGroup{Group: groupAddr(9, false), Expect: 3}, func(g *created) error {
		for i, h := range hosts {
			j, err := g.join(ctx, h, []string{"send", "receive", "receive"}[i], "0", "1", "wait")
			if err != nil {
				return err
			}
			all = append(all, j)
		}
		return g.members(ctx, 3)
	})
	for _, j := range all {
		err = errors.Join(err, j.ends("RDMA_CM_EVENT_DISCONNECTED"))
	}
	return err
}
