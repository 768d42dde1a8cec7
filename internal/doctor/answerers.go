// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/rocev2"
)

// Who answers for an address, and whether that is a switch. ARP and neighbour discovery take
// the word of whoever answers; so each MAC address that answers is asked by itself, by an
// identification, and under the group's key by a request without the switch's cookie. That
// request changes nothing: the answer is a Challenge, which has the key's HMAC over the 96
// random bits of the request. From a switch whose port has another MAC address than was
// asked the answer says only that the switch can be reached.

// answerer is a MAC address that answers for an address, or that the kernel has for it.
type answerer struct {
	mac       rocev2.MAC
	resolved  bool       // true: it has answered ARP or neighbour discovery
	own       bool       // true: it has answered as a host whose own address it is, not as a proxy
	echoes    bool       // true: it returns an echo request as any host does
	claims    bool       // a switch says that it is one, at at
	at        rocev2.MAC // its port's
	proved    bool       // a switch has proved that it has the key, from provedAt
	provedAt  rocev2.MAC
	refused   bool // a switch says that it does not take the key
	nonce     rocev2.Nonce
	attempt   uint64 // epoch of the request under the key
	requested uint32 // its transaction
}

// isSwitch reports whether this MAC address is that of a switch's port.
func (a *answerer) isSwitch() bool {
	return a.claims && a.at == a.mac || a.proved && a.provedAt == a.mac
}

// leads reports whether a switch answers what is sent to this MAC address.
func (a *answerer) leads() bool { return a.claims || a.proved }

// survey asks who answers for an address.
type survey struct {
	socket *packetSocket
	mac    rocev2.MAC     // the MAC of the interface
	from   netip.AddrPort // the host's address for the group, and a port that nobody else has
	hop    netip.Addr     // next hop: the group, or a gateway
	group  netip.Addr
	auth   envelope.Auth // no keys: nothing is to be proved
	found  []*answerer   // the answerers in the order of their answers
}

// Bounds of a survey.
const (
	maxAnswerers = 16
	surveyRounds = 2
	resolveAgain = 200 * time.Millisecond
	askWait      = 500 * time.Millisecond
)

// resolveWait is longer than a proxy waits before it answers: up to 0.8 s by default
// (proxy_delay). Tests make both shorter.
var resolveWait = 1200 * time.Millisecond

// newSurvey opens its sockets in the namespace of the calling thread.
func newSurvey(ifindex int, mac net.HardwareAddr, src, hop, group netip.Addr, auth envelope.Auth) (s *survey, done func(), err error) {
	if len(mac) != len(rocev2.MAC{}) {
		return nil, nil, errors.New("not an Ethernet interface")
	}
	if !src.IsValid() {
		return nil, nil, fmt.Errorf("no address for %s", hop)
	}
	socket, err := openPacketSocket(ifindex)
	if err != nil {
		return nil, nil, err
	}
	port, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(src, 0))) // the kernel does not answer the switch then
	if err != nil {
		socket.close()
		return nil, nil, err
	}
	from := netip.AddrPortFrom(src, port.LocalAddr().(*net.UDPAddr).AddrPort().Port())
	s = &survey{socket: socket, mac: rocev2.MAC(mac), from: from, hop: hop, group: group, auth: auth}
	return s, func() { port.Close(); socket.close() }, nil
}

// at returns the answerer with a MAC address, nil if there are too many.
func (s *survey) at(mac rocev2.MAC) *answerer {
	if i := slices.IndexFunc(s.found, func(a *answerer) bool { return a.mac == mac }); i >= 0 {
		return s.found[i]
	}
	if len(s.found) == maxAnswerers {
		return nil
	}
	a := &answerer{mac: mac}
	_, _ = rand.Read(a.nonce[:]) // never fails
	var b [12]byte
	_, _ = rand.Read(b[:])
	a.attempt, a.requested = max(1, binary.BigEndian.Uint64(b[:])), binary.BigEndian.Uint32(b[8:])
	s.found = append(s.found, a)
	return a
}

// resolve collects all answers to ARP requests or neighbour solicitations for the hop.
func (s *survey) resolve() error {
	for round := range surveyRounds {
		for _, frame := range s.questions() {
			if err := s.socket.send(frame); err != nil {
				return err
			}
		}
		wait := resolveAgain
		if round == surveyRounds-1 {
			wait = resolveWait
		}
		if err := s.socket.read(wait, s.resolved); err != nil {
			return err
		}
	}
	return nil
}

// questions are the frames that ask for the hop. A host answers a probe, which has no sender's
// address, for its own address alone (RFC 5227).
func (s *survey) questions() [][]byte {
	b, p := make([]byte, 2*rocev2.IdentifyRequestLen), rocev2.Path{SrcMAC: s.mac, DstMAC: rocev2.BroadcastMAC, Src: s.from.Addr()}
	if s.hop.Is6() {
		return [][]byte{b[:rocev2.BuildNeighborSolicitation(b, &p, s.hop)]}
	}
	n := rocev2.BuildARP(b, &p, &rocev2.ARP{Op: rocev2.ARPRequest, SenderMAC: s.mac, SenderIP: s.from.Addr(), TargetIP: s.hop})
	probe := rocev2.BuildARP(b[n:], &p, &rocev2.ARP{Op: rocev2.ARPRequest, SenderMAC: s.mac, SenderIP: netip.IPv4Unspecified(), TargetIP: s.hop})
	return [][]byte{b[:n], b[n : n+probe]}
}

// resolved notes an answer to questions.
func (s *survey) resolved(f *rocev2.Frame) bool {
	var mac rocev2.MAC
	own := false
	var arp rocev2.ARP
	var advertisement rocev2.NeighborAdvertisement
	switch {
	case rocev2.DecodeARP(f, &arp) == rocev2.OK && arp.Op == rocev2.ARPReply && arp.SenderIP == s.hop:
		mac, own = arp.SenderMAC, arp.TargetIP.IsUnspecified()
	case rocev2.DecodeNeighborAdvertisement(f, &advertisement) == rocev2.OK && advertisement.Target == s.hop:
		mac, own = advertisement.MAC, advertisement.Override
	default:
		return true
	}
	if a := s.at(mac); a != nil {
		a.resolved, a.own = true, a.own || own
	}
	return true
}

// ask asks each of those found whether it is a switch.
func (s *survey) ask() error {
	for range surveyRounds {
		if s.complete() {
			break
		}
		for _, a := range s.found {
			for _, frame := range s.frames(a) {
				if err := s.socket.send(frame); err != nil {
					return err
				}
			}
		}
		if err := s.socket.read(askWait, s.answered); err != nil {
			return err
		}
	}
	return nil
}

// complete reports whether nothing more can be heard of those found.
func (s *survey) complete() bool {
	return !slices.ContainsFunc(s.found, func(a *answerer) bool {
		return !a.claims || len(s.auth.Keys) > 0 && !a.proved
	})
}

// frames are the identification for an answerer, and the request under the key.
func (s *survey) frames(a *answerer) [][]byte {
	b, p := make([]byte, envelope.MaxLen), rocev2.Path{SrcMAC: s.mac, DstMAC: a.mac, Src: s.from.Addr(), Dst: s.group, SrcPort: s.from.Port()}
	n := rocev2.BuildIdentifyRequest(b, &p, a.nonce)
	list := [][]byte{b[:n]}
	if len(s.auth.Keys) == 0 {
		return list
	}
	request, err := envelope.Append(nil, &envelope.Message{
		Header: envelope.Header{Epoch: a.attempt, Transaction: a.requested, Total: 1, Group: s.group, ReplyTo: s.from}, Body: &envelope.Renew{},
	}, s.auth.Keys, s.auth.Send)
	if err != nil {
		return list // the key is not there: the caller has checked
	}
	m := rocev2.BuildUDP(b[n:], &p, envelope.DefaultPort, request)
	return append(list, b[n:n+m])
}

// answered notes an answer to frames.
func (s *survey) answered(f *rocev2.Frame) bool {
	if f.Kind == rocev2.KindARP || f.Src() != s.group || f.Dst() != s.from.Addr() {
		return true
	}
	s.note(f)
	return !s.complete()
}

// note notes what a frame of the group to this host says.
func (s *survey) note(f *rocev2.Frame) {
	from := f.Eth().Src()
	if x, ok := rocev2.DecodeIdentification(f); ok {
		for _, a := range s.found {
			switch {
			case a.nonce != x.Nonce:
			case x.Switch:
				a.claims, a.at = true, x.MAC
			default:
				a.echoes = true
			}
		}
	}
	if f.Kind != rocev2.KindUDP || f.UDP().DstPort() != s.from.Port() {
		return
	}
	m, err := envelope.Open(f.UDPPayload(), s.auth.Keys, true)
	if err != nil || m.Group != s.group {
		return
	}
	for _, a := range s.found {
		if m.Epoch != a.attempt || m.Transaction != a.requested {
			continue
		}
		switch body := m.Body.(type) {
		case *envelope.Challenge:
			if m.KeyID != 0 && m.KeyID == s.auth.Send {
				a.proved, a.provedAt = true, from
			}
		case *envelope.Reject:
			a.refused = a.refused || body.Reason == envelope.BadAuthentication
		}
	}
}
