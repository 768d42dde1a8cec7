// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package neighbours

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"sync"
	"time"

	"github.com/gleam-rdma/gleam/config"
	"github.com/gleam-rdma/gleam/dataplane"
	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/envelope/hello"
	"github.com/gleam-rdma/gleam/rocev2"
)

// version is the highest version of the protocols between switches that this one speaks.
const version = 1

// Runtime exchanges hellos at the ports. Its methods may be called from any goroutine.
type Runtime struct {
	// Bell has room for one: it rings when the state of a link has changed.
	Bell chan struct{}

	speaker hello.Speaker
	links   []*link
	byPort  map[int]*link
}

// Open opens the sockets at ports, for the switch of cfg, which has keys. now is the clock of
// all times that are returned; advertise is where neighbours learn that the API over TCP is.
func Open(cfg *config.Switch, advertise netip.AddrPort, ports []Port, now func() time.Duration, notify dataplane.Notify) (_ *Runtime, err error) {
	r := &Runtime{Bell: make(chan struct{}, 1), byPort: make(map[int]*link)}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.Close())
		}
	}()
	if r.speaker.ID, err = ID(cfg); err != nil {
		return nil, err
	}
	keys, send := KeysOf(cfg)
	var random [8]byte
	if _, err := rand.Read(random[:]); err != nil {
		return nil, fmt.Errorf("draw the incarnation of this switch: %w", err)
	}
	r.speaker.Incarnation = max(1, binary.NativeEndian.Uint64(random[:]))
	for _, p := range ports {
		if p.Ifindex == 0 {
			p.MAC = noAddress
		}
		l := &link{Port: p, now: now, notify: notify, changed: r.ring, policer: dataplane.NewPolicer(maxHellos)}
		l.state.Port = p.Index
		c := hello.Config{Speaker: r.speaker, Address: l.address(), MaxVersion: version, Interval: cfg.HelloInterval, Keys: keys, Send: send, API: advertise}
		if _, err := rand.Read(c.Seed[:]); err != nil {
			return nil, fmt.Errorf("draw the seed of port %s: %w", p.Name, err)
		}
		if l.machine, err = hello.NewLink(now(), c); err != nil {
			return nil, err
		}
		l.machine.SetLink(now(), p.Up, &l.out)
		l.state.State, l.state.Reason = l.machine.State()
		if l.socket, err = openSocket(&p); err != nil {
			return nil, err
		}
		r.links = append(r.links, l)
		r.byPort[p.Index] = l
	}
	return r, nil
}

// KeysOf returns the keys of switches, and the one to authenticate with.
func KeysOf(cfg *config.Switch) (envelope.Keys, envelope.KeyID) {
	keys := make(envelope.Keys)
	for i := range cfg.Keys {
		keys[envelope.KeyID(cfg.Keys[i].ID)] = cfg.Keys[i].Secret.Bytes()
	}
	return keys, envelope.KeyID(cfg.Keys[0].ID)
}

func (r *Runtime) ring() {
	select {
	case r.Bell <- struct{}{}:
	default: // it rings already
	}
}

// ID returns the identity of this switch.
func (r *Runtime) ID() hello.SwitchID { return r.speaker.ID }

// Run exchanges hellos until ctx ends.
func (r *Runtime) Run(ctx context.Context) {
	var links sync.WaitGroup
	for _, l := range r.links {
		links.Go(func() { l.run(ctx) })
	}
	links.Wait()
}

// Links returns the state of each link.
func (r *Runtime) Links() []Link {
	list := make([]Link, len(r.links))
	for i, l := range r.links {
		list[i] = l.read()
	}
	return list
}

// noAddress stands for the MAC address of a link without a port, which sends nothing.
var noAddress = rocev2.MAC{0x02}

// Has reports whether hellos are exchanged at a port, by its index in the data plane.
func (r *Runtime) Has(port int) bool {
	l := r.byPort[port]
	if l == nil {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.Ifindex != 0
}

// SetLink tells the state of a port's interface; an MTU of 0 is unknown.
func (r *Runtime) SetLink(port int, up bool, mtu int) {
	if l := r.byPort[port]; l != nil {
		l.setLink(up, mtu)
	}
}

// SetKeys replaces the keys of switches. Adjacencies stay, if both ends have a key that the
// other one sends under.
func (r *Runtime) SetKeys(cfg *config.Switch) error {
	keys, send := KeysOf(cfg)
	for _, l := range r.links {
		if err := l.setKeys(keys, send); err != nil {
			return err
		}
	}
	return nil
}

// CloseSpares closes the sockets of ports that might be added. Run may still run.
func (r *Runtime) CloseSpares() error {
	return r.closeSockets(func(l *link) bool { return !r.Has(l.Index) })
}

// Close closes the sockets. Run must have returned.
func (r *Runtime) Close() error { return r.closeSockets(func(*link) bool { return true }) }

// closeSockets closes sockets that are open, all at once: each waits for an RCU grace period.
func (r *Runtime) closeSockets(which func(*link) bool) error {
	errs := make([]error, len(r.links))
	var closing sync.WaitGroup
	for i, l := range r.links {
		if !which(l) {
			continue
		}
		closing.Go(func() {
			if err := l.socket.Close(); !errors.Is(err, os.ErrClosed) {
				errs[i] = err
			}
		})
	}
	closing.Wait()
	return errors.Join(errs...)
}
