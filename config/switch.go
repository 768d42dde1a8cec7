// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Switch is how this switch is known to other gleamd switches, and how it recognises them.
// Without keys it neither sends hellos nor hears any: it is the only switch of its groups.
type Switch struct {
	ID SwitchID `yaml:"id"` // 0: made from the machine's ID
	// Keys are for switches alone. The first one authenticates what this switch sends; all
	// are accepted.
	Keys          []SwitchKey   `yaml:"keys"`
	Ports         []string      `yaml:"ports"`          // on which hellos are sent and heard; nil: all
	HelloInterval time.Duration `yaml:"hello_interval"` // between two hellos
	// GracePeriod is how long a neighbour may be away before the groups over it end.
	GracePeriod time.Duration `yaml:"grace_period"`
}

// SwitchID is the identity of a switch, the same for good.
type SwitchID uint64

// SwitchKey authenticates one switch to another.
type SwitchKey struct {
	ID         uint16 `yaml:"id"`          // not 0
	SecretFile string `yaml:"secret_file"` // where Secret was read from; "" if it stood in the file
	Secret     Secret `yaml:"secret"`
}

// Bounds of the interval of hellos, those of the protocol.
const (
	minHelloInterval = 10 * time.Millisecond
	maxHelloInterval = 10 * time.Second
)

// Bounds of the grace period: a switch that restarts is away for longer than the shorter one,
// and hosts wait for as long.
const (
	minGracePeriod = time.Second
	maxGracePeriod = 5 * time.Minute
)

func (d *decoder) switches(s *Switch, v value) {
	d.mapping(v,
		field{"id", d.switchID(&s.ID)},
		field{"keys", func(v value) { d.switchKeys(&s.Keys, v) }},
		field{"ports", func(v value) { d.switchPorts(&s.Ports, v) }},
		field{"hello_interval", func(v value) {
			d.duration(&s.HelloInterval, minHelloInterval, maxHelloInterval)(v)
			if s.HelloInterval%time.Millisecond != 0 {
				d.failAt(v, "want whole milliseconds")
			}
		}},
		field{"grace_period", d.duration(&s.GracePeriod, minGracePeriod, maxGracePeriod)},
	)
}

// switchID reads auto, or hexadecimal digits, with or without quotes.
func (d *decoder) switchID(dst *SwitchID) func(value) {
	return func(v value) {
		t := text(v.node)
		if t == "auto" {
			*dst = 0
			return
		}
		const digits = 16
		b, err := hex.DecodeString(t)
		var id SwitchID
		for _, x := range b {
			id = id<<8 | SwitchID(x)
		}
		if err != nil || len(t) != digits || id == 0 {
			d.failAt(v, "want auto, or %d hexadecimal digits in quotes, not all 0", digits)
			return
		}
		*dst = id
	}
}

// switchPorts reads "all" or a list of names of ports.
func (d *decoder) switchPorts(dst *[]string, v value) {
	if text(v.node) == "all" {
		*dst = nil
		return
	}
	names := []string{}
	d.list(v, func(v value) {
		if name, ok := d.str(v); ok && slices.Contains(names, name) {
			d.failAt(v, "port is there already")
		} else if ok {
			names = append(names, name)
		}
	})
	*dst = names
}

func (d *decoder) switchKeys(dst *[]SwitchKey, list value) {
	where := make(map[uint16]int)
	read := func(k *SwitchKey, v value) map[string]value {
		return d.mapping(v,
			field{"id", d.keyID(&k.ID, where)},
			field{"secret_file", func(v value) { d.secretFile(&k.SecretFile, &k.Secret, v) }},
			field{"secret", func(v value) { d.secret(&k.Secret, v) }})
	}
	read(&SwitchKey{}, value{key: list.key + "[]"}) // the names of the keys, also where the list is empty
	d.list(list, func(v value) {
		var k SwitchKey
		if seen := read(&k, v); seen != nil {
			d.oneSecret(v, seen)
			*dst = append(*dst, k)
		}
	})
}

// checkSwitch reports contradictions of the section with others.
func (d *decoder) checkSwitch(c *Config, line int) {
	for _, name := range c.Switch.Ports {
		if !slices.ContainsFunc(c.Ports, func(p Port) bool { return p.Name == name }) && !d.refused("ports") {
			d.fail(line, "switch.ports", name, "is none of ports")
		}
	}
	for i := range c.Switch.Keys {
		k := &c.Switch.Keys[i]
		for _, e := range c.Envelope.Keys {
			if b := k.Secret.Bytes(); len(b) > 0 && bytes.Equal(b, e.Secret.Bytes()) {
				d.fail(line, fmt.Sprintf("switch.keys[%d]", i), "", fmt.Sprintf("is the secret of key %d of envelope.keys: hosts that have it could pass for switches; draw another one: openssl rand -hex 32", e.ID))
			}
		}
	}
}

// confidentialLists are the keys below which any value may be, or hold, a secret.
var confidentialLists = []string{"envelope.keys", "switch.keys"}

// confidential reports whether text may be, or hold, a secret: one at its own key, or
// one at a wrong key.
func confidential(key, text string) bool {
	named := strings.HasSuffix(key, ".id") || strings.HasSuffix(key, ".secret_file")
	return strings.Contains(text, hexPrefix) || !named && slices.ContainsFunc(confidentialLists, func(l string) bool { return strings.HasPrefix(key, l) })
}
