// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/config/identity"
	"github.com/gleam-rdma/gleam/config/trusted"
	"github.com/gleam-rdma/gleam/test/certs"
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

func TestReferenceHoldsTheDefaults(t *testing.T) {
	dir := t.TempDir()
	got, err := Load(referenceIn(t, dir))
	if err != nil {
		t.Fatal(err)
	}
	want := Default()
	ecn := ECN{KMin: 32768, KMax: 131072, PMax: 0.2}
	want.Ports = []Port{{Name: "p1", Queue: 262144, ECN: ecn, XDP: PortXDP{Mode: XDPDefault}}, {Name: "p2", Queue: 262144, ECN: ecn, XDP: PortXDP{Mode: XDPDefault}}}
	want.GroupPrefixes = []netip.Prefix{netip.MustParsePrefix("10.77.254.0/24"), netip.MustParsePrefix("fd77::6c65:0/112")}
	want.Envelope.Keys = []Key{{ID: 1, SecretFile: filepath.Join(dir, "gleam.key"), Secret: mustSecret(t), Roles: []Role{RoleMaster, RoleMember}}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("reference.yaml gives\n%+v\nwant the defaults\n%+v", got, want)
	}
}

// structKeys lists the key paths that a struct's yaml tags name.
func structKeys(t reflect.Type, prefix string, keys map[string]bool) {
	for i := range t.NumField() {
		f := t.Field(i)
		key := join(prefix, f.Tag.Get("yaml"))
		keys[key] = true
		ft := f.Type
		if ft.Kind() == reflect.Slice && ft.Elem().Kind() == reflect.Struct {
			ft, key = ft.Elem(), key+"[]"
		}
		if ft.Kind() == reflect.Struct && ft.PkgPath() == t.PkgPath() && ft != reflect.TypeFor[Secret]() {
			structKeys(ft, key, keys)
		}
	}
}

func TestEveryKeyIsReadAndInTheReference(t *testing.T) {
	want := make(map[string]bool)
	structKeys(reflect.TypeFor[Config](), "", want)
	if len(want) < 30 {
		t.Fatalf("found only %d keys in Config: %v", len(want), want)
	}

	known := parse(referenceIn(t, t.TempDir()), mustRead(t, "reference.yaml"), nil, &trusted.Files{}).known
	if !maps.Equal(known, want) {
		t.Errorf("keys the parser knows: %v\nkeys of Config: %v", slices.Sorted(maps.Keys(known)), slices.Sorted(maps.Keys(want)))
	}
	text := string(mustRead(t, "reference.yaml"))
	for key := range want {
		last := key[strings.LastIndexByte(key, '.')+1:]
		if !regexp.MustCompile(`(?m)^ *(# |- )?` + regexp.QuoteMeta(last) + `:`).MatchString(text) {
			t.Errorf("reference.yaml does not show %s", key)
		}
	}
}

func mustRead(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestEveryKeyArrives sets every key to something other than its default, and fails for
// a field that has its default.
func TestEveryKeyArrives(t *testing.T) {
	dir := t.TempDir()
	referenceIn(t, dir)
	ca := certs.New(t)
	certificate, private := ca.Issue(certs.Want{Name: "s", Server: netip.MustParseAddr("10.0.0.1")})
	files, err := identity.Load(certificate, private, ca.File)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Parse(filepath.Join(dir, "x.yaml"), []byte(`
ports: [{name: a, queues: [3, 1], vlan: 10, rate: 20mbit, queue: 100000, ecn: {kmin: 1000, kmax: 2000, pmax: 1}, allow: {addresses: [10.0.0.1, 'fd00::/64'], macs: ["02:00:00:00:00:0A"]}, xdp: {mode: native}}]
group_prefixes: [fd00::/96]
envelope:
  udp_port: 5000
  keys: [{id: 7, secret: "hex:`+goodHex+`", max_groups: 10, max_members: 11, lease_max: 12s, roles: [receive-only], prefixes: ["fd00::ff00/120"]}, {id: 8, secret_file: gleam.key}]
  lease_max: 1m30s
  locate_timeout: 500ms
switch: {id: "00000000000000fe", keys: [{id: 9, secret: "hex:`+otherHex+`"}], ports: [a], hello_interval: 50ms, grace_period: 20s}
api: {socket: /tmp/s, mode: 0602, group: wheel, read_group: adm, listen: "10.0.0.1:99", advertise: "10.0.0.2:98", certificate: `+certificate+`, key: `+private+`, ca: `+ca.File+`, operators: [ann]}
web: {listen: "127.0.0.1:97", names: [Switch.example], certificate: `+certificate+`, key: `+private+`, ca: `+ca.File+`, token_file: gleam.key}
metrics: {listen: "127.0.0.1:96", names: [Meter.example], certificate: `+certificate+`, key: `+private+`, ca: `+ca.File+`, token_file: gleam.key, socket: true, groups: 7}
user: 4711
limits: {groups: 5, members_per_group: 6, source_timeout: 3s, naks_per_port: 7, envelopes_per_port: 8, envelopes_per_address: 13, neighbours_per_port: 9}
repair: {per_group: 1000, total: 2000, timeout: 3ms, tries: 9}
psn_probe: 11ms
state: /var/lib/g
unconfirmed_moves: evict
xdp: {mode: generic, zero_copy: always, ntuple: true}
fast_path: auto
fast_path_memory: 2000000
umem: {frames: 1024, frame_size: 2048}
rings: {rx: 64, tx: 128, fill: 256, completion: 512}
worker: {cpu: [1, 3, -1, -1], spin: 0, batch: 32}
log: {level: error, format: json}
`))
	if err != nil {
		t.Fatal(err)
	}
	secret := mustSecret(t)
	other, err := parseSecret(otherHex)
	if err != nil {
		t.Fatal(err)
	}
	want := &Config{
		Ports: []Port{{Name: "a", Queues: []int{1, 3}, VLAN: 10, Rate: 20_000_000, Queue: 100_000, ECN: ECN{KMin: 1000, KMax: 2000, PMax: 1},
			Allow: Allow{Addresses: []netip.Prefix{netip.MustParsePrefix("10.0.0.1/32"), netip.MustParsePrefix("fd00::/64")}, MACs: []MAC{{2, 5: 10}}}, XDP: PortXDP{Mode: XDPNative}}},
		GroupPrefixes: []netip.Prefix{netip.MustParsePrefix("fd00::/96")},
		Envelope: Envelope{
			UDPPort: 5000, LeaseMax: 90 * time.Second, LocateTimeout: 500 * time.Millisecond,
			Keys: []Key{{ID: 7, Secret: secret, MaxGroups: 10, MaxMembers: 11, LeaseMax: 12 * time.Second, Roles: []Role{RoleReceiveOnly}, Prefixes: []netip.Prefix{netip.MustParsePrefix("fd00::ff00/120")}},
				{ID: 8, SecretFile: filepath.Join(dir, "gleam.key"), Secret: secret, Roles: []Role{RoleMaster, RoleMember}}},
		},
		Switch: Switch{ID: 0xfe, Keys: []SwitchKey{{ID: 9, Secret: other}}, Ports: []string{"a"}, HelloInterval: 50 * time.Millisecond, GracePeriod: 20 * time.Second},
		API: API{Socket: "/tmp/s", Mode: 0o602, Group: "wheel", ReadGroup: "adm", Listen: netip.MustParseAddrPort("10.0.0.1:99"), Advertise: netip.MustParseAddrPort("10.0.0.2:98"),
			Certificate: files.Certificate, Key: files.Key, CA: files.CA, Operators: []string{"ann"}}, User: "4711",
		Web: Web{Listen: netip.MustParseAddrPort("127.0.0.1:97"), Names: []string{"switch.example"}, Certificate: files.Certificate, Key: files.Key, CA: files.CA, Token: secret},
		Metrics: Metrics{Listen: netip.MustParseAddrPort("127.0.0.1:96"), Names: []string{"meter.example"}, Certificate: files.Certificate, Key: files.Key, CA: files.CA, Token: secret,
			Socket: true, Groups: 7},
		Limits: Limits{Groups: 5, MembersPerGroup: 6, SourceTimeout: 3 * time.Second, NAKsPerPort: 7, EnvelopesPerPort: 8, EnvelopesPerAddress: 13, NeighboursPerPort: 9},
		Repair: Repair{GroupBytes: 1000, TotalBytes: 2000, Timeout: 3 * time.Millisecond, Tries: 9}, PSNProbe: 11 * time.Millisecond, State: "/var/lib/g", UnconfirmedMoves: MoveEvict,
		XDP: XDP{Mode: XDPGeneric, ZeroCopy: ZeroCopyAlways, NTuple: true}, FastPath: FastPathAuto, FastPathMemory: 2_000_000,
		UMEM:   UMEM{Frames: 1024, FrameSize: 2048},
		Rings:  Rings{RX: 64, TX: 128, Fill: 256, Completion: 512},
		Worker: Worker{CPUs: []int{1, 3, -1, -1}, Batch: 32},
		Log:    Log{Level: LogError, Format: LogJSON},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%+v\nwant\n%+v", got, want)
	}
	// The table above must itself leave no field at its default.
	unchanged(t, reflect.ValueOf(*got), reflect.ValueOf(*Default()), "")
	insecure, err := Parse("x.yaml", []byte(minimal))
	if err != nil {
		t.Fatal(err)
	}
	if !insecure.Envelope.Insecure {
		t.Error("insecure: true did not arrive")
	}
}

// Thresholds follow the queue's size unless they are given, all or some.
func TestECN(t *testing.T) {
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

func unchanged(t *testing.T, got, def reflect.Value, path string) {
	for i := range got.NumField() {
		f := got.Type().Field(i)
		key := join(path, f.Tag.Get("yaml"))
		if f.Type.Kind() == reflect.Struct && f.Type.PkgPath() == reflect.TypeFor[Config]().PkgPath() && f.Type != reflect.TypeFor[Secret]() {
			unchanged(t, got.Field(i), def.Field(i), key)
			continue
		}
		if key != "envelope.insecure" && reflect.DeepEqual(got.Field(i).Interface(), def.Field(i).Interface()) {
			t.Errorf("%s still has its default", key)
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
