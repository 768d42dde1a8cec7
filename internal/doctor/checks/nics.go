// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"

	"github.com/gleam-rdma/gleam/bpf"
	"github.com/gleam-rdma/gleam/config"
	"github.com/gleam-rdma/gleam/dataplane/iface"
)

// nic is what a port's NIC and its driver say of themselves.
type nic struct {
	port        string
	driver      string
	device      string   // bus and address of the device, as devlink names it, such as pci/0000:3b:00.0
	rdma        []string // RDMA devices of the NIC that take RoCE
	raw         []string // RDMA devices of the NIC that take none
	soft        []string // RDMA devices in software, which work above XDP
	promiscuous bool     // frames to all MAC addresses are received
	running     bool     // a native XDP program is attached
	mtu         int
	channels    int // transmit channels in use; 0: not known
	queues      int // receive queues in use; 0: not known
	cpus        int // CPUs of the machine; 0: not known
	xdp         iface.XDPFeatures
	hasXDP      bool // the kernel has said what xdp is
	hashesPorts bool // the receive queue of a UDP packet is chosen by ports, too
	hasHash     bool // the driver has said what hashesPorts is
}

// nicDriver is what is documented of a driver, which has a row in docs/HARDWARE.md.
type nicDriver struct {
	// rdma is the module of RDMA devices at the same NIC; empty: there is none, or it keeps nothing from XDP.
	rdma string
	// devlink means that RoCE is switched off by devlink, and is certain to keep packets from XDP until then.
	devlink bool
	// transmit says what comes of fewer transmit channels than CPUs, from each of which XDP may redirect frames.
	transmit string
	// oneBuffer means that native XDP is for frames in one buffer alone, whatever the kernel's flags say.
	oneBuffer bool
	// cloud is the network that the driver belongs to, which forwards by addresses that it has given out; empty: any.
	cloud string
}

const (
	sharedTransmit = "CPUs share transmit queues under a lock: the fast path is slower"
	lostTransmit   = "frames that XDP redirects on the other CPUs are lost: groups of the fast path repair them again and again"
)

// nicDrivers are the drivers of which something is to be said.
var nicDrivers = map[string]nicDriver{
	"mlx5_core":  {rdma: "mlx5_ib", devlink: true, transmit: lostTransmit},
	"mlx4_en":    {rdma: "mlx4_ib"},
	"ice":        {rdma: "irdma", transmit: sharedTransmit},
	"i40e":       {rdma: "irdma"},
	"bnxt_en":    {rdma: "bnxt_re", transmit: sharedTransmit},
	"qede":       {rdma: "qedr"},
	"hns3":       {rdma: "hns_roce_hw_v2"},
	"ixgbe":      {transmit: sharedTransmit},
	"virtio_net": {transmit: sharedTransmit},
	"vmxnet3":    {oneBuffer: true},
	"igb":        {oneBuffer: true},
	"ena":        {oneBuffer: true, cloud: "AWS"},
	"gve":        {oneBuffer: true, cloud: "Google Cloud"},
	"mana":       {rdma: "mana_ib", cloud: "Azure"},
	"hv_netvsc":  {cloud: "Azure, and networks of Hyper-V"},
}

// readNIC returns what a port's NIC says; ok is false if there is no device behind the interface, as at a veth.
func (m *Machine) readNIC(port string, link netlink.Link) (n nic, ok bool) {
	if m.target("/sys/class/net/"+link.Attrs().Name+"/device") == "" {
		return n, false
	}
	return m.readInterface(port, link), true
}

// readInterface returns what a port's interface says, with a device behind it or without.
func (m *Machine) readInterface(port string, link netlink.Link) nic {
	a := link.Attrs()
	at := "/sys/class/net/" + a.Name + "/device"
	n := nic{port: port, promiscuous: a.Promisc > 0, mtu: a.MTU, running: native(link), cpus: len(cpuList(m.Read("/sys/devices/system/cpu/online")))}
	if device := m.target(at); device != "" {
		n.driver, n.device = filepath.Base(m.target(at+"/driver")), filepath.Base(m.target(at+"/subsystem"))+"/"+filepath.Base(device)
	}
	for _, d := range m.Names(at + "/infiniband") {
		switch {
		case m.Read("/sys/class/infiniband/"+d+"/parent") != "": // rdma_rxe has one
			n.soft = append(n.soft, d)
		case m.hasGIDs(d):
			n.rdma = append(n.rdma, d)
		default:
			n.raw = append(n.raw, d)
		}
	}
	count := func(kind string) (number int) {
		for _, q := range m.Names("/sys/class/net/" + a.Name + "/queues") {
			if strings.HasPrefix(q, kind) {
				number++
			}
		}
		return number
	}
	n.channels, n.queues = count("tx-"), count("rx-")
	if x, err := m.XDPFeatures(a.Index); err == nil {
		n.xdp, n.hasXDP = x, true
	}
	if ports, err := m.HashesPorts(a.Name); err == nil {
		n.hashesPorts, n.hasHash = ports, true
	}
	return n
}

// hasGIDs reports whether an RDMA device has a GID table. mlx5 keeps its device when RoCE is disabled, for raw
// Ethernet, without one: traffic to the RoCE UDP port is then raw Ethernet too.
func (m *Machine) hasGIDs(device string) bool {
	at := "/sys/class/infiniband/" + device + "/ports"
	ports := m.Names(at)
	return len(ports) == 0 || slices.ContainsFunc(ports, func(p string) bool { return len(m.Names(at+"/"+p+"/gids")) != 0 })
}

// target returns what a path of /proc or /sys leads to, by way of symbolic links; empty: nothing is there.
func (m *Machine) target(path string) string {
	t, err := filepath.EvalSymlinks(filepath.Join("/", m.Root, path))
	if err != nil {
		return ""
	}
	return t
}

// checkNICs checks that the NICs of ports give XDP what hosts send to groups, and take what it redirects.
func (m *Machine) checkNICs(o *Outcome, cfg *config.Config, s *hostNetwork) {
	var found []Finding
	looked := false
	for i := range cfg.Ports {
		p := &cfg.Ports[i]
		link := s.links.Named(p.Name)
		if link == nil || s.links.Kind(link).Mode == config.XDPGeneric {
			continue // another check says so; and interfaces on top of others are no NICs
		}
		if n, ok := m.readNIC(p.Name, link); ok {
			looked = true
			found = append(found, n.check(cfg.FastPath, cfg.XDPModeOf(p), p.Queues)...)
		}
	}
	if !looked {
		o.skip(CheckNICs, "no port's interface is a NIC")
		return
	}
	o.add(CheckNICs, found...)
}

// check returns what keeps a port at the NIC from working, or makes it slow.
func (n *nic) check(fast config.FastPath, mode config.XDPMode, queues []int) (found []Finding) {
	d := nicDrivers[n.driver]
	add := func(f Finding) { f.Port = n.port; found = append(found, f) }
	if len(n.rdma) > 0 {
		add(n.roce(&d))
	}
	if !n.promiscuous {
		add(Finding{
			Note: true, Text: "the NIC receives frames to its own MAC address alone (promiscuity 0)",
			Cost:    "hosts that have another MAC address for a group are not heard: those with a neighbour entry by hand, and those that knew the port before its NIC was exchanged",
			Command: "ip link set " + n.port + " promisc on",
		})
	}
	if d.cloud != "" {
		add(Finding{
			Text:   fmt.Sprintf("the driver %s is that of a cloud (%s), whose network forwards to addresses that it has given out itself", n.driver, d.cloud),
			Cost:   "packets to a group's address do not get to this port, and copies in a source's name do not leave the machine",
			Remedy: "groups between virtual machines of one host, behind a bridge; or hosts and switch in a tunnel (VXLAN), whose interface is the port",
		})
	}
	if mode != config.XDPGeneric && n.hasXDP {
		found = append(found, n.checkNative(&d)...)
	}
	if fast != config.FastPathOff && d.transmit != "" && n.channels > 0 && n.channels < n.cpus {
		add(Finding{
			Text: fmt.Sprintf("fewer transmit channels (%d) than CPUs (%d)", n.channels, n.cpus), Cost: d.transmit,
			Command: fmt.Sprintf("ethtool -L %s combined %d", n.port, n.cpus), Remedy: "before gleamd starts: some drivers refuse it later; or fast_path: off",
		})
	}
	if n.hasHash && !n.hashesPorts && n.queues > 1 && len(queues) != 1 {
		add(Finding{
			Text: "the NIC chooses a packet's receive queue by addresses alone", Cost: "all that a host sends to a group comes by one queue, whatever its number of queue pairs",
			Command: "ethtool -N " + n.port + " rx-flow-hash udp4 sdfn",
		})
	}
	return found
}

// roce is the finding of a NIC that has RDMA devices.
func (n *nic) roce(d *nicDriver) Finding {
	devices := strings.Join(n.rdma, ", ")
	if d.devlink {
		return Finding{
			Port: n.port, Severe: true, Text: fmt.Sprintf("the NIC takes RoCE packets for its own RDMA device (%s)", devices),
			Cost:    "none of them gets to XDP: groups are registered, and carry nothing",
			Command: fmt.Sprintf("devlink dev param set %s name enable_roce value false cmode driverinit && devlink dev reload %s", n.device, n.device),
			Remedy:  "this machine then has no RDMA of its own at this NIC",
		}
	}
	f := Finding{
		Port: n.port, Text: fmt.Sprintf("the NIC has an RDMA device of its own (%s), and may take RoCE packets for it", devices),
		Cost:   "packets that it takes do not get to XDP: groups are registered, and carry nothing",
		Remedy: "unload the driver of its RDMA device",
	}
	if d.rdma != "" {
		f.Command, f.Remedy = "modprobe -r "+d.rdma, "this machine then has no RDMA of its own at such NICs"
	}
	return f
}

// checkNative returns why the program does not run natively, or would not at this MTU.
func (n *nic) checkNative(d *nicDriver) []Finding {
	const cost = "XDP runs in generic mode, slower, and groups with members there stay off the fast path"
	switch {
	case n.running:
		return nil
	case !n.xdp.Native():
		return []Finding{{Port: n.port, Text: fmt.Sprintf("the driver %s has no native XDP", n.driver), Cost: cost, Remedy: "a NIC whose driver has it (gleam version lists this machine's)", Note: true}}
	case n.mtu > bpf.MaxSingleBufferMTU && (!n.xdp.MultiBuffer() || d.oneBuffer):
		return []Finding{{
			Port: n.port, Text: fmt.Sprintf("the driver %s has native XDP only for frames in one buffer, and the MTU is %d", n.driver, n.mtu), Cost: cost,
			Command: fmt.Sprintf("ip link set %s mtu %d", n.port, bpf.MaxSingleBufferMTU), Remedy: "some drivers want a smaller one; groups then have a path MTU of 2048 at most",
		}}
	}
	return nil
}
