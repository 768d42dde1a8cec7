// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"
)

// Reasons of an Error that callers branch on. A rejected registration has one
// of the envelope protocol's instead.
const (
	ReasonUnknownGroup  = "unknown_group"  // no group has this address: status 404
	ReasonUnknownMember = "unknown_member" // the group has no member of this address: status 404
	ReasonBadRequest    = "bad_request"    // the request makes no sense: status 4xx
	ReasonNotStored     = "not_stored"     // the change is made, and a restart would undo it: the state file cannot be written
	ReasonGroupExists   = "group_exists"   // another group of this address lives, and Register.Replace is not set
)

// Limits of one connection. All are generous for a local peer; they are there so that a
// stuck peer cannot hold the daemon's memory for ever.
const (
	readTimeout     = 10 * time.Second
	writeTimeout    = registerTimeout + 15*time.Second // the time from the request's headers to the answer's end
	idleTimeout     = 2 * time.Minute
	shutdownTimeout = 2 * time.Second
	workTimeout     = 5 * time.Second // waiting for a share of the server's memory
	maxHeader       = 16 << 10
)

// Serve answers requests on ln from b until ctx ends, then lets those under way finish
// for up to 2 s and returns nil. It closes ln, which is a Unix socket: the kernel names
// the caller, and access has its rights. v is the answer to GET /v1/version.
func Serve(ctx context.Context, ln net.Listener, b Backend, v Version, access Access) error {
	shares := newShares()
	h := &handler{backend: b, versionInfo: v, end: ctx, access: &access, shares: &shares}
	return h.serve(ctx, &connectionGate{Listener: ln, access: access, limits: shares})
}

// serve answers the requests of the connections that gate admits, until ctx ends.
func (h *handler) serve(ctx context.Context, gate net.Listener) error {
	srv := &http.Server{
		Handler:           h,
		ConnContext:       withCaller,
		ReadHeaderTimeout: readTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
	}
	done := make(chan error, 1)
	go func() { done <- srv.Serve(gate) }()
	select {
	case err := <-done:
		srv.Close()
		return fmt.Errorf("API on %s: %w", gate.Addr(), err)
	case <-ctx.Done():
	}
	end, cancel := context.WithTimeout(context.Background(), shutdownTimeout)
	defer cancel()
	if srv.Shutdown(end) != nil {
		srv.Close()
	}
	<-done
	return nil
}

// handler answers requests from a Backend.
type handler struct {
	backend     Backend
	versionInfo Version
	end         context.Context // ends when the server does; nil: never

	access *Access // nil: no restrictions
	shares *[numRoles]userShares

	refusals rateLimit // the rate at which Audit gets refusals
	explains [numRoles]explainLimit
}

// ending is a context that ends when the server does.
func (h *handler) ending() context.Context {
	if h.end == nil {
		return context.Background()
	}
	return h.end
}

// Handler returns the handler of Serve. openapi.json describes its paths, which are those
// of the table routes.
//
// Every answer that is not 2xx has an Error as its body: 400 for a request that makes
// no sense, 403 for a right that this user lacks, 404 for a group, port or path that is
// not there, 405, 409 for a refusal of the backend, 413 for a body over 1 MiB, 503 for
// more at once than a user may have, 500 for anything else. The returned handler has no
// users and no restrictions.
func Handler(b Backend, v Version) http.Handler { return &handler{backend: b, versionInfo: v} }

// statusError is an Error with a status that is not the Error's usual one.
type statusError struct {
	status int
	body   Error
}

func (e *statusError) Error() string { return e.body.Message }

func refuse(status int, format string, args ...any) error {
	return &statusError{status, Error{Message: fmt.Sprintf(format, args...), Reason: ReasonBadRequest}}
}

// ServeHTTP implements http.Handler.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var answer any
	found, arg, err := find(r.Method, r.URL.Path)
	work, refused := h.enter(r)
	defer work.done()
	switch {
	case refused != nil:
		err = refused
		h.auditRefused(r, err)
		w.Header().Set("Connection", "close") // a body is not read
	case err != nil:
		if allow := methodsOf(r.URL.Path); allow != "" {
			w.Header().Set("Allow", allow)
		}
	default:
		r = r.WithContext(context.WithValue(r.Context(), workKey{}, work))
		if r.Method == http.MethodGet {
			answer, err = found.do(h, r, arg)
		} else {
			answer, err = h.audited(r, func(r *http.Request) (any, error) { return found.do(h, r, arg) })
		}
	}
	if s, ok := answer.(stream); ok {
		if err = s.serve(w, r, h.ending()); err == nil {
			return
		}
	}
	switch {
	case err != nil:
		status, e := errorAnswer(err)
		write(w, status, e)
	case answer == nil:
		w.WriteHeader(http.StatusNoContent)
	case found == &metricsRoute:
		answer.(http.Handler).ServeHTTP(w, r)
	case found.lines && wantsLines(r):
		writeLines(w, answer)
	default:
		write(w, http.StatusOK, answer)
	}
}

// errorAnswer turns an endpoint's error into a status and a body.
func errorAnswer(err error) (int, *Error) {
	var se *statusError
	if errors.As(err, &se) {
		return se.status, &se.body
	}
	var e *Error
	if errors.As(err, &e) && e != nil {
		switch e.Reason {
		case ReasonUnknownGroup, ReasonUnknownMember, ReasonUnknownPort:
			return http.StatusNotFound, e
		}
		return http.StatusConflict, e
	}
	return http.StatusInternalServerError, &Error{Message: err.Error()}
}

// write sends v as JSON. It is encoded first, so that a value that cannot be encoded
// becomes a complete error and not half an answer.
func write(w http.ResponseWriter, status int, v any) {
	var buf bytes.Buffer
	if err := json.NewEncoder(&buf).Encode(v); err != nil {
		status = http.StatusInternalServerError
		buf.Reset()
		json.NewEncoder(&buf).Encode(&Error{Message: "answer cannot be encoded: " + err.Error()})
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(buf.Bytes()) // an error means that the peer has gone
}

func (h *handler) groups(r *http.Request, _ string) (any, error) {
	q, err := parseGroupQuery(r)
	if err != nil {
		return nil, err
	}
	gs, err := h.backend.Groups(&q)
	if err != nil {
		return nil, err
	}
	return notNil(gs), nil
}

func (h *handler) gone(*http.Request, string) (any, error) {
	gs, err := h.backend.EndedGroups()
	if err != nil {
		return nil, err
	}
	return notNil(gs), nil
}

func (h *handler) group(_ *http.Request, arg string) (any, error) {
	ip, err := parseIP(arg)
	if err != nil {
		return nil, err
	}
	g, err := h.backend.Group(ip)
	if err != nil {
		return nil, err
	}
	if g == nil {
		return nil, &Error{Message: fmt.Sprintf("no group %s is registered", ip), Reason: ReasonUnknownGroup}
	}
	return g, nil
}

func (h *handler) register(r *http.Request, _ string) (any, error) {
	reg, err := DecodeRegister(r.Body)
	if errors.Is(err, errTooLarge) {
		return nil, refuse(http.StatusRequestEntityTooLarge, "%s", err)
	}
	if err != nil {
		return nil, refuse(http.StatusBadRequest, "%s", err)
	}
	describe(r, reg.Group, "%s", reg.summary())
	workOf(r).pause() // for the members' locations, which may take a minute
	return nil, h.backend.Register(reg)
}

func (h *handler) create(r *http.Request, _ string) (any, error) {
	g, err := DecodeCreateGroup(r.Body)
	if errors.Is(err, errTooLarge) {
		return nil, refuse(http.StatusRequestEntityTooLarge, "%s", err)
	}
	if err != nil {
		return nil, refuse(http.StatusBadRequest, "%s", err)
	}
	describe(r, g.Group, "%s", g.summary())
	return nil, h.backend.CreateGroup(g)
}

func (h *handler) remove(r *http.Request, arg string) (any, error) {
	ip, err := parseIP(arg)
	if err != nil {
		return nil, err
	}
	describe(r, ip, "delete group")
	return nil, h.backend.Delete(ip)
}

func (h *handler) addMember(r *http.Request, arg string) (any, error) {
	group, err := parseIP(arg)
	if err != nil {
		return nil, err
	}
	m, err := DecodeAddMember(r.Body)
	if errors.Is(err, errTooLarge) {
		return nil, refuse(http.StatusRequestEntityTooLarge, "%s", err)
	}
	if err == nil {
		err = m.Validate(group)
	}
	if err != nil {
		return nil, refuse(http.StatusBadRequest, "%s", err)
	}
	describe(r, group, "add member %s", m.IP)
	workOf(r).pause()
	return nil, h.backend.AddMember(group, m)
}

// removeMember's arg is {group}/members/{member}.
func (h *handler) removeMember(r *http.Request, arg string) (any, error) {
	g, m, _ := strings.Cut(arg, "/members/")
	group, err := parseIP(g)
	if err != nil {
		return nil, err
	}
	member, err := netip.ParseAddr(m)
	if err != nil {
		return nil, refuse(http.StatusBadRequest, "member address %q: %s", m, err)
	}
	describe(r, group, "remove member %s", member.Unmap())
	return nil, h.backend.RemoveMember(group, member.Unmap())
}

func (h *handler) ports(*http.Request, string) (any, error) {
	ps, err := h.backend.Ports()
	if err != nil {
		return nil, err
	}
	return notNil(ps), nil
}

func (h *handler) stats(*http.Request, string) (any, error) {
	s, err := h.backend.Stats()
	if err != nil {
		return nil, err
	}
	if s == nil {
		return nil, errors.New("no statistics yet")
	}
	return s, nil
}

func (h *handler) version(*http.Request, string) (any, error) { return h.versionInfo, nil }

func parseIP(s string) (netip.Addr, error) {
	ip, err := netip.ParseAddr(s)
	if err != nil {
		return ip, refuse(http.StatusBadRequest, "group address %q: %s", s, err)
	}
	return ip.Unmap(), nil
}

// notNil makes an empty list [] rather than null in JSON.
func notNil[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}
