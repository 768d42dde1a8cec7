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
	"strconv"
	"strings"
	"time"
)

// Reasons of an Error that callers branch on. A rejected registration has one
// of the envelope protocol's instead.
const (
	ReasonUnknownGroup  = "unknown_group"  // no group has this address: status 404
	ReasonUnknownMember = "unknown_member" // the group has no member of this address: status 404
	ReasonBadRequest    = "bad_request"    // the request makes no sense: status 4xx
	ReasonGroupExists   = "group_exists"   // another group of this address lives, and Register.Replace is not set
)

// Limits of one connection. All are generous for a local peer; they are there so that a
// stuck peer cannot hold the daemon's memory for ever.
const (
	readTimeout     = 10 * time.Second
	writeTimeout    = registerTimeout + 15*time.Second // from the request's headers to the answer's end
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

	refusals rateLimit // that Audit gets
}

// ending is a context that ends when the server does.
func (h *handler) ending() context.Context {
	if h.end == nil {
		return context.Background()
	}
	return h.end
}

// Handler returns the handler of Serve:
//
//	GET    /v1/groups        []Group
//	GET    /v1/ended         []Group that are no more, oldest first
//	POST   /v1/groups        Register, answered with 204; PUT does the same
//	GET    /v1/groups/{ip}   Group
//	DELETE /v1/groups/{ip}   answered with 204
//	POST   /v1/created       CreateGroup, answered with 204
//	POST   /v1/groups/{ip}/members        AddMember, answered with 204
//	DELETE /v1/groups/{ip}/members/{ip}   answered with 204
//	PATCH  /v1/groups/{ip}/members/{ip}   MoveMember, answered with 204
//	GET    /v1/events?since=N&wait=D      Events after N, waiting up to D, at most a minute
//	GET    /v1/ports         []Port
//	PATCH  /v1/ports/{name}  SetPort, answered with 204
//	GET    /v1/topology      Topology
//	GET    /v1/stats         Stats
//	POST   /v1/reload        Reloaded
//	GET    /v1/version       Version
//
// Every answer that is not 2xx has an Error as its body: 400 for a request that makes
// no sense, 403 for a right that this user lacks, 404 for a group, port or path that is
// not there, 405, 409 for a refusal of the backend, 413 for a body over 1 MiB, 503 for
// more at once than a user may have, 500 for anything else. The returned handler has no
// users and no restrictions.
func Handler(b Backend, v Version) http.Handler { return &handler{backend: b, versionInfo: v} }

// endpoint answers one method of one path; arg is the path's {ip} or {name}.
type endpoint func(r *http.Request, arg string) (any, error)

// route finds the endpoints of path by method; nil if there is no such path.
// A table of our own rather than http.ServeMux, whose own answers to unknown
// paths and methods are plain text.
func (h *handler) route(path string) (methods map[string]endpoint, arg string) {
	switch path {
	case "/v1/groups":
		return map[string]endpoint{"GET": h.groups, "POST": h.register, "PUT": h.register}, ""
	case "/v1/created":
		return map[string]endpoint{"POST": h.create}, ""
	case "/v1/ended":
		return map[string]endpoint{"GET": h.gone}, ""
	case "/v1/ports":
		return map[string]endpoint{"GET": h.ports}, ""
	case "/v1/topology":
		return map[string]endpoint{"GET": h.topology}, ""
	case "/v1/stats":
		return map[string]endpoint{"GET": h.stats}, ""
	case "/v1/reload":
		return map[string]endpoint{"POST": h.reload}, ""
	case "/v1/version":
		return map[string]endpoint{"GET": h.version}, ""
	case "/v1/events":
		return map[string]endpoint{"GET": h.events}, ""
	}
	if arg, ok := strings.CutPrefix(path, "/v1/ports/"); ok && !strings.Contains(arg, "/") {
		return map[string]endpoint{"PATCH": h.setPort}, arg
	}
	if arg, ok := strings.CutPrefix(path, "/v1/groups/"); ok && !strings.Contains(arg, "/") {
		return map[string]endpoint{"GET": h.group, "DELETE": h.remove}, arg
	}
	if arg, ok := strings.CutPrefix(path, "/v1/groups/"); ok {
		group, rest, _ := strings.Cut(arg, "/")
		if rest == "members" {
			return map[string]endpoint{"POST": h.addMember}, group
		}
		if m, ok := strings.CutPrefix(rest, "members/"); ok && !strings.Contains(m, "/") {
			return map[string]endpoint{"DELETE": h.removeMember, "PATCH": h.moveMember}, arg
		}
	}
	return nil, ""
}

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
	methods, arg := h.route(r.URL.Path)
	var answer any
	work, err := h.enter(r)
	defer work.done()
	if err != nil {
		h.auditRefused(r, err)
		w.Header().Set("Connection", "close") // a body is not read
	} else if methods == nil {
		err = refuse(http.StatusNotFound, "no such path: %s", r.URL.Path)
	} else if ep := methods[r.Method]; ep != nil {
		r = r.WithContext(context.WithValue(r.Context(), workKey{}, work))
		if r.Method == http.MethodGet {
			answer, err = ep(r, arg)
		} else {
			answer, err = h.audited(r, func(r *http.Request) (any, error) { return ep(r, arg) })
		}
	} else {
		var allow []string
		for _, m := range []string{"GET", "POST", "PUT", "PATCH", "DELETE"} {
			if methods[m] != nil {
				allow = append(allow, m)
			}
		}
		w.Header().Set("Allow", strings.Join(allow, ", "))
		err = refuse(http.StatusMethodNotAllowed, "%s is not possible on %s; %s is", r.Method, r.URL.Path, strings.Join(allow, ", "))
	}
	if err != nil {
		status, e := errorAnswer(err)
		write(w, status, e)
		return
	}
	if answer == nil {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	write(w, http.StatusOK, answer)
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

func (h *handler) groups(*http.Request, string) (any, error) {
	gs, err := h.backend.Groups()
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

// maxPollTime bounds the time of a request for events.
const maxPollTime = time.Minute

func (h *handler) events(r *http.Request, _ string) (any, error) {
	q := r.URL.Query()
	var since uint64
	var wait time.Duration
	var err error
	for key := range q {
		switch v := q.Get(key); key {
		case "since":
			if since, err = strconv.ParseUint(v, 10, 64); err != nil {
				return nil, refuse(http.StatusBadRequest, "since=%q: not the number of an event", v)
			}
		case "wait":
			if wait, err = time.ParseDuration(v); err != nil || wait < 0 {
				return nil, refuse(http.StatusBadRequest, "wait=%q: not a duration such as 30s", v)
			}
		default:
			return nil, refuse(http.StatusBadRequest, "%q: no such parameter; there are since and wait", key)
		}
	}
	ctx, cancel := context.WithTimeout(r.Context(), min(wait, maxPollTime))
	defer cancel()
	stop := context.AfterFunc(h.ending(), cancel) // so that the daemon can stop
	defer stop()
	work := workOf(r)
	if err := work.poll(); err != nil {
		return nil, err
	}
	es, err := h.backend.Events(ctx, since)
	if err != nil {
		return nil, err
	}
	return es, work.resume(r.Context())
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
