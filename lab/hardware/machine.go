// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package hardware

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"

	"github.com/safchain/ethtool"
	"github.com/vishvananda/netlink"

	"github.com/gleam-rdma/gleam/config"
	"github.com/gleam-rdma/gleam/dataplane/iface"
	"github.com/gleam-rdma/gleam/internal/doctor/checks"
)

// NIC is an interface with its driver.
type NIC struct {
	Interface   string
	Driver      string
	Firmware    string
	Device      string // vendor and device as the bus has them, such as 15b3:101d
	Description *checks.Description
}

// RNIC is an RDMA device.
type RNIC struct {
	Name, Driver, Firmware, NodeType string
	Board                            string
	State, Rate                      string   // those of port 1
	Interfaces, GIDTypes             []string // those of all ports, each once
}

// readNICs describes interfaces as ports of cfg, in the network namespace of the calling thread.
func readNICs(m *checks.Machine, cfg *config.Config, names []string) (list []NIC, err error) {
	links, err := iface.ReadLinks()
	if err != nil {
		return nil, err
	}
	tool, err := ethtool.NewEthtool()
	if err != nil {
		return nil, fmt.Errorf("open a socket for ethtool: %w", err)
	}
	defer tool.Close()
	for _, name := range names {
		port := config.Port{Name: name}
		if i := slices.IndexFunc(cfg.Ports, func(p config.Port) bool { return p.Name == name }); i >= 0 {
			port = cfg.Ports[i]
		}
		d, err := m.Describe(links, cfg, &port)
		if err != nil {
			return nil, err
		}
		n := NIC{Interface: name, Driver: d.Facts["driver"], Description: d}
		if info, err := tool.DriverInfo(name); err == nil {
			n.Firmware = strings.TrimSpace(info.FwVersion)
		}
		at := "/sys/class/net/" + name + "/device/"
		if vendor := m.Read(at + "vendor"); vendor != "" {
			n.Device = strings.ReplaceAll(vendor+":"+m.Read(at+"device"), "0x", "")
		}
		list = append(list, n)
	}
	return list, nil
}

const infiniband = "/sys/class/infiniband/"

// readRNICs returns all RDMA devices of the machine, or the one that is named.
func readRNICs(m *checks.Machine, name string) (list []RNIC) {
	for _, d := range m.Names(infiniband) {
		if name != "" && d != name {
			continue
		}
		at := infiniband + d + "/"
		r := RNIC{Name: d, Firmware: m.Read(at + "fw_ver"), NodeType: m.Read(at + "node_type"), Board: m.Read(at + "board_id"), State: m.Read(at + "ports/1/state"), Rate: m.Read(at + "ports/1/rate")}
		if driver, err := filepath.EvalSymlinks(filepath.Join("/", m.Root, at, "device/driver")); err == nil {
			r.Driver = filepath.Base(driver)
		} else if m.Read(at+"parent") != "" {
			r.Driver = "rdma_rxe"
		}
		for _, port := range m.Names(at + "ports") {
			of := at + "ports/" + port + "/gid_attrs/"
			for _, i := range m.Names(of + "ndevs") {
				r.Interfaces = once(r.Interfaces, m.Read(of+"ndevs/"+i))
				r.GIDTypes = once(r.GIDTypes, m.Read(of+"types/"+i))
			}
		}
		list = append(list, r)
	}
	return list
}

// once appends a text that is not empty, and not in the list yet.
func once(list []string, text string) []string {
	if text == "" || slices.Contains(list, text) {
		return list
	}
	return append(list, text)
}

// routeTo returns the interface by which an address is reached.
func routeTo(ip netip.Addr) (string, error) {
	routes, err := netlink.RouteGet(ip.AsSlice())
	if err != nil || len(routes) == 0 {
		return "", fmt.Errorf("no route to %s: %w", ip, err)
	}
	link, err := netlink.LinkByIndex(routes[0].LinkIndex)
	if err != nil {
		return "", fmt.Errorf("interface of the route to %s: %w", ip, err)
	}
	return link.Attrs().Name, nil
}

// withAddress returns the interface that has an address.
func withAddress(ip netip.Addr) (string, error) {
	addrs, err := netlink.AddrList(nil, netlink.FAMILY_ALL)
	if err != nil {
		return "", fmt.Errorf("list addresses: %w", err)
	}
	for _, a := range addrs {
		if has, ok := netip.AddrFromSlice(a.IP); ok && has.Unmap() == ip {
			link, err := netlink.LinkByIndex(a.LinkIndex)
			if err != nil {
				return "", fmt.Errorf("interface of %s: %w", ip, err)
			}
			return link.Attrs().Name, nil
		}
	}
	return "", fmt.Errorf("no interface here has the address %s", ip)
}
