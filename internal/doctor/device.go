// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

const infiniband = "/sys/class/infiniband/"

// gidEntry is an entry of an RDMA device's GID table.
type gidEntry struct {
	port, index string
	kind        string // "RoCE v2", "IB/RoCE v1"
	addr        netip.Addr
	netdev      string
}

// gids reads the GID table of a device.
func (m *machine) gids(device string) (table []gidEntry) {
	for _, port := range m.names(infiniband + device + "/ports") {
		at := infiniband + device + "/ports/" + port + "/"
		for _, i := range m.names(at + "gids") {
			a, err := netip.ParseAddr(m.read(at + "gids/" + i))
			if err != nil || a.IsUnspecified() {
				continue
			}
			table = append(table, gidEntry{port, i, m.read(at + "gid_attrs/types/" + i), a.Unmap(), m.read(at + "gid_attrs/ndevs/" + i)})
		}
	}
	return table
}

// checkDevice checks the RDMA device of an interface, and its GID for an address.
func (m *machine) checkDevice(r *Report, name string, ip netip.Addr, o *HostOptions) {
	var found []Finding
	fail := func(text, cost, remedy, command string) {
		found = append(found, Finding{Severity: Error, Text: text, Cost: cost, Remedy: remedy, Command: command})
	}
	const none = "queue pairs for the group cannot be made"
	device := m.deviceOf(name, o.Device)
	if device == "" {
		what := "no RDMA device is on " + name
		if o.Device != "" {
			what = "RDMA device " + o.Device + " is not on " + name
		}
		fail(what, none, "load the RNIC's driver, or make a device in software", fmt.Sprintf("rdma link add rxe_%s type rxe netdev %[1]s", name))
		r.add("device", found...)
		return
	}
	if is, remedy := m.otherProtocol(device); is != "" {
		fail(device+" speaks "+is+", not RoCE v2", "the switch passes its packets by, and no queue pair of it reaches a group", remedy, "")
		r.add("device", found...)
		return
	}
	table := m.gids(device)
	var v1 *gidEntry
	var v2 *gidEntry
	for i := range table {
		if g := &table[i]; g.addr == ip && g.netdev == name {
			if g.kind == "RoCE v2" {
				v2 = g
			} else {
				v1 = g
			}
		}
	}
	switch {
	case !ip.IsValid():
		fail(name+" has no address", none, "an address in the subnet of the switch", fmt.Sprintf("ip address add ADDRESS/LENGTH dev %s", name))
	case v2 == nil && v1 != nil:
		fail(fmt.Sprintf("%s has a GID of type %s for %s, and none of type RoCE v2", device, v1.kind, ip), "packets leave without UDP header, and the switch passes them by", "the driver's settings decide on RoCE v2; programs then name its GID by the index", fmt.Sprintf("cma_roce_mode -d %s -p %s -m 2", device, v1.port))
	case v2 == nil:
		fail(fmt.Sprintf("%s has no GID for %s", device, ip), none, "GIDs come with addresses: set the address anew", fmt.Sprintf("ip address change %s dev %s", ownPrefix(ip), name))
	}
	port := "1"
	if v2 != nil {
		port = v2.port
	}
	at := infiniband + device + "/ports/" + port + "/"
	if state := m.read(at + "state"); state != "" && !strings.Contains(state, "ACTIVE") {
		fail(fmt.Sprintf("port %s of %s is not active (%s)", port, device, state), "queue pairs send nothing", "it follows the link of "+name, "ip link set "+name+" up")
	}
	if layer := m.read(at + "link_layer"); layer != "" && layer != "Ethernet" {
		fail(fmt.Sprintf("port %s of %s is %s, no Ethernet", port, device, layer), none, "set the port to Ethernet (mlxconfig: LINK_TYPE)", "")
	}
	if node := m.verbsNode(device); node == "" {
		fail("programs cannot use "+device+": the kernel module ib_uverbs is not loaded", none, "", "modprobe ib_uverbs")
	} else if err := unix.Access(filepath.Join("/", m.Root, node), unix.R_OK|unix.W_OK); err != nil {
		fail(fmt.Sprintf("this user may not use %s (%v)", node, err), none, "rdma-core's udev rules let every user", "chmod 666 "+node)
	}
	var lock unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_MEMLOCK, &lock) == nil && lock.Cur < leastLocked && os.Geteuid() != 0 {
		found = append(found, Finding{
			Severity: Warning, Text: fmt.Sprintf("this user may lock %d KiB of memory", lock.Cur>>10), Cost: "registering more memory than that for RDMA fails",
			Remedy: "memlock unlimited in /etc/security/limits.conf, or LimitMEMLOCK=infinity in the program's unit", Command: "prlimit --pid $$ --memlock=unlimited",
		})
	}
	r.add("device", found...)
}

// otherProtocol names the protocol of an RDMA device that is not RoCE, by the kernel's type of its node
// (enum rdma_node_type) and the driver; "" for RoCE and InfiniBand.
func (m *machine) otherProtocol(device string) (is, remedy string) {
	const other = "a RoCE v2 adapter, or soft-RoCE: rdma link add rxe0 type rxe netdev INTERFACE"
	kind, _, _ := strings.Cut(m.read(infiniband+device+"/node_type"), ":")
	driver := strings.TrimRight(device, "_0123456789") // the kernel names devices after their drivers, unless udev renames them
	if at, err := os.Readlink(filepath.Join("/", m.Root, infiniband+device+"/device/driver")); err == nil {
		driver = filepath.Base(at)
	}
	switch {
	case driver == "erdma":
		return "Alibaba's eRDMA", other
	case driver == "efa":
		return "the SRD of AWS EFA", other
	case kind == "4" && (driver == "irdma" || driver == "ice"):
		return "iWARP", "devlink dev param set pci/ADDRESS name enable_iwarp value false cmode runtime; then the same with enable_roce true"
	case kind == "4":
		return "iWARP", other
	case kind != "" && kind != "1":
		return "a protocol of its own (node type " + m.read(infiniband+device+"/node_type") + ")", other
	}
	return "", ""
}

// leastLocked is the locked memory below which programs for RDMA commonly fail.
const leastLocked = 64 << 20

// deviceOf returns the RDMA device on an interface, if it is the wanted one; any if none is
// named.
func (m *machine) deviceOf(name, want string) string {
	devices := m.names(infiniband)
	slices.Sort(devices)
	for _, d := range devices {
		if want != "" && d != want {
			continue
		}
		for _, port := range m.names(infiniband + d + "/ports") {
			ndevs := infiniband + d + "/ports/" + port + "/gid_attrs/ndevs/"
			for _, i := range m.names(ndevs) {
				if m.read(ndevs+i) == name {
					return d
				}
			}
		}
		if m.read(infiniband+d+"/parent") == name { // rdma_rxe
			return d
		}
	}
	return ""
}

// verbsNode returns the file by which programs use a device; empty: there is none.
func (m *machine) verbsNode(device string) string {
	const class = "/sys/class/infiniband_verbs/"
	for _, n := range m.names(class) {
		if m.read(class+n+"/ibdev") == device {
			return "/dev/infiniband/" + n
		}
	}
	return ""
}
