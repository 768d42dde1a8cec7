// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Switch is how this switch is known to other gleamd switches, and how it recognises them.
// Without keys it neither sends hellos nor hears any: it is the only switch of its groups.
type Switch struct {
	// The name of this switch for the others, the same for good: 16 hexadecimal digits in
	// quotes, different for each switch. auto: made from /etc/machine-id, so gleamds on one
	// machine, and machines cloned from one image, need an id each.
	ID SwitchID `yaml:"id" default:"auto" restart:"neighbours know this switch by it"`
	// The keys of switches, as envelope.keys: id, and secret_file or secret. They are for
	// switches alone: who has one is a switch to its neighbours. The first one
	// authenticates what this switch sends, all are accepted. To replace a key: add the
	// new one at the end everywhere, move it to the front everywhere, remove the former.
	//     - id: 1
	//       secret_file: switches.key
	Keys []SwitchKey `yaml:"keys" default:"[]" reload:"applied"`
	// The ports at which neighbour switches may be: all, or a list of names. A next hop at
	// another port is a plain router, with hosts behind it.
	Ports []string `yaml:"ports" kind:"ports" unique:"port" default:"all" restart:"which ports exchange hellos is decided at start"`
	// The time between two hellos, 10ms to 10s. A neighbour that is silent for three intervals
	// of its own is gone.
	HelloInterval time.Duration `yaml:"hello_interval" kind:"milliseconds" range:"10ms 10s" default:"100ms" restart:"it is set at start"`
	// The time for which a neighbour switch may be away, 1s to 5m. Groups whose tree cannot do
	// without it end then. It has to be longer than a restart of gleamd takes on the slowest
	// switch, and the same at all switches; so long do transfers wait for a switch that is lost.
	GracePeriod time.Duration `yaml:"grace_period" range:"1s 5m" default:"3s" restart:"it is set at start"`
}

// SwitchID is the identity of a switch, the same for good. 0: made from the machine's ID.
type SwitchID uint64

// SwitchKey authenticates one switch to another. The first one authenticates what this switch
// sends; all are accepted.
type SwitchKey struct {
	ID         uint16 `yaml:"id" range:"1 65535" unique:"key id" required:"1"` // the key's id; not 0, which on the wire means unauthenticated
	SecretFile string `yaml:"secret_file" kind:"file" required:"switches.key"`
	Secret     Secret `yaml:"secret" example:"hex:<digits>"`
}

func (k *SwitchKey) check(d *decoder, v value, seen map[string]value) {
	d.oneSecret(&k.SecretFile, &k.Secret, v, seen)
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
