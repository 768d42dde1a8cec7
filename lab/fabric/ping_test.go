// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package fabric_test

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"testing"
	"time"

	"golang.org/x/net/icmp"
	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"

	"github.com/gleam-rdma/gleam/lab/fabric"
)

// pinger sends echo requests from a host.
type pinger struct {
	conn    *icmp.PacketConn
	request icmp.Type
	reply   icmp.Type
	proto   int
}

func newPinger(h *fabric.Host, v6 bool) (*pinger, error) {
	p := &pinger{request: ipv4.ICMPTypeEcho, reply: ipv4.ICMPTypeEchoReply, proto: 1}
	network, own := "ip4:icmp", h.IPv4
	if v6 {
		p.request, p.reply, p.proto = ipv6.ICMPTypeEchoRequest, ipv6.ICMPTypeEchoReply, 58
		network, own = "ip6:ipv6-icmp", h.IPv6
	}
	err := h.NS.Do(func() (err error) {
		p.conn, err = icmp.ListenPacket(network, own.String())
		return err
	})
	return p, err
}

func (p *pinger) send(to netip.Addr, seq int) error {
	m := icmp.Message{Type: p.request, Body: &icmp.Echo{ID: 7, Seq: seq, Data: make([]byte, 32)}}
	b, err := m.Marshal(nil)
	if err != nil {
		return err
	}
	_, err = p.conn.WriteTo(b, &net.IPAddr{IP: to.AsSlice()})
	return err
}

// receive returns the number of the next reply before the deadline.
func (p *pinger) receive(deadline time.Time) (seq int, from netip.Addr, err error) {
	buf := make([]byte, 1500)
	for {
		if err := p.conn.SetReadDeadline(deadline); err != nil {
			return 0, from, err
		}
		n, peer, err := p.conn.ReadFrom(buf)
		if err != nil {
			return 0, from, err
		}
		m, err := icmp.ParseMessage(p.proto, buf[:n])
		if err != nil || m.Type != p.reply {
			continue
		}
		from, _ = netip.AddrFromSlice(peer.(*net.IPAddr).IP)
		return m.Body.(*icmp.Echo).Seq, from.Unmap(), nil
	}
}

// pingAll sends echo requests from a host to all others, again every 200 ms, until all have
// answered.
func pingAll(f *fabric.Fabric, h *fabric.Host, v6 bool) error {
	p, err := newPinger(h, v6)
	if err != nil {
		return err
	}
	defer p.conn.Close()
	waiting := make(map[netip.Addr]int)
	for i, other := range f.Hosts {
		if other != h {
			waiting[address(other, v6)] = i
		}
	}
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); {
		for to, seq := range waiting {
			if err := p.send(to, seq); err != nil {
				return fmt.Errorf("%s: send to %s: %w", h.Name, to, err)
			}
		}
		for again := time.Now().Add(200 * time.Millisecond); len(waiting) > 0; {
			seq, from, err := p.receive(again)
			if errors.Is(err, os.ErrDeadlineExceeded) {
				break
			}
			if err != nil {
				return err
			}
			if want, ok := waiting[from]; ok && want == seq {
				delete(waiting, from)
			}
		}
		if len(waiting) == 0 {
			return nil
		}
	}
	return fmt.Errorf("%s: %d hosts have not answered: %v", h.Name, len(waiting), waiting)
}

func address(h *fabric.Host, v6 bool) netip.Addr {
	if v6 {
		return h.IPv6
	}
	return h.IPv4
}

// everyHostPingsEveryOther is over IPv4 and IPv6.
func everyHostPingsEveryOther(t *testing.T, f *fabric.Fabric) {
	t.Helper()
	ended := make(chan error)
	for _, h := range f.Hosts {
		go func() { ended <- errors.Join(pingAll(f, h, false), pingAll(f, h, true)) }()
	}
	for range f.Hosts {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}
