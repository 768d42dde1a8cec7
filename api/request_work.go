// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"net/http"
	"time"
)

// requestWork is a request's slot among those that hold a body or an answer in memory.
// The zero value is of a caller whose slots are not counted.
type requestWork struct {
	shares  *userShares
	user    string
	holds   bool // a slot
	polling bool
}

// workKey is the key of the work in a request's context.
type workKey struct{}

func workOf(r *http.Request) *requestWork {
	w, _ := r.Context().Value(workKey{}).(*requestWork)
	if w == nil {
		return new(requestWork)
	}
	return w
}

// enter takes a slot for a request, or returns an error.
func (h *handler) enter(r *http.Request) (*requestWork, error) {
	who := callerOf(r)
	if h.access == nil {
		return new(requestWork), nil
	}
	if who == nil {
		return new(requestWork), refuse(http.StatusForbidden, "the kernel does not say who calls")
	}
	if who.refused != nil {
		return new(requestWork), who.refused
	}
	if err := h.access.refusal(who.Peer, who.role, r.Method); err != nil {
		return new(requestWork), err
	}
	if !who.Until.IsZero() && time.Now().After(who.Until) {
		return new(requestWork), expired(who.Peer)
	}
	w := &requestWork{shares: &h.shares[who.role], user: who.user()}
	return w, w.resume(r.Context())
}

// pause frees the slot for the time of a wait.
func (w *requestWork) pause() {
	if w.holds {
		w.holds = false
		w.shares.work.give(w.user)
	}
}

// resume waits for a slot and takes it.
func (w *requestWork) resume(ctx context.Context) error {
	if w.shares == nil || w.holds {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, workTimeout)
	defer cancel()
	if w.holds = w.shares.work.wait(ctx, w.user); !w.holds {
		return busy("requests", w.shares.work, w.user)
	}
	return nil
}

// poll exchanges the slot for one of those that wait for events.
func (w *requestWork) poll() error {
	w.pause()
	if w.shares == nil || w.polling {
		return nil
	}
	if w.polling = w.shares.polls.take(w.user); !w.polling {
		return busy("polls for events", w.shares.polls, w.user)
	}
	return nil
}

// done gives everything back.
func (w *requestWork) done() {
	w.pause()
	if w.polling {
		w.polling = false
		w.shares.polls.give(w.user)
	}
}
