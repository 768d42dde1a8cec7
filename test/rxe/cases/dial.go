// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os/exec"
	"strconv"
	"strings"

	"github.com/gleam-rdma/gleam/api"
)

// Cases of listeners that the switch dials (docs/CM.md). The ends are processes of peer.c.

// dialCases are their lines of the table.
func dialCases() (cs []testCase) {
	add := func(name string, run func(context.Context, *bench) error) {
		cs = append(cs, testCase{name: "RDMA-CM: " + name, run: run})
	}
	add("one dials, 2 listen, twice", dialTwice(2, false))
	add("one dials, 3 listen, IPv6", dialTwice(3, true))
	add("one dials, 7 listen", dialTwice(7, false))
	cs[len(cs)-1].long = true
	add("one dials, 3 listen, 15 % of all packets lost, MADs included", dialLossy)
	cs[len(cs)-1].long = true
	add("a listener refuses, is not there, has another path MTU", dialRefused)
	add("a listener is started after the dialler", dialEarly)
	add("replies refused: a listener's data gets a NAK", dialReplies)
	add("replies by source: a listener sends to all", dialSource)
	add("replies by leader: a listener sends its answer 5 s after the dialler has left", dialLate)
	add("a listener is killed, and then the dialler", dialKilled)
	add("gleamd restarts, kill -9: a session ends, and the next is dialled", dialRestart)
	return cs
}

// dialling makes a group whose listeners are hosts[1:], and ends it after do. Programs dial
// it from hosts[0].
func (b *bench) dialling(ctx context.Context, g *api.CreateGroup, hosts []*host, do func(*created) error) (err error) {
	v6 := g.Group.Is6()
	if g.Listeners == nil {
		for _, h := range hosts[1:] {
			g.Listeners = append(g.Listeners, netip.AddrPortFrom(h.addr(v6), cmPort))
		}
	}
	route := []string{netip.PrefixFrom(g.Group, g.Group.BitLen()).String(), "dev", hosts[0].link, "src", hosts[0].addr(v6).String()}
	if err := ip(ctx, append([]string{"route", "replace"}, route...)...); err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, ip(context.WithoutCancel(ctx), append([]string{"route", "del"}, route...)...))
	}()
	return b.create(ctx, g, do)
}

func ip(ctx context.Context, args ...string) error {
	if out, err := exec.CommandContext(ctx, "ip", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("ip %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}

// peers are the processes of a session: the dialler first.
type peers []*joiner

// listen starts a listener at h.
func (g *created) listen(ctx context.Context, h *host, args ...string) (*joiner, error) {
	j, err := start(ctx, h, "peer", append([]string{"listen", h.addr(g.v6).String(), strconv.Itoa(cmPort)}, args...)...)
	if err != nil {
		return nil, err
	}
	return j, j.prints(ctx, "listening")
}

// dial starts listeners at hosts[1:], and the dialler at hosts[0].
func (g *created) dial(ctx context.Context, hosts []*host, dialler []string, listeners ...[]string) (all peers, err error) {
	all = peers{nil}
	for i, h := range hosts[1:] {
		j, err := g.listen(ctx, h, listeners[min(i, len(listeners)-1)]...)
		if j != nil {
			all = append(all, j)
		}
		if err != nil {
			return all[1:], err
		}
	}
	all[0], err = start(ctx, hosts[0], "peer", append([]string{"connect", g.ip.String(), strconv.Itoa(cmPort)}, dialler...)...)
	if err != nil {
		return all[1:], err
	}
	return all, nil
}

// end waits for the ends of all, which print what is wanted of each.
func (all peers) end(wants ...string) error {
	var errs []error
	for i, j := range all {
		errs = append(errs, j.ends(wants[min(i, len(wants)-1)]))
	}
	return errors.Join(errs...)
}

// kill ends what is left of all.
func (all peers) kill() {
	for _, j := range all {
		j.Process.Kill()
		j.ended()
	}
}

// unconnected waits until no session is left.
func (g *created) unconnected(ctx context.Context) error {
	return until(ctx, "no session is left", func() (bool, error) {
		_, err := g.b.daemon.client.Group(ctx, g.ip)
		var e *api.Error
		return errors.As(err, &e) && strings.Contains(e.Message, "connected: 0 of "), nil
	})
}

// transferDialled has the dialler send to all listeners, without immediate data and with it.
func (g *created) transferDialled(ctx context.Context, hosts []*host, messages, size int) error {
	n, bytes := strconv.Itoa(messages), strconv.Itoa(size)
	all, err := g.dial(ctx, hosts, []string{"s" + n + "i" + n, bytes}, []string{"r" + n + "j" + n, bytes, "wait"})
	if err != nil {
		all.kill()
		return err
	}
	return errors.Join(all[:1].end(strings.Repeat(fmt.Sprintf("%s messages of %s bytes sent\n", n, bytes), 2)+"done"),
		all[1:].end("private data: hello\nconnected\n"+strings.Repeat(fmt.Sprintf("%s messages of %s bytes received and compared\n", n, bytes), 2)+"RDMA_CM_EVENT_DISCONNECTED\ndone"))
}

// evenMTU gives all hosts the path MTU of the last of n.
func (b *bench) evenMTU(n int, do func() error) (err error) {
	if n > longHosts { // librdmacm connects with the path MTU of the own link
		for _, h := range b.hosts[:longHosts] {
			if err := h.setMTU(linkMTU(longHosts + 1)); err != nil {
				return err
			}
			defer func() { err = errors.Join(err, h.setMTU(linkMTU(1))) }()
		}
	}
	return do()
}

func dialTwice(n int, v6 bool) func(context.Context, *bench) error {
	return func(ctx context.Context, b *bench) error {
		hosts := b.hosts[:n+1]
		return b.evenMTU(n+1, func() error {
			return b.dialling(ctx, &api.CreateGroup{Group: groupAddr(9, v6)}, hosts, func(g *created) error {
				for _, size := range []int{1, 100_000} { // the second at once: it has to wait for the end of the first
					if err := g.transferDialled(ctx, hosts, 40, size); err != nil {
						return err
					}
				}
				return g.unconnected(ctx)
			})
		})
	}
}

// dialLossy loses packets of all. Listeners keep their queue pairs until the dialler is done, as in connectLossy.
func dialLossy(ctx context.Context, b *bench) (err error) {
	hosts := b.hosts[:4]
	for _, h := range hosts {
		if err := h.lose("15%", "15%"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, h.heal()) }()
	}
	return b.dialling(ctx, &api.CreateGroup{Group: groupAddr(9, false)}, hosts, func(g *created) error {
		all, err := g.dial(ctx, hosts, []string{"s40", "5000"}, []string{"r40", "5000", "wait"})
		if err != nil {
			all.kill()
			return err
		}
		return errors.Join(all[:1].end("40 messages of 5000 bytes sent"), all[1:].end("40 messages of 5000 bytes received and compared"))
	})
}

// dialRefused has a dialler connect that cannot.
func dialRefused(ctx context.Context, b *bench) error {
	hosts := b.hosts[:4]
	attempt := func(spec api.CreateGroup, hosts []*host, want string, listeners ...[]string) error {
		spec.Group = groupAddr(9, false)
		return b.dialling(ctx, &spec, hosts, func(g *created) error {
			all, err := g.dial(ctx, hosts, []string{"s1", "1"}, listeners...)
			if err == nil {
				err = all[0].ends(want)
			}
			for i, j := range all[1:] {
				if listeners[min(i, len(listeners)-1)][0] == "x" {
					err = errors.Join(err, j.ends("rejected it"))
				} else {
					err = errors.Join(err, j.isIdle())
				}
			}
			all.kill()
			return errors.Join(err, g.unconnected(ctx))
		})
	}
	refuses, waits := []string{"x", "1"}, []string{"r1", "1"}
	third := netip.AddrPortFrom(hosts[3].addr4, cmPort)
	err := attempt(api.CreateGroup{}, hosts, fmt.Sprintf("rejected: reason 28, code 6, listener %s has refused: consumer reject", third), waits, waits, refuses)
	absent := []netip.AddrPort{netip.AddrPortFrom(hosts[1].addr4, cmPort), netip.AddrPortFrom(hosts[2].addr4, cmPort+1)}
	err = errors.Join(err, attempt(api.CreateGroup{Listeners: absent, WaitMS: 1500}, hosts[:2], fmt.Sprintf("rejected: reason 28, code 4, 1 of 2 listeners have answered, %s has not: no program listens there", absent[1]), waits))
	nobody := netip.AddrPortFrom(hosts[3].addr4.Next().Next().Next().Next().Next().Next().Next().Next().Next(), cmPort)
	err = errors.Join(err, attempt(api.CreateGroup{Listeners: []netip.AddrPort{absent[0], nobody}, WaitMS: 1500}, hosts[:2], fmt.Sprintf("rejected: reason 28, code 4, 1 of 2 listeners have answered, %s has not", nobody), waits))
	return errors.Join(err, attempt(api.CreateGroup{PMTU: 512}, hosts, "rejected: reason 26,", waits))
}

// dialEarly starts the dialler first, then the listeners, one after the other.
func dialEarly(ctx context.Context, b *bench) error {
	hosts := b.hosts[:3]
	return b.dialling(ctx, &api.CreateGroup{Group: groupAddr(9, false)}, hosts, func(g *created) error {
		var all peers
		defer func() { all.kill() }()
		dialler, err := start(ctx, hosts[0], "peer", "connect", g.ip.String(), strconv.Itoa(cmPort), "s10", "3000")
		if err != nil {
			return err
		}
		all = peers{dialler}
		for _, h := range hosts[1:] {
			err := until(ctx, "the listener is waited for", func() (bool, error) {
				_, err := b.daemon.client.Group(ctx, g.ip)
				var e *api.Error
				return errors.As(err, &e) && strings.Contains(e.Message, h.addr4.String()+" (dialling: no program listens there)"), nil
			})
			if err != nil {
				return err
			}
			j, err := g.listen(ctx, h, "r10", "3000", "wait")
			if j != nil {
				all = append(all, j)
			}
			if err != nil {
				return err
			}
		}
		return all.end("10 messages of 3000 bytes sent\ndone", "10 messages of 3000 bytes received and compared\nRDMA_CM_EVENT_DISCONNECTED\ndone")
	})
}

// isIdle reports an error if a listener has been connected.
func (j *joiner) isIdle() error {
	if text := j.out.String(); strings.Contains(text, "\nconnected") {
		return fmt.Errorf("listener at host %d:\n%s", j.h.index, text)
	}
	return nil
}

// dialReplies has a listener send although only the dialler may.
func dialReplies(ctx context.Context, b *bench) error {
	hosts := b.hosts[:3]
	return b.dialling(ctx, &api.CreateGroup{Group: groupAddr(9, false)}, hosts, func(g *created) error {
		all, err := g.dial(ctx, hosts, []string{"s20", "3000", "wait"}, []string{"r10s1", "3000"}, []string{"r20", "3000", "wait"})
		if err != nil {
			all.kill()
			return err
		}
		err = all[1].ends("completion with status 10, remote access error")
		s, e := b.daemon.client.Group(ctx, g.ip)
		if err = errors.Join(err, e); e == nil && (s.Replies != api.RepliesRefuse || s.Origin != "rdma-cm") {
			err = errors.Join(err, fmt.Errorf("the group is shown as %q, replies %q", s.Origin, s.Replies))
		}
		err = errors.Join(err, all[0].prints(ctx, "20 messages of 3000 bytes sent"))
		all[0].Process.Kill()
		return errors.Join(err, all[2].ends("20 messages of 3000 bytes received and compared\nRDMA_CM_EVENT_DISCONNECTED"))
	})
}

// dialSource has a listener send to the dialler and to the other listener.
func dialSource(ctx context.Context, b *bench) error {
	hosts := b.hosts[:3]
	return b.dialling(ctx, &api.CreateGroup{Group: groupAddr(9, false), Replies: api.RepliesSource}, hosts, func(g *created) error {
		all, err := g.dial(ctx, hosts, []string{"s10r10", "3000"}, []string{"r10s10", "3000"}, []string{"r10r10", "3000"})
		if err != nil {
			all.kill()
			return err
		}
		const sent, received = "10 messages of 3000 bytes sent\n", "10 messages of 3000 bytes received and compared\n"
		return all.end(sent+received, received+sent, received+received)
	})
}

// dialLate has the last listener answer when the dialler and the leader have left: the switch
// acknowledges the answer still. Without a late listener the session ends soon.
func dialLate(ctx context.Context, b *bench) error {
	hosts := b.hosts[:4]
	return b.dialling(ctx, &api.CreateGroup{Group: groupAddr(9, false), Replies: api.RepliesLeader}, hosts, func(g *created) error {
		all, err := g.dial(ctx, hosts, []string{"s1r1", "3000"}, []string{"r1s1", "3000"}, []string{"r1s1", "3000"}, []string{"r1d5s1", "3000"})
		if err != nil {
			all.kill()
			return err
		}
		const sent, received = "1 messages of 3000 bytes sent\n", "1 messages of 3000 bytes received and compared\n"
		err = all[:3].end(sent+received+"done", received+sent+"done")
		if text := all[3].out.String(); strings.Contains(text, sent) {
			err = errors.Join(err, fmt.Errorf("the late listener is not late:\n%s", text))
		}
		return errors.Join(err, all[3].ends(received+sent+"done"), g.unconnected(ctx))
	})
}

// dialKilled kills a listener, without which the group goes on, and then the dialler.
func dialKilled(ctx context.Context, b *bench) error {
	hosts := b.hosts[:4]
	return b.dialling(ctx, &api.CreateGroup{Group: groupAddr(9, false)}, hosts, func(g *created) error {
		all, err := g.dial(ctx, hosts, []string{"s1", "1", "wait"}, []string{"r1", "1", "wait"})
		if err == nil {
			err = g.members(ctx, 4)
		}
		if err == nil {
			err = all[0].prints(ctx, "sent")
		}
		if err == nil {
			err = all[1].Process.Kill()
		}
		if err == nil {
			err = g.members(ctx, 3)
		}
		if err == nil {
			err = all[0].Process.Kill()
		}
		if err != nil {
			all.kill()
			return err
		}
		return errors.Join(all[2:].end("RDMA_CM_EVENT_DISCONNECTED"), g.unconnected(ctx))
	})
}
