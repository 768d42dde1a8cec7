// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package cp

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/gleam-rdma/gleam/config/linkrate"
	"github.com/gleam-rdma/gleam/host/endpoint"
	"github.com/gleam-rdma/gleam/host/endpoint/oob"
	"github.com/gleam-rdma/gleam/internal/cli/port"
	"github.com/gleam-rdma/gleam/rocev2"
)

// DefaultPort is the TCP port of receivers.
const DefaultPort = 18517

// Local has the parameters that sender and receivers each choose for themselves.
type Local struct {
	Backend   string // port.Soft or port.Verbs
	Interface string // network interface [the one of the connection to the other side]
	Device    string // RDMA device, for port.Verbs [the first that fits]
	Host      endpoint.HostConfig
	QPTimeout uint8         // retransmission after 4.096 µs * 2^QPTimeout
	Rate      linkrate.Rate // most that the sender's queue pair sends, of the soft backend [no bound]
}

// DefaultLocal returns the defaults, without a key.
func DefaultLocal() Local { return Local{Backend: port.Soft, QPTimeout: 16} }

func (l *Local) check() error {
	switch {
	case l.Backend != port.Soft && l.Rate != linkrate.None:
		return errors.New("--rate is for the soft backend: the NIC's own limit is set by the driver's tools")
	case l.Rate.Validate() != nil:
		return fmt.Errorf("--rate: %w", l.Rate.Validate())
	}
	if err := port.CheckDevice(l.Backend, l.Device, l.QPTimeout); err != nil {
		return err
	}
	return port.CheckKey(&l.Host)
}

func (l *Local) identity() (*oob.Identity, error) {
	id, err := oob.NewIdentity(l.Host.Auth)
	if err != nil {
		return nil, err
	}
	id.Log = l.Host.Log
	return id, nil
}

// open opens the device beside a connection.
func (l *Local) open(c net.Conn, v6 bool) (*port.Port, error) {
	at, _ := netip.ParseAddrPort(c.LocalAddr().String()) // the net package's own text
	return port.Open(port.Config{
		Backend: l.Backend, Interface: l.Interface, Device: l.Device, Rate: int64(l.Rate),
		Beside: at.Addr().Unmap().WithZone(""), IPv6: v6,
	})
}

// qpConfig returns a queue pair's configuration with random PSNs.
func (l *Local) qpConfig(p *port.Port, send, recv int) endpoint.QPConfig {
	return endpoint.QPConfig{
		LocalIP: p.IP, SQPSN: endpoint.RandomPSN(), RQPSN: endpoint.RandomPSN(),
		MaxSend: send, MaxRecv: recv, Timeout: l.QPTimeout, RetryCount: 7, RNRRetry: 7,
	}
}

// SendOptions configure a sender.
type SendOptions struct {
	Local
	Files   []string
	Hosts   []string   // HOST or HOST:PORT
	GroupIP netip.Addr // the IP of the group; invalid: no group, but TCP to each host
	MTU     int        // path MTU
	Chunk   int        // bytes
	Window  int        // chunks
	Timeout time.Duration
	// Slow is how long a receiver may hold up the others, more than two thirds of the
	// time, before it leaves the group. 0: for ever
	Slow      time.Duration
	DeadAfter time.Duration // silence after which the switch removes a receiver

	Say      func(string)   // gets what happens, for people
	Progress func([]Status) // a function that is called twice a second; may be nil
}

// DefaultSendOptions returns the defaults, without files, hosts, group and key.
func DefaultSendOptions() SendOptions {
	return SendOptions{
		Local: DefaultLocal(), MTU: rocev2.DefaultPathMTU, Chunk: 256 << 10, Window: 32,
		Timeout: 10 * time.Second, Slow: 5 * time.Second, DeadAfter: time.Second, Say: func(string) {},
	}
}

func (o *SendOptions) check() error {
	if err := o.Local.check(); err != nil {
		return err
	}
	h := hello{Chunk: o.Chunk, Window: o.Window, Key: make([]byte, keySize)}
	switch {
	case len(o.Files) == 0 || len(o.Hosts) == 0:
		return errors.New("want FILE... HOST...: what to copy, and the addresses of the hosts to copy it to")
	case o.GroupIP.IsValid() && !rocev2.ValidPathMTU(o.MTU):
		return fmt.Errorf("--mtu %d: want %s", o.MTU, rocev2.PathMTUText)
	case o.Timeout <= 0:
		return fmt.Errorf("--timeout %v: want more than 0", o.Timeout)
	case o.Slow < 0 || o.DeadAfter <= 0:
		return errors.New("--slow, --dead-after: want no negative times")
	}
	seen := make(map[string]bool)
	for _, h := range o.Hosts {
		if seen[h] {
			return fmt.Errorf("host %s is named twice", h)
		}
		seen[h] = true
		host, _, _ := net.SplitHostPort(h)
		ip, err := netip.ParseAddr(host)
		if err == nil && o.GroupIP.IsValid() && ip.Is6() != o.GroupIP.Is6() {
			return fmt.Errorf("host %s and group %s are not of one address family", h, o.GroupIP)
		}
	}
	return h.check()
}

// withPort adds the default port to a host that names none.
func withPort(at string) string {
	if _, _, err := net.SplitHostPort(at); err == nil {
		return at
	}
	return net.JoinHostPort(strings.Trim(at, "[]"), fmt.Sprint(DefaultPort))
}
