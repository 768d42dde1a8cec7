// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"os/user"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Change is a change that a user requested by the API, with its outcome.
type Change struct {
	By     string     // "uid 1000 (alice), pid 4711"
	Action string     // "register group", with its important parameters
	Group  netip.Addr // the group concerned; zero: none
	Err    error      // nil: it was done
}

// changeKey is the key of the Change in a request's context.
type changeKey struct{}

// describe sets the Change of a request.
func describe(r *http.Request, group netip.Addr, format string, args ...any) {
	if c, _ := r.Context().Value(changeKey{}).(*Change); c != nil {
		c.Group, c.Action = group, fmt.Sprintf(format, args...)
	}
}

func (r *Register) summary() string {
	members := make([]string, 0, len(r.Members))
	for i := range r.Members {
		if i == 8 {
			members = append(members, fmt.Sprintf("and %d more", len(r.Members)-i))
			break
		}
		members = append(members, r.Members[i].IP.String())
	}
	s := fmt.Sprintf("register group: %s, members %s", r.Policy, strings.Join(members, " "))
	if r.Replace {
		s += ", in place of another"
	}
	return s
}

// audited runs a request for a change and reports it to the backend. Requests that are
// refused for their user are reported as far as the limit of refusals goes, so that no
// user fills the log.
func (h *handler) audited(r *http.Request, do func(*http.Request) (any, error)) (any, error) {
	c := &Change{By: h.name(r), Action: fmt.Sprintf("%s %.100q", r.Method, r.URL.Path)}
	answer, err := do(r.WithContext(context.WithValue(r.Context(), changeKey{}, c)))
	c.Err = err
	h.backend.Audit(c)
	return answer, err
}

// auditRefused reports a change that the caller has no right to.
func (h *handler) auditRefused(r *http.Request, err error) {
	var e *statusError
	if r.Method != http.MethodGet && errors.As(err, &e) && e.body.Reason == ReasonForbidden && h.refusals.allow(time.Now()) {
		h.backend.Audit(&Change{By: h.name(r), Action: fmt.Sprintf("%s %.100q", r.Method, r.URL.Path), Err: errors.New("refused: this user may not change")})
	}
}

// name names the caller.
func (h *handler) name(r *http.Request) string {
	who := callerOf(r)
	if who == nil {
		return "somebody"
	}
	if who.Name != "" {
		return fmt.Sprintf("%s at %s", who.user(), who.From)
	}
	uid := strconv.Itoa(int(who.UID))
	if u, err := user.LookupId(uid); err == nil {
		uid += " (" + u.Username + ")"
	}
	return fmt.Sprintf("uid %s, pid %d", uid, who.PID)
}

// rateLimit lets one of something pass each second.
type rateLimit struct {
	mu   sync.Mutex
	last time.Time
}

func (p *rateLimit) allow(now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.last.IsZero() && now.Sub(p.last) < time.Second {
		return false
	}
	p.last = now
	return true
}
