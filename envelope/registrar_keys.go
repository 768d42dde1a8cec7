// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package envelope

import (
	"fmt"
	"time"
)

// SetKeys replaces the keys and their rights. Groups stay: under a key that remains
// configured they go on. Under a removed key no message is accepted, so its groups end
// with their leases, and their members are told under the old secret. SetKeys returns the
// number of groups of each such key. After an error nothing has changed.
func (r *Registrar) SetKeys(now time.Duration, auth Auth, rights map[KeyID]Rights) (orphans map[KeyID]int, err error) {
	r.setTime(now)
	if auth.Insecure != r.auth.Insecure {
		return nil, fmt.Errorf("set keys: whether envelopes without a MAC are taken cannot change")
	}
	if err := auth.check(); err != nil {
		return nil, fmt.Errorf("set keys: %w", err)
	}
	for id, secret := range r.auth.Keys {
		if _, ok := auth.Keys[id]; !ok {
			if r.retiredAuth == nil {
				r.retiredAuth = Keys{}
			}
			r.retiredAuth[id] = secret
		}
	}
	r.auth, r.cfg.Auth, r.cfg.Rights = auth, auth, rights
	for k := range r.pending {
		if _, ok := auth.Keys[k.key]; !ok && k.key != 0 {
			r.forgetAssembly(k)
		}
	}
	orphans = map[KeyID]int{}
	for _, g := range r.groups {
		if _, ok := auth.Keys[g.key]; !ok && !g.local() && g.key != 0 {
			orphans[g.key]++
		}
	}
	return orphans, nil
}
