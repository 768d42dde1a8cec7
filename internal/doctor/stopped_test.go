// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/vishvananda/netlink"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/lab"
	"github.com/gleam-rdma/gleam/test/labtest"
)

// stopped is a switch whose gleamd does not run.
func stopped(t *testing.T, ports string) *ward {
	t.Helper()
	star := labtest.Star(t, lab.StarConfig{Hosts: 2})
	dir := t.TempDir()
	file, key := filepath.Join(dir, "gleamd.yaml"), filepath.Join(dir, "gleam.key")
	text := fmt.Sprintf("ports: %s\ngroup_prefixes: [10.77.254.0/24]\nenvelope: {keys: [{id: 1, secret_file: gleam.key}]}\n", ports)
	for name, content := range map[string]string{file: text, key: fmt.Sprintf("%x\n", sha256.Sum256([]byte(t.Name())))} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	client := api.Dial(filepath.Join(dir, "none.sock"))
	t.Cleanup(client.Close)
	return &ward{star, client, file, nil}
}

// Without a gleamd the machine and the configuration are looked at, and the rest is named.
func TestFaultsOfAStoppedSwitch(t *testing.T) {
	w := stopped(t, "[{name: p1}, {name: p2}]")
	r := w.look(t)
	if r.Errors > 0 || r.Gleamd != "" || r.result("gleamd").State != Skipped || !strings.Contains(r.result("gleamd").Reason, "none.sock") {
		t.Fatalf("%+v, %+v", r.Findings, r.Checks)
	}
	key := filepath.Join(filepath.Dir(w.config), "gleam.key")
	for _, f := range []fault{
		{name: "a key that all may read", plant: "chmod 644 " + key, check: "config", text: "may be read or changed by others (mode 0644)", severity: Error},
		{name: "a key that its group may change", plant: "chmod 660 " + key, check: "config", text: "may be read or changed by others (mode 0660)", severity: Error},
		{name: "a key of somebody else", plant: "chown 12345 " + key, check: "config", text: "belongs to user 12345", severity: Error},
		{name: "a folder that others may write to", plant: "chmod 775 " + filepath.Dir(key), check: "key-files", text: "may replace files in", severity: Error},
		{name: "a configuration that others may change", plant: "chmod 666 " + w.config, check: "key-files", text: "may be changed by others", severity: Error},
		{name: "a configuration of somebody else", plant: "chown 12345 " + w.config, check: "key-files", text: "belongs to user 12345", severity: Error},
	} {
		t.Run(strings.ReplaceAll(f.name, " ", "_"), func(t *testing.T) { w.find(t, f, w.look) })
	}
}

// An XDP program of somebody else keeps gleamd from its port.
func TestForeignProgram(t *testing.T) {
	w := stopped(t, "[{name: p1}, {name: p2}]")
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.XDP, License: "GPL", Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 2), asm.Return()}})
	if err != nil {
		labtest.Unavailable(t, "load an XDP program: %v", err)
	}
	defer p.Close()
	for _, c := range []struct {
		flags int
		want  string
	}{{1 << 2, "ip link set dev p2 xdp off"}, {1 << 1, "ip link set dev p2 xdpgeneric off"}} {
		l, err := w.Switch.Handle().LinkByName("p2")
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Switch.Do(func() error { return netlink.LinkSetXdpFdWithFlags(l, p.FD(), c.flags) }); err != nil {
			t.Fatal(err)
		}
		found := findings(w.look(t), "xdp-programs", "port p2: an XDP program is attached")
		if len(found) != 1 || found[0].Severity != Error || found[0].Command != c.want {
			t.Fatalf("%+v, want %s", found, c.want)
		}
		w.sh(t, "", found[0].Command)
		remedied(t, w.look, "xdp-programs", "")
	}
}

// XDP does not see tags that an interface takes off, which matters where some are expected.
func TestTagsAreTakenOff(t *testing.T) {
	labtest.Needs(t, "ethtool")
	w := stopped(t, "[{name: p1, vlan: 5}, {name: p2}]")
	w.sh(t, "", "ethtool -K p1 rxvlan off")
	w.find(t, fault{plant: "ethtool -K p1 rxvlan on", check: "offloads", text: "port p1: the interface takes VLAN tags off before XDP sees the packets, and its group frames have VLAN 5", severity: Error}, w.look)
	if found := findings(w.look(t), "offloads", "port p2"); len(found) != 0 {
		t.Errorf("without tags: %+v", found)
	}
}

// A configuration that is wrong, or missing, is an error for each line of it.
func TestWrongConfiguration(t *testing.T) {
	w := stopped(t, "[{name: p1}, {name: gone0}]")
	if found := findings(w.look(t), "interfaces", "port gone0: there is no interface"); len(found) != 1 || found[0].Severity != Error || found[0].Cost != "gleamd does not start" {
		t.Errorf("%+v", found)
	}
	text, err := os.ReadFile(w.config)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(w.config, append(text, "umem: {frames: 3}\nlog: {level: loud}\n"...), 0o600); err != nil {
		t.Fatal(err)
	}
	r := w.look(t)
	if found := findings(r, "config", ""); len(found) != 2 || !strings.Contains(found[0].Text, "umem.frames") || r.ExitCode() != ExitErrors {
		t.Errorf("%+v", found)
	}
	w.config += ".none"
	if found := findings(w.look(t), "config", "no such file"); len(found) != 1 || !strings.HasPrefix(found[0].Remedy, "-c names another file; make install") {
		t.Errorf("%+v", found)
	}
}
