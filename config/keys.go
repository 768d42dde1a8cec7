// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
)

func (d *decoder) keys(dst *[]Key, list value) {
	where := make(map[uint16]int)
	d.list(list, func(v value) {
		var k Key
		seen := d.mapping(v,
			field{"id", d.keyID(&k.ID, where)},
			field{"secret_file", func(v value) { d.secretFile(&k.SecretFile, &k.Secret, v) }},
			field{"secret", func(v value) { d.secret(&k.Secret, v) }},
			field{"max_groups", d.int(&k.MaxGroups, 0, 1<<20)},
			field{"max_members", d.int(&k.MaxMembers, 0, 1<<30)},
			field{"lease_max", d.duration(&k.LeaseMax, 0, 24*time.Hour)},
			field{"roles", func(v value) { d.roles(&k.Roles, v) }},
			field{"prefixes", func(v value) { d.prefixes(&k.Prefixes, v) }},
		)
		if seen == nil {
			return
		}
		d.oneSecret(v, seen)
		if len(k.Roles) == 0 {
			k.Roles = []Role{RoleMaster, RoleMember}
		}
		*dst = append(*dst, k)
	})
}

// keyID reads the ID of a key. where has the lines of those before it.
func (d *decoder) keyID(dst *uint16, where map[uint16]int) func(value) {
	return func(v value) {
		i, ok := d.integer(v, 1, 1<<16-1)
		switch {
		case ok && where[uint16(i)] > 0:
			d.failAt(v, "key id is there already, in line %d", where[uint16(i)])
		case ok:
			*dst = uint16(i)
			where[*dst] = v.line
		}
	}
}

// oneSecret reports a key without an ID, or without exactly one secret.
func (d *decoder) oneSecret(v value, seen map[string]value) {
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

func (d *decoder) secretFile(file *string, dst *Secret, v value) {
	path, ok := d.str(v)
	if !ok {
		return
	}
	full := path
	if !filepath.IsAbs(full) {
		full = filepath.Join(filepath.Dir(d.file), full)
	}
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
		*file, *dst = full, s
	}
}

// roles reads the roles of a key.
func (d *decoder) roles(dst *[]Role, list value) {
	d.list(list, func(v value) {
		var r Role
		choice(d, &r, RoleMaster, RoleMember, RoleReceiveOnly)(v)
		switch {
		case r == "": // reported
		case slices.Contains(*dst, r):
			d.fail(v.line, v.key, "", fmt.Sprintf("%s is there already", r))
		default:
			*dst = append(*dst, r)
		}
	})
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
