// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gleam-rdma/gleam/config/identity"
	"github.com/gleam-rdma/gleam/internal/connlimit"
)

// Bounds of connections whose client has not shown its certificate yet.
const (
	handshakeTimeout = 5 * time.Second
	maxHandshakes    = 64
)

// refusalInterval is the least time between two reports of connections that were refused for
// one cause.
const refusalInterval = time.Minute

// Causes for which a connection over TCP is refused.
const (
	RefusedPlaintext     = "no_tls"          // no TLS, as of a client of plain HTTP
	RefusedNoCertificate = "no_certificate"  // the client has none
	RefusedCertificate   = "bad_certificate" // expired, not yet valid, not for clients, or of another authority
	RefusedTimeout       = "timeout"         // the handshake took more than 5 s
	RefusedHandshake     = "bad_handshake"   // any other failure, such as a TLS before 1.3
	RefusedBusy          = "busy"            // too many at once: the oldest handshake of the address that has the most gives way
)

// Remote is the API over TCP: TLS 1.3, with certificates of both ends. Its clients may read;
// those that Set has named may change.
type Remote struct {
	// report tells the operator of refused connections: the cause, the last address and
	// error, and how many there were for the cause so far.
	report func(cause string, from net.Addr, err error, count uint64)
	shares [numRoles]userShares
	begun  *connlimit.Pool // connections whose client has not shown its certificate yet

	in chan net.Conn // connections whose clients have shown their certificates

	mu       sync.Mutex
	tls      *tls.Config
	access   Access
	open     map[net.Conn]struct{}
	accepted uint64
	refused  map[string]uint64
	reported map[string]time.Time
}

// NewRemote makes the API over TCP by files of certificates. Users who may change are those
// of operators.
func NewRemote(files *identity.Files, operators []string, report func(cause string, from net.Addr, err error, count uint64)) (*Remote, error) {
	r := &Remote{
		report: report, shares: newShares(), begun: connlimit.New(maxHandshakes), in: make(chan net.Conn),
		open: make(map[net.Conn]struct{}), refused: make(map[string]uint64), reported: make(map[string]time.Time),
	}
	return r, r.Set(files, operators)
}

// Set replaces certificates and operators. All connections are closed: a client that
// connects again is checked by the new ones. After an error nothing has changed.
func (r *Remote) Set(files *identity.Files, operators []string) error {
	c, err := files.Server()
	if err != nil {
		return err
	}
	r.mu.Lock()
	r.tls, r.access = c, Access{Operators: operators}
	closing := r.open
	r.open = make(map[net.Conn]struct{})
	r.mu.Unlock()
	for c := range closing {
		c.Close()
	}
	return nil
}

// ListenTCP listens on a TCP address, which need not be this machine's yet. key is that of
// the configuration which has the address.
func ListenTCP(ctx context.Context, key string, at netip.AddrPort) (net.Listener, error) {
	lc := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) (err error) {
		if e := c.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.SOL_IP, unix.IP_FREEBIND, 1) }); e != nil {
			return e
		}
		return err
	}}
	l, err := lc.Listen(ctx, "tcp", at.String())
	if err != nil {
		return nil, fmt.Errorf("listen on TCP address %s (%s): %w", at, key, err)
	}
	return l, nil
}

// Serve is api.Serve for a TCP listener.
func (r *Remote) Serve(ctx context.Context, ln net.Listener, b Backend, v Version) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var handshakes sync.WaitGroup
	defer handshakes.Wait()
	gate := &remoteGate{ctx: ctx, Listener: ln, in: r.in}
	handshakes.Go(func() {
		r.acceptAll(ctx, ln, &handshakes)
		cancel()
	})
	// Rights are those of the caller's role, which it has from its certificate.
	h := &handler{backend: b, versionInfo: v, end: ctx, access: &Access{}, shares: &r.shares}
	return h.serve(ctx, gate)
}

// remoteGate has the connections whose clients have shown their certificates.
type remoteGate struct {
	net.Listener
	ctx context.Context
	in  chan net.Conn
}

// Accept implements net.Listener.
func (g *remoteGate) Accept() (net.Conn, error) {
	select {
	case c := <-g.in:
		return c, nil
	case <-g.ctx.Done():
		return nil, net.ErrClosed
	}
}

// acceptRetry is the time between two attempts to accept when there are too many open files.
const acceptRetry = 100 * time.Millisecond

// acceptAll has each connection make its handshake, until ctx ends.
func (r *Remote) acceptAll(ctx context.Context, ln net.Listener, handshakes *sync.WaitGroup) {
	stop := context.AfterFunc(ctx, func() { ln.Close() })
	defer stop()
	for ctx.Err() == nil {
		c, err := ln.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			select {
			case <-ctx.Done():
			case <-time.After(acceptRetry):
			}
			continue
		}
		place := r.begun.Enter(c)
		handshakes.Go(func() {
			admitted := r.handshake(ctx, c, place)
			if admitted == nil {
				c.Close()
				return
			}
			select {
			case r.in <- admitted:
			case <-ctx.Done():
				admitted.Close()
			}
		})
	}
}

// handshake returns the connection to a client that has shown its certificate; nil for any
// other, and for one that was displaced meanwhile.
func (r *Remote) handshake(ctx context.Context, c net.Conn, place *connlimit.Place) net.Conn {
	r.mu.Lock()
	config, access := r.tls, r.access
	r.mu.Unlock()
	c.SetDeadline(time.Now().Add(handshakeTimeout))
	t := tls.Server(c, config)
	err := t.HandshakeContext(ctx)
	if !place.Leave() {
		r.refuse(RefusedBusy, c.RemoteAddr(), fmt.Errorf("more than %d handshakes at once", maxHandshakes))
		return nil
	}
	if err != nil {
		if ctx.Err() == nil {
			r.refuse(causeOf(err), c.RemoteAddr(), err)
		}
		return nil
	}
	c.SetDeadline(time.Time{})
	peer := holderOf(t.ConnectionState().VerifiedChains)
	peer.From = c.RemoteAddr().String()
	who := &connectedUser{Peer: peer, role: access.role(peer)}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.tls != config { // replaced meanwhile
		return nil
	}
	admitted, _ := r.shares[who.role].admit(t, who).(*gatedConn)
	if admitted == nil {
		r.refuseLocked(RefusedBusy, c.RemoteAddr(), fmt.Errorf("%s has too many connections", peer.user()))
		return nil
	}
	r.accepted++
	r.open[c] = struct{}{}
	leave := admitted.leave
	admitted.leave = func() {
		leave()
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.open, c)
	}
	return admitted
}

// holderOf returns the holder of a certificate that has been verified, and for how long it
// counts.
func holderOf(chains [][]*x509.Certificate) *Peer {
	leaf := chains[0][0]
	p := &Peer{Name: leaf.Subject.CommonName}
	if p.Name == "" {
		p.Name = "number " + leaf.SerialNumber.Text(16)
	}
	for _, chain := range chains {
		until := leaf.NotAfter
		for _, c := range chain {
			if c.NotAfter.Before(until) {
				until = c.NotAfter
			}
		}
		if until.After(p.Until) {
			p.Until = until
		}
	}
	return p
}

// expired refuses a request whose client's certificate has ended since it connected.
func expired(p *Peer) error {
	return &statusError{http.StatusForbidden, Error{Reason: ReasonForbidden, Message: fmt.Sprintf("%s has ended at %s", p.user(), p.Until.UTC().Format(time.RFC3339))}}
}

// causeOf is the cause for which a handshake has failed.
func causeOf(err error) string {
	var record tls.RecordHeaderError
	var verification *tls.CertificateVerificationError
	switch {
	case errors.As(err, &record):
		return RefusedPlaintext
	case errors.As(err, &verification):
		return RefusedCertificate
	case errors.Is(err, os.ErrDeadlineExceeded):
		return RefusedTimeout
	case strings.Contains(err.Error(), "didn't provide a certificate"): // crypto/tls has no type for it
		return RefusedNoCertificate
	}
	return RefusedHandshake
}

// refuse counts a connection that is refused, and reports it unless that was done lately.
func (r *Remote) refuse(cause string, from net.Addr, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refuseLocked(cause, from, err)
}

func (r *Remote) refuseLocked(cause string, from net.Addr, err error) {
	r.refused[cause]++
	if last, now := r.reported[cause], time.Now(); last.IsZero() || now.Sub(last) >= refusalInterval {
		r.reported[cause] = now
		r.report(cause, from, err, r.refused[cause])
	}
}

// RemoteStats are the connections of the API over TCP.
type RemoteStats struct {
	Accepted uint64            `json:"accepted"`
	Open     int               `json:"open"`
	Refused  map[string]uint64 `json:"refused"` // refused connections by cause
}

// Stats returns the counters.
func (r *Remote) Stats() *RemoteStats {
	r.mu.Lock()
	defer r.mu.Unlock()
	return &RemoteStats{Accepted: r.accepted, Open: len(r.open), Refused: maps.Clone(r.refused)}
}
