// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
)

// Envelope configures group registration from the wire.
type Envelope struct {
	// UDP port that envelopes are sent to.
	UDPPort uint16 `yaml:"udp_port" kind:"udp" range:"1 65535" default:"4797" restart:"the XDP programs are loaded with it"`

	// Accept envelopes from any host that can reach a port. For labs only. Without
	// it, keys are required.
	Insecure bool `yaml:"insecure" default:"false" restart:"authentication is not switched on or off while groups are registered"`

	// Keys that authenticate envelopes (HMAC-SHA-256). Several, to change them one
	// after the other, or for tenants: an answer is under the key of its request.
	// ids are 1 to 65535. Each has either a secret_file (relative
	// paths start from this file's folder), which holds hexadecimal digits and is
	// not readable by everyone, or a secret. 32 to 256 bytes. To make one:
	//     (umask 077; openssl rand -hex 32 > gleam.key)
	Keys []Key `yaml:"keys" reload:"applied"`

	// The longest lease granted to a group; its master renews it. 1s to 24h.
	LeaseMax time.Duration `yaml:"lease_max" range:"1s 24h" default:"10m" reload:"applied"`

	// The time to look up a member's location, and to wait until the member has confirmed
	// it, before a registration is rejected.
	// 10ms to 1m.
	LocateTimeout time.Duration `yaml:"locate_timeout" range:"10ms 1m" default:"2s" reload:"applied"`
}

// Key authenticates envelopes. Its ID travels with the envelope.
type Key struct {
	ID         uint16 `yaml:"id" range:"1 65535" unique:"key id" required:"1"`
	SecretFile string `yaml:"secret_file" kind:"file" required:"gleam.key"`
	Secret     Secret `yaml:"secret" example:"hex:<digits>"`
	// What may be registered under this key; 0 means no bound of its own.
	MaxGroups  int           `yaml:"max_groups" range:"0 1048576" default:"0"`     // groups at once
	MaxMembers int           `yaml:"max_members" range:"0 1073741824" default:"0"` // members of all its groups together
	LeaseMax   time.Duration `yaml:"lease_max" range:"0s 24h" default:"0s"`        // longest lease
	// The rights of this key. A group belongs to the key that it was
	// registered under; other keys cannot change it. master: register, renew, delete,
	// remove members. member: leave. receive-only: leave, and in groups that are registered
	// under the key (by a master, whose role it needs too) the master's own host is the
	// only sender.
	Roles []Role `yaml:"roles" choice:"master, member, receive-only" default:"[master, member]"`
	// The group addresses of this key, within group_prefixes; none: all of them.
	Prefixes []netip.Prefix `yaml:"prefixes" default:"[]"`
}

// Role is a kind of request that a key may be used for.
type Role string

// Roles of keys.
const (
	RoleMaster      Role = "master"       // register, renew, delete; remove members
	RoleMember      Role = "member"       // leave
	RoleReceiveOnly Role = "receive-only" // the rights of member; a group that is registered under the key has one sender, the master's host
)

func (e *Envelope) check(d *decoder, _ value, seen map[string]value) {
	if keys, ok := seen["keys"]; ok && e.Insecure && len(e.Keys) > 0 {
		d.fail(keys.line, keys.key, "", "keys have no effect with insecure: true; leave one of both out")
	}
	for i := range e.Keys {
		b := e.Keys[i].Secret.Bytes()
		if first := slices.IndexFunc(e.Keys[:i], func(k Key) bool { return len(b) > 0 && k.ID != e.Keys[i].ID && bytes.Equal(b, k.Secret.Bytes()) }); first >= 0 {
			d.fail(seen["keys"].line, fmt.Sprintf("envelope.keys[%d]", i), "", fmt.Sprintf(
				"is the secret of key %d: who has it has the groups and rights of both; draw another one: openssl rand -hex 32", e.Keys[first].ID))
		}
	}
}

func (k *Key) check(d *decoder, v value, seen map[string]value) {
	d.oneSecret(&k.SecretFile, &k.Secret, v, seen)
}

// oneSecret reports a key without an ID, or without exactly one secret, and reads the secret that is
// in a file.
func (d *decoder) oneSecret(file *string, dst *Secret, v value, seen map[string]value) {
	if at, ok := seen["secret_file"]; ok {
		*file = d.secretFile(dst, at)
	}
	if _, ok := seen["id"]; !ok {
		d.fail(v.line, v.key, "", "has no id")
	}
	_, inline := seen["secret"]
	if _, file := seen["secret_file"]; file == inline {
		d.fail(v.line, v.key, "", "want either secret or secret_file")
	}
}

// secret reads a secret that stands in the file. Its text never gets into an
// error, also when it is of the wrong type.
func (d *decoder) secret(dst *Secret, v value) {
	if d.inline.line == 0 {
		d.inline = v
	}
	n, ok := v.node.(*ast.StringNode)
	if !ok || !strings.HasPrefix(n.Value, hexPrefix) {
		d.fail(v.line, v.key, "", "want hex: and an even number of hexadecimal digits")
		return
	}
	s, err := parseSecret(strings.TrimPrefix(n.Value, hexPrefix))
	if err != nil {
		d.fail(v.line, v.key, "", err.Error())
		return
	}
	*dst = s
}

// secretFile reads a secret from the file of a path, which it returns.
func (d *decoder) secretFile(dst *Secret, v value) (full string) {
	path, ok := d.str(v)
	if !ok {
		return ""
	}
	full = d.path(path)
	s, err := readSecret(full, d.files.Read)
	var pathErr *fs.PathError
	switch {
	case errors.As(err, &pathErr) && confidential(v.key, text(v.node)):
		d.failAt(v, "cannot read the secret: %v", pathErr.Err)
	case errors.As(err, &pathErr): // the path is in the message already
		d.failAt(v, "cannot read the secret: %v", explainSecret(full, pathErr.Err))
	case err != nil:
		d.failAt(v, "%v", err)
	default:
		*dst = s
	}
	return full
}

// checkKeys reports prefixes of keys that the switch does not serve.
func (d *decoder) checkKeys(c *Config, line int) {
	for i := range c.Envelope.Keys {
		k := &c.Envelope.Keys[i]
		for _, p := range k.Prefixes {
			if !slices.ContainsFunc(c.GroupPrefixes, func(g netip.Prefix) bool { return g.Bits() <= p.Bits() && g.Contains(p.Addr()) }) && !d.refused("group_prefixes") {
				d.fail(line, fmt.Sprintf("envelope.keys[%d].prefixes", i), "", fmt.Sprintf("%s, of key %d, is not within a prefix of group_prefixes", p, k.ID))
			}
		}
	}
}
