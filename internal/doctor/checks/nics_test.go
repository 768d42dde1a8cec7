// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/gleam-rdma/gleam/config"
	"github.com/gleam-rdma/gleam/dataplane/iface"
)

// machineText is a machine of testdata/machines.txt.
type machineText struct {
	name  string
	facts map[string]string
	want  []string
}

func readMachines(t *testing.T) (list []machineText) {
	t.Helper()
	b, err := os.ReadFile("testdata/machines.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		if name, begins := strings.CutPrefix(line, "== "); begins {
			list = append(list, machineText{name: name, facts: map[string]string{}})
			continue
		}
		m := &list[len(list)-1]
		if want, is := strings.CutPrefix(line, "want "); is {
			m.want = append(m.want, want)
			continue
		}
		key, value, is := strings.Cut(line, ": ")
		if !is {
			t.Fatalf("%s: what is %q?", m.name, line)
		}
		m.facts[key] = value
	}
	return list
}

// machine lays out the files of /sys that the kernel has for such a NIC, with the answers of its driver.
func (x *machineText) machine(t *testing.T) (m *Machine, s *hostNetwork, cfg *config.Config) {
	t.Helper()
	root := t.TempDir()
	file := func(path, text string) {
		t.Helper()
		path = filepath.Join(root, path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	link := func(path, target string) {
		t.Helper()
		path, target = filepath.Join(root, path), filepath.Join(root, target)
		if err := errors.Join(os.MkdirAll(target, 0o755), os.MkdirAll(filepath.Dir(path), 0o755), os.Symlink(target, path)); err != nil {
			t.Fatal(err)
		}
	}
	number := func(key string) int {
		t.Helper()
		n, err := strconv.Atoi(x.facts[key])
		if err != nil {
			t.Fatalf("%s: %s: %v", x.name, key, err)
		}
		return n
	}
	words := func(key string) []string { return strings.Fields(x.facts[key]) }

	bus, name, _ := strings.Cut(x.facts["device"], " ")
	device := "/sys/devices/" + bus + "/" + name
	link("/sys/class/net/p1/device", device)
	link(device+"/driver", "/sys/bus/"+bus+"/drivers/"+x.facts["driver"])
	link(device+"/subsystem", "/sys/bus/"+bus)
	for _, d := range append(words("rdma"), words("raw")...) {
		file(device+"/infiniband/"+d+"/node_type", "1: CA")
		file("/sys/class/infiniband/"+d+"/node_type", "1: CA")
		file("/sys/class/infiniband/"+d+"/ports/1/state", "4: ACTIVE")
	}
	for _, d := range words("rdma") {
		file("/sys/class/infiniband/"+d+"/ports/1/gids/0", "fe80:0000:0000:0000:0000:00ff:fe00:0001")
	}
	for _, d := range words("soft") {
		file(device+"/infiniband/"+d+"/parent", "p1")
		file("/sys/class/infiniband/"+d+"/parent", "p1")
	}
	for q := range number("queues") {
		file(fmt.Sprintf("/sys/class/net/p1/queues/rx-%d/rps_cpus", q), "0")
		file(fmt.Sprintf("/sys/class/net/p1/queues/tx-%d/xps_cpus", q), "0")
	}
	file("/sys/devices/system/cpu/online", fmt.Sprintf("0-%d", number("cpus")-1))
	var xdp iface.XDPFeatures
	for _, w := range words("xdp") {
		xdp |= map[string]iface.XDPFeatures{"native": 1 << 0, "zerocopy": 1 << 3, "buffers": 1 << 5}[w] // linux/netdev.h
	}
	m = &Machine{
		Root: root,
		Features: func(string) (map[string]bool, error) {
			on := map[string]bool{}
			for _, w := range words("on") {
				on[w] = true
			}
			return on, nil
		},
		XDPFeatures: func(int) (iface.XDPFeatures, error) { return xdp, nil },
		HashesPorts: func(string) (bool, error) {
			if x.facts["hash"] == "" {
				return false, unix.EOPNOTSUPP
			}
			return x.facts["hash"] == "ports", nil
		},
	}
	cfg = config.Default()
	cfg.Ports = []config.Port{{Name: "p1"}}
	if x.facts["vlan"] != "" {
		cfg.Ports[0].VLAN = number("vlan")
	}
	if x.facts["fast"] != "" {
		cfg.FastPath = config.FastPath(x.facts["fast"])
	}
	a := netlink.LinkAttrs{Index: 1, Name: "p1", MTU: number("mtu"), EncapType: "ether", HardwareAddr: []byte{2, 0, 0, 0, 0, 1}, NumRxQueues: number("queues")}
	links := iface.Links{}
	if x.facts["bridge"] == "yes" {
		a.MasterIndex, a.Promisc = 2, 1
		links[2] = &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Index: 2, Name: "br0"}}
	}
	if x.facts["program"] == "native" {
		a.Xdp = &netlink.LinkXdp{Attached: true, AttachMode: nl.XDP_ATTACHED_DRV}
	}
	links[1] = &netlink.Device{LinkAttrs: a}
	return m, &hostNetwork{links: links}, cfg
}

// What is said of each machine is what testdata/machines.txt wants, with what it costs, and a repair.
func TestMachinesWithNICs(t *testing.T) {
	list := readMachines(t)
	if len(list) < 25 {
		t.Fatalf("%d machines", len(list))
	}
	for _, x := range list {
		m, s, cfg := x.machine(t)
		o := &Outcome{}
		m.checkNICs(o, cfg, s)
		m.checkOffloads(o, cfg, s)
		if cfg.FastPath == config.FastPathRequire {
			h := &fastHost{release: "6.12.0", btf: true, features: m.XDPFeatures}
			o.Findings = append(o.Findings, h.check(cfg, []netlink.Link{s.links[1]}, s.links.Kind, func(string) string { return x.facts["driver"] })...)
		}
		var got []string
		for _, f := range o.Findings {
			text := fmt.Sprintf("%s: %s | %s", f.Check, f.Text, f.Repair())
			if d := degree(&f); d != "" {
				text = d + " " + text
			}
			if got = append(got, text); f.Port != "p1" || f.Cost == "" || f.Repair() == "" {
				t.Errorf("%s: %+v", x.name, f)
			}
		}
		slices.Sort(got)
		slices.Sort(x.want)
		if !slices.Equal(got, x.want) {
			t.Errorf("%s:\n  %s\nwant\n  %s", x.name, strings.Join(got, "\n  "), strings.Join(x.want, "\n  "))
		}
	}
}

// docs/HARDWARE.md has a row for each driver of which something is said, with its RDMA module.
func TestDriversInTheDocument(t *testing.T) {
	b, err := os.ReadFile("../../../docs/HARDWARE.md")
	if err != nil {
		t.Fatal(err)
	}
	_, chapter, _ := strings.Cut(string(b), "\n## NICs of the switch\n")
	chapter, _, _ = strings.Cut(chapter, "\n## ")
	rows := map[string]string{}
	for line := range strings.Lines(chapter) {
		cells := strings.Split(line, "|")
		if len(cells) != 5 || !strings.HasPrefix(strings.TrimSpace(cells[1]), "`") {
			continue
		}
		for name := range strings.SplitSeq(cells[1], ",") {
			rows[strings.Trim(strings.TrimSpace(name), "`")] = cells[3]
		}
	}
	for name, d := range nicDrivers {
		if row, has := rows[name]; !has || d.rdma != "" && !d.devlink && !strings.Contains(row, d.rdma) {
			t.Errorf("driver %s: %q", name, row)
		}
		delete(rows, name)
	}
	if len(rows) > 0 {
		t.Errorf("rows of drivers of which nothing is said: %v", rows)
	}
}

// An interface without a device is no NIC: nothing of the kind is said of a veth, and the check says that it did not look.
func TestVethIsNoNIC(t *testing.T) {
	m := fixture(t, map[string]string{"/sys/class/net/p1/mtu": "1500"})
	cfg := config.Default()
	cfg.Ports = []config.Port{{Name: "p1"}, {Name: "p2"}}
	o := &Outcome{}
	m.checkNICs(o, cfg, &hostNetwork{links: iface.Links{1: &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Index: 1, Name: "p1", EncapType: "ether", HardwareAddr: []byte{2, 0, 0, 0, 0, 1}}}}})
	if len(o.Findings) > 0 || len(o.Skipped) != 1 || o.Skipped[0].Check != CheckNICs {
		t.Errorf("%+v", o)
	}
}
