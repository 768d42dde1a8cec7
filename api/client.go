// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gleam-rdma/gleam/config/identity"
)

// Bounds of a call whose context has no deadline. A registration waits until
// its members have been located, for which the configuration may allow a
// minute (envelope.locate_timeout).
const (
	callTimeout     = 10 * time.Second
	registerTimeout = 75 * time.Second
)

// Bounds of the answer that a client reads. 1024 groups of 1024 members fit into that of the
// local gleamd, and a group of 65,535 members into that of another switch.
const (
	maxAnswer       = 1 << 30
	maxRemoteAnswer = 64 << 20
)

// Client calls a gleamd. It is safe for concurrent use. Its errors are *Error where the
// daemon answered with one; any other names the socket, or the address.
type Client struct {
	where     string // "socket PATH", or "switch ADDRESS"
	maxAnswer int64
	http      http.Client
}

// Dial returns a client of the gleamd that listens on socket. It connects at
// the first call, and again whenever the daemon has been restarted.
func Dial(socket string) *Client {
	d := &net.Dialer{}
	return newClient("socket "+socket, maxAnswer, func(ctx context.Context, _, _ string) (net.Conn, error) {
		return d.DialContext(ctx, "unix", socket)
	})
}

// DialTLS returns a client of the gleamd at a TCP address, such as 10.0.0.1:4798 or
// leaf1.example:4798, which proves that it is there by its certificate.
func DialTLS(address string, files *identity.Files) (*Client, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("%q is not the address of a switch's API: want host and port, such as 10.0.0.1:4798", address)
	}
	c, err := files.Client(host)
	if err != nil {
		return nil, err
	}
	d := &tls.Dialer{Config: c}
	return newClient("switch "+address, maxRemoteAnswer, func(ctx context.Context, _, _ string) (net.Conn, error) {
		conn, err := d.DialContext(ctx, "tcp", address)
		if err != nil {
			return nil, err
		}
		return newAlertConn(conn), nil
	}), nil
}

// Unreachable returns a client of a gleamd that cannot be connected to: all calls end with
// err.
func Unreachable(address string, err error) *Client {
	return newClient("switch "+address, maxRemoteAnswer, func(context.Context, string, string) (net.Conn, error) { return nil, &unreachableError{err} })
}

// unreachableError is an error from before a connection.
type unreachableError struct{ error }

func newClient(where string, maxAnswer int64, dial func(context.Context, string, string) (net.Conn, error)) *Client {
	return &Client{where: where, maxAnswer: maxAnswer, http: http.Client{
		Transport:     &http.Transport{DialContext: dial, DisableCompression: true, IdleConnTimeout: 30 * time.Second, MaxResponseHeaderBytes: maxHeader},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // gleamd makes none
	}}
}

// Close drops idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Groups returns every registered group.
func (c *Client) Groups(ctx context.Context) (gs []Group, err error) {
	return gs, c.call(ctx, "GET", "/v1/groups", nil, &gs)
}

// SomeGroups returns the registered groups that q selects, in the order of their addresses. Who asks for many, asks for
// some with Limit, and for further ones After the last.
func (c *Client) SomeGroups(ctx context.Context, q *GroupQuery) (gs []Group, err error) {
	return gs, c.call(ctx, "GET", "/v1/groups?"+q.values().Encode(), nil, &gs)
}

// EndedGroups returns the last states of groups that are no more, oldest first.
func (c *Client) EndedGroups(ctx context.Context) (gs []Group, err error) {
	return gs, c.call(ctx, "GET", "/v1/ended", nil, &gs)
}

// Group returns one group. Of an unknown one the error is an *Error with
// ReasonUnknownGroup.
func (c *Client) Group(ctx context.Context, ip netip.Addr) (*Group, error) {
	g := new(Group)
	if err := c.call(ctx, "GET", groupPath(ip), nil, g); err != nil {
		return nil, err
	}
	return g, nil
}

// Register registers a group; with r.Replace it replaces a group of the same address.
func (c *Client) Register(ctx context.Context, r *Register) error {
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, registerTimeout)
		defer cancel()
	}
	return c.call(ctx, "POST", "/v1/groups", r, nil)
}

// Delete deletes a group.
func (c *Client) Delete(ctx context.Context, ip netip.Addr) error {
	return c.call(ctx, "DELETE", groupPath(ip), nil, nil)
}

// AddMember lets a member join a group that was registered by hand.
func (c *Client) AddMember(ctx context.Context, group netip.Addr, m *AddMember) error {
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, registerTimeout)
		defer cancel()
	}
	return c.call(ctx, "POST", groupPath(group)+"/members", m, nil)
}

// RemoveMember takes a member out of a group that was registered by hand.
func (c *Client) RemoveMember(ctx context.Context, group, member netip.Addr) error {
	return c.call(ctx, "DELETE", groupPath(group)+"/members/"+url.PathEscape(member.String()), nil, nil)
}

// Events returns the events after number since, and waits up to wait for one.
func (c *Client) Events(ctx context.Context, since uint64, wait time.Duration) (*Events, error) {
	return c.SelectEvents(ctx, since, wait, &EventFilter{})
}

// SelectEvents is Events for those that the filter selects.
func (c *Client) SelectEvents(ctx context.Context, since uint64, wait time.Duration, f *EventFilter) (*Events, error) {
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, wait+callTimeout)
		defer cancel()
	}
	es := new(Events)
	q := url.Values{"since": {strconv.FormatUint(since, 10)}, "wait": {wait.String()}}
	f.query(q)
	if err := c.call(ctx, "GET", "/v1/events?"+q.Encode(), nil, es); err != nil {
		return nil, err
	}
	return es, nil
}

// Ports returns the switch's ports.
func (c *Client) Ports(ctx context.Context) (ps []Port, err error) {
	return ps, c.call(ctx, "GET", "/v1/ports", nil, &ps)
}

// Stats returns the switch's totals.
func (c *Client) Stats(ctx context.Context) (*Stats, error) {
	s := new(Stats)
	if err := c.call(ctx, "GET", "/v1/stats", nil, s); err != nil {
		return nil, err
	}
	return s, nil
}

// Version returns the daemon's version.
func (c *Client) Version(ctx context.Context) (*Version, error) {
	v := new(Version)
	if err := c.call(ctx, "GET", "/v1/version", nil, v); err != nil {
		return nil, err
	}
	return v, nil
}

// Kernel returns what the kernel below the daemon has of what it uses.
func (c *Client) Kernel(ctx context.Context) (*Kernel, error) {
	k := new(Kernel)
	if err := c.call(ctx, "GET", "/v1/kernel", nil, k); err != nil {
		return nil, err
	}
	return k, nil
}

// WaitReady calls every 20 ms until the daemon answers or ctx ends; the error then is
// the last call's.
func (c *Client) WaitReady(ctx context.Context) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	var last error
	for {
		_, err := c.Version(ctx)
		if err == nil {
			return nil
		}
		if ctx.Err() == nil {
			last = err
		} else if last == nil {
			return err
		} else {
			return fmt.Errorf("%w (%w)", last, ctx.Err())
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

// groupPath is the path of the group ip; a zone's % has to be escaped.
func groupPath(ip netip.Addr) string { return "/v1/groups/" + url.PathEscape(ip.String()) }

// call sends body, if not nil, and decodes the answer into answer, if not nil.
func (c *Client) call(ctx context.Context, method, path string, body, answer any) error {
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, callTimeout)
		defer cancel()
	}
	var in io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return fmt.Errorf("encode request: %w", err)
		}
		in = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://gleamd"+path, in)
	if err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return c.explain(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, c.maxAnswer))
	if err != nil {
		return c.explain(err)
	}
	if resp.StatusCode/100 != 2 {
		return c.refusal(method, path, resp.Status, b)
	}
	if answer == nil {
		return nil
	}
	if err := json.Unmarshal(b, answer); err != nil {
		return fmt.Errorf("%s: answer to %s %s is not understood; are gleam and gleamd of the same version? %w", c.where, method, path, err)
	}
	return nil
}

// refusal returns the error that is the body of an answer with a status other than 2xx.
func (c *Client) refusal(method, path, status string, body []byte) error {
	e := new(Error)
	if json.Unmarshal(body, e) != nil || e.Message == "" {
		return fmt.Errorf("%s: %s %s was answered with %s and no reason: is that gleamd?", c.where, method, path, status)
	}
	return e
}

// explain names the obstacle between client and daemon, and the remedy.
func (c *Client) explain(err error) error {
	say := func(format string) error { return &callError{fmt.Sprintf(format, c.where), err} }
	var record tls.RecordHeaderError
	var unreachable *unreachableError
	var certificate *tls.CertificateVerificationError
	switch {
	case errors.As(err, &unreachable):
		return &callError{fmt.Sprintf("%s: %v", c.where, unreachable.error), unreachable.error}
	case errors.Is(err, fs.ErrNotExist):
		return say("%s does not exist: is gleamd running?")
	case errors.Is(err, unix.ECONNREFUSED):
		return say("nobody answers on %s: is gleamd running?")
	case errors.Is(err, fs.ErrPermission):
		return say("%s: permission denied: use sudo, or become a member of its group; api.mode and api.read_group in gleamd's configuration let more users in")
	case errors.Is(err, context.DeadlineExceeded):
		return say("%s: gleamd did not answer in time")
	case errors.As(err, &record):
		return say("%s does not speak TLS: is that the port of gleamd's api.listen?")
	case errors.As(err, &certificate):
		return fmt.Errorf("%s: its certificate is refused: %w", c.where, certificate.Err)
	}
	if alert, ok := remoteAlert(err); ok {
		return fmt.Errorf("%s refuses this client: %w: want a certificate for clients, which has not expired, by an authority in its api.ca", c.where, alert)
	}
	return fmt.Errorf("%s: %w", c.where, err)
}

// remoteAlert returns the alert of TLS by which the peer has ended a connection.
func remoteAlert(err error) (alert error, ok bool) {
	var e *net.OpError
	if errors.As(err, &e) && e.Op == "remote error" {
		return e.Err, true
	}
	return nil, false
}

// callError keeps an error for errors.Is without showing its text: net/http wraps a
// dial error in a made-up URL, which is of no help.
type callError struct {
	message string
	cause   error
}

func (e *callError) Error() string { return e.message }
func (e *callError) Unwrap() error { return e.cause }
