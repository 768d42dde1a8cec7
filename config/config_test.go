// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const goodHex = "8f4be1a60c7d395214d3fa887ce02b9156af3e70c9d8421b6d05b7f2903a6ec4"

// otherHex is another secret, of switches.
const otherHex = "1f0e9d8c7b6a5948372615f4e3d2c1b00918273645546372819aabbccddeef01"

// minimal is the shortest valid file.
const minimal = "ports: [{name: p1}]\ngroup_prefixes: [10.77.254.0/24]\nenvelope: {insecure: true}\n"

func mustSecret(t *testing.T) Secret {
	t.Helper()
	s, err := parseSecret(goodHex)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// referenceIn puts reference.yaml and the key it names into a folder.
func referenceIn(t *testing.T, dir string) string {
	t.Helper()
	data, err := os.ReadFile("reference.yaml")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "reference.yaml")
	for p, content := range map[string][]byte{path: data, filepath.Join(dir, "gleam.key"): []byte(goodHex + "\n")} {
		if err := os.WriteFile(p, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

func mustRead(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// Thresholds follow the queue's size unless they are given, all or some.
func TestECN(t *testing.T) {
	if p := DefaultPort(); p.ECN != defaultECN(p.Queue) {
		t.Errorf("a port's thresholds are %+v by their rows, %+v by its queue", p.ECN, defaultECN(p.Queue))
	}
	for port, want := range map[string]ECN{
		"{name: p1}": {KMin: 32768, KMax: 131072, PMax: 0.2},
		"{name: p1, ecn: {kmin: 0}, queue: 80000}":               {KMax: 40000, PMax: 0.2},
		"{name: p1, queue: 80000, ecn: }":                        {KMin: 10000, KMax: 40000, PMax: 0.2},
		"{name: p1, ecn: {pmax: 0.5, kmax: 50000, kmin: 50000}}": {KMin: 50000, KMax: 50000, PMax: 0.5},
		"{name: p1, ecn: off}":                                   {},
		"{name: p1, ecn: false}":                                 {},
	} {
		c, err := Parse("f", []byte(strings.Replace(minimal, "{name: p1}", port, 1)))
		if err != nil {
			t.Errorf("%s: %v", port, err)
		} else if c.Ports[0].ECN != want {
			t.Errorf("%s: %+v, want %+v", port, c.Ports[0].ECN, want)
		} else if own := strings.Contains(port, "k") && want != defaultECN(c.Ports[0].Queue); c.Ports[0].HasOwnECN() != own {
			t.Errorf("%s: thresholds of its own: %v, want %v", port, !own, own)
		}
	}
}

func TestSeveralErrorsAtOnce(t *testing.T) {
	_, err := Parse("gleamd.yaml", []byte(`ports:
  - name: p1
  - name: p1
group_prefixes:
  - 224.1.0.0/16
  - 10.0.0.1/8
umem:
  frames: 1000
  size: 4
log: {level: loud}
xdp: {mode: auto}
xdp: {mode: native}
`))
	var errs Errors
	if !errors.As(err, &errs) {
		t.Fatalf("got %T %v", err, err)
	}
	want := `gleamd.yaml:1: envelope.keys: want at least one key, or insecure: true to accept envelopes from anybody
gleamd.yaml:3: ports[1].name: "p1": port is there already, in line 2
gleamd.yaml:5: group_prefixes[0]: "224.1.0.0/16": overlaps 224.0.0.0/4: ` + multicastReason + `
gleamd.yaml:6: group_prefixes[1]: "10.0.0.1/8": has bits set beyond its length; did you mean 10.0.0.0/8?
gleamd.yaml:8: umem.frames: "1000": want a power of two from 256 to 4194304
gleamd.yaml:9: umem: "size": unknown key; want one of frames, frame_size
gleamd.yaml:10: log.level: "loud": want one of debug, info, warn, error
gleamd.yaml:12: "xdp": key is there already, in line 11`
	if err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
	var one *Error
	if !errors.As(err, &one) || one.Line != 1 || one.Key != "envelope.keys" {
		t.Errorf("errors.As finds %+v", one)
	}
}

func TestLoadMissingFile(t *testing.T) {
	_, err := Load(filepath.Join(t.TempDir(), "none.yaml"))
	if !errors.Is(err, os.ErrNotExist) || !strings.Contains(fmt.Sprint(err), "none.yaml") {
		t.Errorf("got %v", err)
	}
}

// An empty list is as none: the default, but for the ports at which neighbours may be.
func TestEmptyLists(t *testing.T) {
	c := mustParse(t, strings.Replace(minimal, "{insecure: true}", "{keys: [{id: 1, secret: hex:"+goodHex+", roles: [], prefixes: []}]}", 1)+"switch: {ports: []}\n")
	if k := c.Envelope.Keys[0]; !slices.Equal(k.Roles, []Role{RoleMaster, RoleMember}) || k.Prefixes != nil {
		t.Errorf("%+v", k)
	}
	if c.Switch.Ports == nil || len(c.Switch.Ports) != 0 {
		t.Errorf("ports %#v", c.Switch.Ports)
	}
}
