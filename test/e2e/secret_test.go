// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/gleam-rdma/gleam/lab"
)

// Log and API show no R_Key and no HMAC key: with an R_Key a host could write into a
// member's memory by itself.
func TestNoSecretIsSaid(t *testing.T) {
	r := newRig(t, rigConfig{star: lab.StarConfig{Hosts: 3}})
	groups := r.joinByMaster(nil)
	r.fill(0)
	w := groups[0].Info().Window
	secrets := []uint32{w.RKey, groupRKey}
	for _, h := range r.hosts {
		secrets = append(secrets, h.mr.RKey())
	}
	bad := r.registration() // overlaps the existing group, and then names a stranger
	bad.Group = r.group.Next()
	if err := r.engine.Register(bad); err == nil {
		t.Error("the same queue pairs in two groups")
	} else {
		t.Log(err)
	}
	for _, g := range groups {
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	}
	bad.Group = r.group
	if err := r.engine.Register(bad); err != nil {
		t.Fatal(err)
	}
	if err := r.engine.RemoveMember(r.group, r.hosts[2].ip); err != nil {
		t.Fatal(err)
	}

	said := map[string]string{}
	r.notes.Lock()
	said["log"] = strings.Join(r.notes.lines, "\n")
	r.notes.Unlock()
	answer := func(name string, v any, err error) {
		b, jerr := json.Marshal(v)
		if err != nil || jerr != nil {
			t.Fatal(name, err, jerr)
		}
		said[name] = string(b)
	}
	list, err := r.engine.Groups(nil)
	answer("groups", list, err)
	one, err := r.engine.Group(r.group)
	answer("group", one, err)
	ports, err := r.engine.Ports()
	answer("ports", ports, err)
	stats, err := r.engine.Stats()
	answer("stats", stats, err)
	events, err := r.engine.Events(r.ctx, 0)
	answer("events", events, err)
	if len(events.Events) < 3 || len(list) != 1 || !strings.Contains(said["log"], "group registered") {
		t.Fatalf("nothing to look at: %v", said)
	}
	for name, text := range said {
		text = strings.ToLower(text)
		for _, k := range secrets {
			for _, form := range []string{fmt.Sprintf("%x", k), fmt.Sprintf("%d", k)} {
				if len(form) >= 6 && strings.Contains(text, form) {
					t.Errorf("%s has the R_Key %#x: %s", name, k, text)
				}
			}
		}
		if strings.Contains(text, testSecrets[1][:16]) || strings.Contains(text, strings.Trim(fmt.Sprint(testAuth().Keys[1][:8]), "[]")) {
			t.Errorf("%s has the HMAC key: %s", name, text)
		}
	}
}
