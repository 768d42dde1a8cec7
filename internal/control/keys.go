// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"fmt"

	"github.com/gleam-rdma/gleam/config"
	"github.com/gleam-rdma/gleam/envelope"
)

// roles are the envelope protocol's roles, by their names in the configuration.
var roles = map[config.Role]envelope.Roles{
	config.RoleMaster: envelope.RoleMaster, config.RoleMember: envelope.RoleMember, config.RoleReceiveOnly: envelope.RoleReceiveOnly,
}

// keysOf returns the configured keys and their rights. The first key is used for
// envelopes that the switch originates.
func keysOf(e *config.Envelope) (envelope.Auth, map[envelope.KeyID]envelope.Rights) {
	auth := envelope.Auth{Keys: make(envelope.Keys), Insecure: e.Insecure}
	rights := make(map[envelope.KeyID]envelope.Rights)
	for i, k := range e.Keys {
		id := envelope.KeyID(k.ID)
		auth.Keys[id] = k.Secret.Bytes()
		r := envelope.Rights{Prefixes: k.Prefixes, Quota: envelope.Quota{Groups: k.MaxGroups, Members: k.MaxMembers, Lease: k.LeaseMax}}
		for _, name := range k.Roles {
			r.Roles |= roles[name]
		}
		rights[id] = r
		if i == 0 {
			auth.Send = id
		}
	}
	return auth, rights
}

// setKeys replaces the keys of envelopes. Groups continue; those under a key that is not
// configured any more end with their leases, which is logged.
func (e *Engine) setKeys(cfg *config.Envelope) error {
	auth, rights := keysOf(cfg)
	var orphans map[envelope.KeyID]int
	var err error
	c := e.control
	if !c.do(func() {
		if orphans, err = c.registrar.SetKeys(c.now(), auth, rights); err == nil {
			c.connections.setKeys(auth.Keys)
		}
	}) {
		return errStopped
	}
	if err != nil {
		return fmt.Errorf("reload the keys: %w", err)
	}
	for id, n := range orphans {
		e.notify(true, "a key is not configured any more: its groups end with their leases", "key", id, "groups", n,
			"remedy", "configure it beside the new key until they have ended, or end them with gleam group delete")
	}
	return nil
}
