// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"encoding/binary"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"golang.org/x/sys/unix"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/lab"
	"github.com/gleam-rdma/gleam/test/labtest"
)

// The difference of two clocks is the shorter way round midnight.
func TestSkew(t *testing.T) {
	for _, c := range []struct {
		sent, received, replied, back uint32
		want                          time.Duration
	}{
		{1000, 1010, 1011, 1021, 0}, {1000, 3010, 3011, 1021, 2 * time.Second}, {5000, 3010, 3011, 5021, -2 * time.Second},
		{day - 5, 1995, 1996, 6, 1995 * time.Millisecond}, {5, day - 2000, day - 1999, 16, -2010 * time.Millisecond},
	} {
		if got := skew(c.sent, c.received, c.replied, c.back); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

// A master whose clock is wrong is found, and one whose clock is right is not. The wrong one has
// no kernel: a packet socket answers for it.
func TestClockOfMaster(t *testing.T) {
	x := labtest.Star(t, lab.StarConfig{Hosts: 2})
	wrong := netip.MustParseAddr("10.77.0.99")
	ahead := answerTimestamps(t, x.Hosts[1], wrong)
	groups := []api.Group{{Master: x.Hosts[0].IPv4.String()}, {Master: wrong.String() + ":700"}, {Master: ""}}
	look := func(*testing.T) *Report {
		r := &Report{}
		err := x.Switch.Do(func() error {
			p, err := openPinger()
			if err == nil {
				defer p.close()
				checkSkew(r, p, groups)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	ahead <- 90 * time.Second
	r := look(t)
	if len(r.Findings) != 1 || !strings.HasPrefix(r.Findings[0].Text, "the clock of master 10.77.0.99 is 1m30s ahead") || r.Findings[0].At != "at host 10.77.0.99" || r.Findings[0].Severity != Warning {
		t.Fatalf("%+v", r.Findings)
	}
	ahead <- 0 // the remedy: a time server
	remedied(t, look, "clock-skew", "")
	groups = groups[:1]
	if r := look(t); len(r.Findings) != 0 || r.result("clock-skew").State != OK {
		t.Errorf("%+v", r)
	}
	groups[0].Master = "10.77.0.98"
	if r := look(t); r.result("clock-skew").State != Skipped {
		t.Errorf("nobody answers: %+v", r)
	}
}

// answerTimestamps answers ARP and ICMP timestamp requests for an address at a host, with a
// clock that is as far ahead as it is told.
func answerTimestamps(t *testing.T, h lab.Host, ip netip.Addr) chan<- time.Duration {
	t.Helper()
	fd := -1
	err := h.NS.Do(func() error {
		link, err := h.NS.Handle().LinkByName(h.Interface)
		if err != nil {
			return err
		}
		if fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0); err != nil {
			return err
		}
		if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Usec: 20000}); err != nil {
			return err
		}
		return unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: unix.ETH_P_ALL<<8 | unix.ETH_P_ALL>>8, Ifindex: link.Attrs().Index})
	})
	if err != nil {
		t.Fatal(err)
	}
	set, done := make(chan time.Duration, 1), make(chan struct{})
	go func() {
		defer close(done)
		var ahead time.Duration
		buf := make([]byte, 2048)
		for {
			select {
			case d, ok := <-set:
				if !ok {
					return
				}
				ahead = d
			default:
			}
			n, _, err := unix.Recvfrom(fd, buf, 0)
			if err != nil {
				continue
			}
			if reply := timestampReply(buf[:n], h.MAC, ip, ahead); reply != nil {
				_, _ = unix.Write(fd, reply)
			}
		}
	}()
	t.Cleanup(func() { close(set); <-done; unix.Close(fd) })
	return set
}

// timestampReply makes the answer to a frame; nil if it asks for nothing.
func timestampReply(b []byte, mac net.HardwareAddr, ip netip.Addr, ahead time.Duration) []byte {
	p := gopacket.NewPacket(b, layers.LayerTypeEthernet, gopacket.Default)
	eth, ok := p.Layer(layers.LayerTypeEthernet).(*layers.Ethernet)
	if !ok {
		return nil
	}
	out := gopacket.NewSerializeBuffer()
	o := gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}
	back := &layers.Ethernet{SrcMAC: mac, DstMAC: eth.SrcMAC, EthernetType: eth.EthernetType}
	if a, ok := p.Layer(layers.LayerTypeARP).(*layers.ARP); ok {
		if a.Operation != layers.ARPRequest || string(a.DstProtAddress) != string(ip.AsSlice()) {
			return nil
		}
		answer := *a
		answer.Operation, answer.SourceHwAddress, answer.SourceProtAddress = layers.ARPReply, mac, ip.AsSlice()
		answer.DstHwAddress, answer.DstProtAddress = a.SourceHwAddress, a.SourceProtAddress
		if gopacket.SerializeLayers(out, o, back, &answer) != nil {
			return nil
		}
		return out.Bytes()
	}
	v4, ok := p.Layer(layers.LayerTypeIPv4).(*layers.IPv4)
	m, isICMP := p.Layer(layers.LayerTypeICMPv4).(*layers.ICMPv4)
	if !ok || !isICMP || m.TypeCode.Type() != layers.ICMPv4TypeTimestampRequest || !v4.DstIP.Equal(ip.AsSlice()) || len(m.Payload) < 12 {
		return nil
	}
	times := append([]byte(nil), m.Payload[:12]...)
	now := sinceMidnight(time.Now().Add(ahead))
	binary.BigEndian.PutUint32(times[4:], now)
	binary.BigEndian.PutUint32(times[8:], now)
	err := gopacket.SerializeLayers(out, o, back, &layers.IPv4{Version: 4, TTL: 64, Protocol: layers.IPProtocolICMPv4, SrcIP: v4.DstIP, DstIP: v4.SrcIP},
		&layers.ICMPv4{TypeCode: layers.CreateICMPv4TypeCode(layers.ICMPv4TypeTimestampReply, 0), Id: m.Id, Seq: m.Seq}, gopacket.Payload(times))
	if err != nil {
		return nil
	}
	return out.Bytes()
}
