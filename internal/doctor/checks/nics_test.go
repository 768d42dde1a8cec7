// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"errors"
	"fmt"
	"maps"
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

func readMachines(t *testing.T) []Description {
	t.Helper()
	b, err := os.ReadFile("testdata/machines.txt")
	if err != nil {
		t.Fatal(err)
	}
	list, err := ParseDescriptions(string(b))
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// machine lays out the files of /sys that the kernel has for such a NIC, with the answers of its driver.
func (x *Description) machine(t *testing.T) (m *Machine, s *hostNetwork, cfg *config.Config) {
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
		n, err := strconv.Atoi(x.Facts[key])
		if err != nil {
			t.Fatalf("%s: %s: %v", x.Name, key, err)
		}
		return n
	}
	words := func(key string) []string { return strings.Fields(x.Facts[key]) }

	bus, name, _ := strings.Cut(x.Facts["device"], " ")
	device := "/sys/devices/" + bus + "/" + name
	if bus != "" {
		link("/sys/class/net/p1/device", device)
		link(device+"/driver", "/sys/bus/"+bus+"/drivers/"+x.Facts["driver"])
		link(device+"/subsystem", "/sys/bus/"+bus)
	}
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
	}
	channels := number("queues")
	if x.Facts["transmit"] != "" {
		channels = number("transmit")
	}
	for q := range channels {
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
		XDPFeatures: func(int) (iface.XDPFeatures, error) {
			if x.Facts["xdp"] == "" {
				return 0, unix.EOPNOTSUPP
			}
			return xdp, nil
		},
		HashesPorts: func(string) (bool, error) {
			if x.Facts["hash"] == "" {
				return false, unix.EOPNOTSUPP
			}
			return x.Facts["hash"] == "ports", nil
		},
	}
	cfg = config.Default()
	cfg.Ports = []config.Port{{Name: "p1"}}
	if x.Facts["vlan"] != "" {
		cfg.Ports[0].VLAN = number("vlan")
	}
	if x.Facts["fast"] != "" {
		cfg.FastPath = config.FastPath(x.Facts["fast"])
	}
	a := netlink.LinkAttrs{Index: 1, Name: "p1", MTU: number("mtu"), EncapType: "ether", HardwareAddr: []byte{2, 0, 0, 0, 0, 1}, NumRxQueues: number("queues")}
	links := iface.Links{}
	if x.Facts["bridge"] == "yes" {
		a.MasterIndex, a.Promisc = 2, 1
		links[2] = &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Index: 2, Name: "br0"}}
	}
	if x.Facts["promiscuous"] == "yes" {
		a.Promisc = 1
	}
	if x.Facts["program"] == "native" {
		a.Xdp = &netlink.LinkXdp{Attached: true, AttachMode: nl.XDP_ATTACHED_DRV}
	}
	links[1] = &netlink.Device{LinkAttrs: a}
	if bus == "" {
		links[1] = &netlink.Veth{LinkAttrs: a}
	}
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
			o.Findings = append(o.Findings, h.check(cfg, []netlink.Link{s.links[1]}, s.links.Kind, func(string) string { return x.Facts["driver"] })...)
		}
		var got []string
		for _, f := range o.Findings {
			if got = append(got, wanted(&f)); f.Port != "p1" || f.Cost == "" || f.Repair() == "" {
				t.Errorf("%s: %+v", x.Name, f)
			}
		}
		slices.Sort(got)
		slices.Sort(x.Want)
		if !slices.Equal(got, x.Want) {
			t.Errorf("%s:\n  %s\nwant\n  %s", x.Name, strings.Join(got, "\n  "), strings.Join(x.Want, "\n  "))
		}
	}
}

// The description of a machine that was laid out has the facts that it was laid out by, and the findings; so has one
// that was read from its own text. A port's name elsewhere is p1 in it.
func TestDescriptions(t *testing.T) {
	list := append(readMachines(t),
		Description{Name: "no NIC", Facts: map[string]string{"driver": "veth", "queues": "1", "transmit": "2", "cpus": "2", "mtu": "1500", "bridge": "no", "promiscuous": "yes"}},
		Description{Name: "promiscuous", Facts: map[string]string{"driver": "igb", "device": "pci 0000:00:04.0", "queues": "2", "transmit": "1", "cpus": "2", "mtu": "1500", "bridge": "no", "promiscuous": "yes", "xdp": "native"}})
	for _, x := range list {
		m, s, cfg := x.machine(t)
		got, err := m.Describe(s.links, cfg, &cfg.Ports[0])
		if err != nil {
			t.Fatal(err)
		}
		text := got.String()
		again, err := ParseDescriptions(text)
		if err != nil || len(again) != 1 {
			t.Fatalf("%s: %v\n%s", x.Name, err, text)
		}
		x.Want = slices.DeleteFunc(x.Want, func(w string) bool { return strings.Contains(w, CheckFastPath+":") }) // the finding about the port as a whole
		slices.Sort(x.Want)
		slices.Sort(again[0].Want)
		if !maps.Equal(again[0].Facts, x.Facts) || !slices.Equal(again[0].Want, x.Want) {
			t.Errorf("%s: laid out by\n%s\ndescribed as\n%s", x.Name, x.String(), text)
		}
	}
	m, s, cfg := list[0].machine(t)
	if _, err := m.Describe(s.links, cfg, &config.Port{Name: "p2"}); err == nil {
		t.Error("an interface that is not there is described")
	}
	if got := renamed("ethtool -K eth1 lro off, eth10 and eth1: eth1", "eth1"); got != "ethtool -K p1 lro off, eth10 and p1: p1" {
		t.Errorf("renamed: %s", got)
	}
	for _, wrong := range []string{"driver: igb", "== x\ndriver igb"} {
		if _, err := ParseDescriptions(wrong); err == nil {
			t.Errorf("%q is read", wrong)
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
