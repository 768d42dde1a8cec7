// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/gleam-rdma/gleam/api"
)

// privateData is what docs/CM.md says that a member's REQ has, byte by byte.
func privateData(key []byte, g *created, h *host, nonce uint64, qpn uint32, va, length uint64, rkey uint32) []byte {
	be := binary.BigEndian
	b := append([]byte("GLCM"), 2, 1)
	b = be.AppendUint16(b, 1)
	b = be.AppendUint64(b, nonce)
	b = be.AppendUint64(b, va)
	b = be.AppendUint64(b, length)
	b = be.AppendUint32(b, rkey)
	b = append(b, 0, 0, 0, 0)
	m := hmac.New(sha256.New, key)
	m.Write([]byte("gleam: member by RDMA-CM\x00"))
	group, member := g.ip.As16(), h.addr(g.v6).As16()
	m.Write(group[:])
	m.Write(member[:])
	m.Write(be.AppendUint16(nil, cmPort))
	m.Write(be.AppendUint32(nil, qpn))
	m.Write(b)
	return append(b, m.Sum(nil)[:16]...)
}

// joinKeyed starts a member that shows what it has before it connects, and gives it private
// data under a key: without a nonce, and with that of the switch, which has answered.
func (g *created) joinKeyed(ctx context.Context, h *host, key []byte, steps string, bytes uint64) (*joiner, error) {
	in, write := io.Pipe()
	j, err := startWith(ctx, in, h, "peer", "connect", g.ip.String(), fmt.Sprint(cmPort), steps, fmt.Sprint(bytes), "ask", h.addr(g.v6).String())
	if err != nil {
		return nil, err
	}
	if err := j.prints(ctx, "rkey "); err != nil {
		return j, err
	}
	var qpn, rkey uint32
	var va uint64
	if _, err := fmt.Sscanf(j.out.String(), "qpn %d va %d rkey %d", &qpn, &va, &rkey); err != nil {
		return j, fmt.Errorf("%w: %s", err, j.out.String())
	}
	var nonce uint64
	for _, is := range []string{"nonce ", ""} {
		if _, err := fmt.Fprintf(write, "%x\n", privateData(key, g, h, nonce, qpn, va, 2*bytes, rkey)); err != nil {
			return j, err
		}
		if is == "" {
			break
		}
		if err := j.prints(ctx, is); err != nil {
			return j, err
		}
		_, text, _ := strings.Cut(j.out.String(), is)
		if _, err := fmt.Sscan(text, &nonce); err != nil {
			return j, fmt.Errorf("%w: %s", err, j.out.String())
		}
	}
	return j, write.Close()
}

// What source and receivers of each operation print.
const (
	sentOne     = "1 messages of 20000 bytes sent\n"
	receivedOne = "1 messages of 20000 bytes received and compared\n"
	comparedOne = "window of 20000 bytes compared\n"
	allSent     = sentOne + sentOne + sentOne + sentOne + "done"
	allReceived = receivedOne + receivedOne + receivedOne + comparedOne + comparedOne + "done"
)

// connectKeyed has members connect under the group's key. The source SENDs and WRITEs to the group's
// window, with immediate data and without, and each receiver finds the bytes in its own. One with another key is refused.
func connectKeyed(ctx context.Context, b *bench) error {
	hosts := b.hosts[:3]
	const bytes = 20_000
	spec := &api.CreateGroup{Group: groupAddr(9, false), Expect: 3, Key: 1, Window: &api.Window{VA: 0x10000, Len: 2 * bytes, RKey: 0x1234}}
	return b.create(ctx, spec, func(g *created) (err error) {
		other, err := g.joinKeyed(ctx, hosts[0], []byte(strings.Repeat("k", 32)), "s1", bytes)
		if err == nil {
			err = other.ends("rejected: reason 28, code 1, the private data is not authentic under key 1")
		}
		if err != nil {
			return err
		}
		var all peers
		defer func() { all.kill() }()
		for i, h := range hosts {
			j, err := g.joinKeyed(ctx, h, auth.Keys[1], []string{"w1s1i1v1", "r1j1k1c0c100"}[min(i, 1)], bytes)
			if j != nil {
				all = append(all, j)
			}
			if err != nil {
				return err
			}
		}
		return errors.Join(all[:1].end(allSent), all[1:].end(allReceived))
	})
}

// connectByFirstREQ has members make their group by the first one's REQ, twice. A member that names
// another number of members is refused.
func connectByFirstREQ(ctx context.Context, b *bench) error {
	hosts := b.hosts[:4]
	const bytes = 20_000
	g := &created{b: b, ip: groupAddr(9, false)}
	join := func(h *host, members int, steps string) (*joiner, error) {
		return start(ctx, h, "peer", "connect", g.ip.String(), fmt.Sprint(cmPort), steps, fmt.Sprint(bytes), fmt.Sprintf("key=%x", auth.Keys[1]), fmt.Sprintf("expect=%d", members), h.addr4.String())
	}
	for range 2 {
		var all peers
		defer func() { all.kill() }()
		for i, h := range hosts[:3] {
			j, err := join(h, 3, []string{"w1s1i1v1", "r1j1k1c0c100"}[min(i, 1)])
			if err != nil {
				return err
			}
			all = append(all, j)
			if i > 0 {
				continue
			}
			if err := g.waits(ctx); err != nil {
				return err
			}
			other, err := join(hosts[3], 4, "s1")
			if err == nil {
				err = other.ends("rejected: reason 28, code 7, the group expects 3 members, not 4")
			}
			if err != nil {
				return err
			}
		}
		if err := errors.Join(all[:1].end(allSent), all[1:].end(allReceived)); err != nil {
			return err
		}
		err := until(ctx, "the group has ended", func() (bool, error) {
			_, err := b.daemon.client.Group(ctx, g.ip)
			var e *api.Error
			return errors.As(err, &e) && !strings.Contains(e.Message, "3 have"), nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// connectByLibrary has members connect under the group's key by gleam_cm_connect of libgleam, and
// one beside them by private data that is made here. A wrong key is refused.
func connectByLibrary(v6 bool) func(context.Context, *bench) error {
	return func(ctx context.Context, b *bench) error {
		hosts := b.hosts[:4]
		const bytes = 20_000
		spec := &api.CreateGroup{Group: groupAddr(9, v6), Expect: 4, Key: 1, Window: &api.Window{VA: 0x10000, Len: 2 * bytes, RKey: 0x1234}}
		return b.create(ctx, spec, func(g *created) (err error) {
			join := func(h *host, key []byte, steps string) (*joiner, error) {
				return start(ctx, h, "peer", "connect", g.ip.String(), fmt.Sprint(cmPort), steps, fmt.Sprint(bytes), fmt.Sprintf("key=%x", key), h.addr(v6).String())
			}
			other, err := join(hosts[0], []byte(strings.Repeat("k", 32)), "s1")
			if err == nil {
				err = other.ends("rejected: reason 28, code 1, the private data is not authentic under key 1")
			}
			if err != nil {
				return err
			}
			var all peers
			defer func() { all.kill() }()
			for i, h := range hosts[:3] {
				j, err := join(h, auth.Keys[1], []string{"w1s1i1v1", "r1j1k1c0c100"}[min(i, 1)])
				if err != nil {
					return err
				}
				all = append(all, j)
			}
			j, err := g.joinKeyed(ctx, hosts[3], auth.Keys[1], "r1j1k1c0c100", bytes)
			if j != nil {
				all = append(all, j)
			}
			if err != nil {
				return err
			}
			return errors.Join(all[:1].end(allSent), all[1:].end(allReceived))
		})
	}
}
