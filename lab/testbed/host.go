// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/host/endpoint"
	"github.com/gleam-rdma/gleam/host/endpoint/session"
	"github.com/gleam-rdma/gleam/host/endpoint/soft"
	"github.com/gleam-rdma/gleam/lab"
)

// Key authenticates envelopes. Its number is KeyID.
type Key []byte

// Auth returns what a host with the key authenticates envelopes by.
func (k Key) Auth() envelope.Auth {
	return envelope.Auth{Keys: envelope.Keys{KeyID: k}, Send: KeyID}
}

// Endpoints describes what the programs of a host have open. The zero value of the optional fields
// takes the default in brackets.
type Endpoints struct {
	Key    Key
	IPv6   bool        // the host is a member by its IPv6 address
	Device soft.Config // its interface is the host's
	// QP is the configuration of queue pairs: their address is the host's, their PSNs are random.
	// [64 messages of each kind, timeout 14, retries without end]
	QP       endpoint.QPConfig
	Memory   int           // bytes of the host's region [no region]
	Deadline time.Duration // the deadline of a registration [that of package endpoint]
	Answer   bool          // the host answers envelopes at all times, and not just those of its groups
}

// memoryBase is the address of the first host's region. Every host has it at another one: the switch
// translates.
const memoryBase = 0x7000_0000_0000

// Host is a host of a lab with a software device.
type Host struct {
	lab.Host
	IP        netip.Addr // its address as a member
	Device    *soft.Device
	Envelopes *endpoint.Host // nil: each group has its own
	Memory    endpoint.MR    // nil: none

	qp     endpoint.QPConfig
	config endpoint.HostConfig
}

// Open opens what the programs of a host have open. On error there is nothing to close.
func Open(at lab.Host, c Endpoints) (_ *Host, err error) {
	if c.QP == (endpoint.QPConfig{}) {
		c.QP = endpoint.QPConfig{MaxSend: 64, MaxRecv: 64, Timeout: 14, RetryCount: 7, RNRRetry: 7}
	}
	h := &Host{Host: at, IP: at.IPv4, qp: c.QP, config: endpoint.HostConfig{Auth: c.Key.Auth(), Deadline: c.Deadline}}
	if c.IPv6 {
		h.IP = at.IPv6
	}
	c.Device.Interface = at.Interface
	if h.Device, err = lab.In(h.NS, func() (*soft.Device, error) { return soft.Open(c.Device) }); err == nil && c.Memory > 0 {
		err = h.Register(make([]byte, c.Memory), memoryBase)
	}
	if err == nil && c.Answer {
		h.Envelopes, err = lab.In(h.NS, func() (*endpoint.Host, error) { return endpoint.NewHost(h.IP, h.config) })
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("host %s: %w", at.Name, err), h.Close())
	}
	return h, nil
}

// OpenAll opens hosts. The seed and the address of the region of each are others than those of the one before.
func OpenAll(hosts []lab.Host, c Endpoints) (all []*Host, err error) {
	size := c.Memory
	c.Memory = 0
	for i, at := range hosts {
		h, err := Open(at, c)
		if err == nil {
			all = append(all, h)
			if size > 0 {
				err = h.Register(make([]byte, size), memoryBase+uint64(i)<<32)
			}
		}
		if err != nil {
			return nil, errors.Join(err, CloseAll(all))
		}
		c.Device.Seed++
	}
	return all, nil
}

// CloseAll closes hosts.
func CloseAll(all []*Host) (err error) {
	for _, h := range all {
		err = errors.Join(err, h.Close())
	}
	return err
}

// Register makes bytes the host's region, at an address.
func (h *Host) Register(b []byte, address uint64) (err error) {
	h.Memory, err = h.Device.RegisterMemory(b, address, endpoint.LocalWrite|endpoint.RemoteWrite)
	return err
}

// QPConfig returns the configuration of a new queue pair of the host.
func (h *Host) QPConfig() endpoint.QPConfig {
	c := h.qp
	c.LocalIP, c.SQPSN, c.RQPSN = h.IP, endpoint.RandomPSN(), endpoint.RandomPSN()
	return c
}

// Local returns what the host brings into a group.
func (h *Host) Local() endpoint.Local {
	return endpoint.Local{Device: h.Device, QPConfig: h.QPConfig(), Memory: h.Memory, Host: h.Envelopes, HostConfig: h.config}
}

// Close ends the host's programs without a word to anybody. Another call does nothing.
func (h *Host) Close() (err error) {
	if h.Device != nil {
		err = h.Device.Close()
	}
	if h.Envelopes != nil {
		err = errors.Join(err, h.Envelopes.Close())
	}
	return err
}

// Join has hosts form a group by envelopes, the first as its master. Groups are by host, nil for one
// that failed.
func Join(ctx context.Context, m endpoint.MasterConfig, hosts []*Host) ([]*endpoint.Group, error) {
	all := make([]session.Participant, len(hosts))
	for i, h := range hosts {
		all[i] = session.Participant{Name: h.Name, Do: h.NS.Do, Local: h.Local()}
	}
	return session.Join(ctx, netip.AddrPortFrom(hosts[0].IP, 0), m, all) // any port
}

// Connect connects a new queue pair of a host to one of another, as any RC application does.
func Connect(ctx context.Context, a, b *Host, pathMTU int) (qa, qb endpoint.QP, err error) {
	if qa, err = a.Device.CreateQP(a.QPConfig()); err != nil {
		return nil, nil, err
	}
	if qb, err = b.Device.CreateQP(b.QPConfig()); err != nil {
		return nil, nil, err
	}
	return qa, qb, session.Pair(ctx, qa, qb, pathMTU)
}
