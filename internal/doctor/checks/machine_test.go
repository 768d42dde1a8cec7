// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"

	"github.com/gleam-rdma/gleam/config"
	"github.com/gleam-rdma/gleam/dataplane/iface"
	"github.com/gleam-rdma/gleam/internal/doctor/kernel"
	"github.com/gleam-rdma/gleam/test/labtest"
)

// fixture is a machine with files of /proc and /sys.
func fixture(t *testing.T, files map[string]string) *Machine {
	t.Helper()
	return &Machine{Root: labtest.Files(t, files), Release: "6.1.0-13-amd64", Pid: 42, Synchronised: func() (bool, error) { return true, nil }}
}

// Each fault of a machine is found, and its command ends it: in a copy of the kernel's files,
// which one machine alone does not have.
func TestFaultsOfAMachine(t *testing.T) {
	const cpus, irq = "/sys/devices/system/cpu/", "/sys/class/net/p1/device/"
	pinned := config.Default()
	pinned.Ports = []config.Port{{Name: "p1"}}
	pinned.Worker.CPUs = []int{2, 3}
	four := map[string]string{cpus + "online": "0-3"}
	with := func(more map[string]string) map[string]string {
		for k, v := range four {
			if _, has := more[k]; !has {
				more[k] = v
			}
		}
		return more
	}
	for _, c := range []struct {
		name  string
		files map[string]string
		look  func(*Machine, *Outcome)
		text  string
		bad   string // severe, note; empty: neither
		mend  bool   // the command changes files, and ends it
	}{
		{"no huge pages", map[string]string{kernel.HugePagesFile: "always madvise [never]"}, (*Machine).checkHugePages, "transparent huge pages are off", "", true},
		{"a slow clock", map[string]string{clockSource + "current_clocksource": "hpet", clockSource + "available_clocksource": "hpet tsc acpi_pm"}, (*Machine).CheckClock, "reads the time from hpet", "", true},
		{"a slow clock and no other", map[string]string{clockSource + "current_clocksource": "acpi_pm", clockSource + "available_clocksource": "acpi_pm"}, (*Machine).CheckClock, "reads the time from acpi_pm", "", false},
		{"a wrong clock", nil, func(m *Machine, o *Outcome) {
			m.Synchronised = func() (bool, error) { return false, nil }
			m.CheckClock(o)
		}, "no time server sets the clock", "note", false},
		{"little locked memory", map[string]string{"/proc/42/status": "Name:\tgleamd\nCapEff:\t0000000000003000", "/proc/42/limits": "Limit  Soft  Hard  Units\nMax locked memory         8388608              8388608              bytes"},
			func(m *Machine, o *Outcome) { m.checkMemlock(o, pinned) }, "gleamd may lock 8192 KiB of memory, and its packet memory has 65536 KiB", "", false},
		{"a user without locked memory", map[string]string{"/proc/self/status": "Name:\tgleamd\nCapEff:\t0000000000003000", "/proc/self/limits": "Max locked memory         65536              65536              bytes"},
			func(m *Machine, o *Outcome) { m.Pid = 0; m.checkMemlock(o, pinned) }, "a gleamd that this process starts may lock 64 KiB of memory", "", false},
		{"an old kernel", nil, func(m *Machine, o *Outcome) { m.Release = "5.4.0-42"; m.checkKernel(o) }, "the kernel is Linux 5.4.0-42", "severe", false},
		{"a worker's CPU is off", map[string]string{cpus + "online": "0-2"}, func(m *Machine, o *Outcome) { m.checkWorkers(o, pinned) }, "names CPU 3, which is not online", "severe", false},
		{"a slow CPU", with(map[string]string{cpus + "cpu2/cpufreq/scaling_governor": "powersave", cpus + "cpu2/cpufreq/scaling_driver": "acpi-cpufreq"}),
			func(m *Machine, o *Outcome) { m.checkWorkers(o, pinned) }, "CPU 2 of a worker stays at its lowest frequency", "", true},
		{"more workers than CPUs", map[string]string{cpus + "online": "2-3"}, func(m *Machine, o *Outcome) { m.checkWorkers(o, pinned) }, "2 workers are on a machine with 2 CPUs", "", false},
		{"an interrupt beside a worker", with(map[string]string{irq + "msi_irqs/77": "msix", "/proc/irq/77/smp_affinity_list": "3"}),
			func(m *Machine, o *Outcome) { m.checkInterrupts(o, pinned) }, "interrupt 77 is served on CPU 3, where a worker polls", "", true},
		{"a far NIC", with(map[string]string{irq + "numa_node": "1", "/sys/devices/system/node/node1/cpulist": "0-1"}),
			func(m *Machine, o *Outcome) { m.checkInterrupts(o, pinned) }, "its NIC is at NUMA node 1, and workers are on CPUs of other nodes: 2-3", "", false},
	} {
		m := fixture(t, c.files)
		o := &Outcome{}
		c.look(m, o)
		if len(o.Findings) != 1 || !strings.Contains(o.Findings[0].Text, c.text) || degree(&o.Findings[0]) != c.bad || o.Findings[0].Cost == "" || o.Findings[0].Command+o.Findings[0].Remedy == "" {
			t.Errorf("%s: %+v", c.name, o.Findings)
			continue
		}
		if !c.mend {
			continue
		}
		line := strings.NewReplacer(" /sys/", " "+m.Root+"/sys/", " /proc/", " "+m.Root+"/proc/").Replace(o.Findings[0].Command)
		if out, err := exec.Command("sh", "-c", line).CombinedOutput(); err != nil {
			t.Errorf("%s: %s: %v: %s", c.name, line, err, out)
		}
		o = &Outcome{}
		if c.look(m, o); len(o.Findings) > 0 {
			t.Errorf("%s: after %s: %+v", c.name, line, o.Findings)
		}
	}
}

// degree is how bad a finding is.
func degree(f *Finding) string {
	switch {
	case f.Severe:
		return "severe"
	case f.Note:
		return "note"
	}
	return ""
}

// A machine on which all is well has no findings, and says what it did not look at.
func TestGoodMachine(t *testing.T) {
	cfg := config.Default()
	cfg.Ports, cfg.Worker.CPUs = []config.Port{{Name: "p1"}}, []int{2}
	m := fixture(t, map[string]string{
		kernel.HugePagesFile: "always [madvise] never", clockSource + "current_clocksource": "tsc", "/sys/devices/system/cpu/online": "0-3",
		"/sys/class/net/p1/device/msi_irqs/7": "", "/proc/irq/7/smp_affinity_list": "2", "/proc/irq/7/effective_affinity_list": "1",
		"/proc/42/status": "CapEff:\t0000004000003000", "/proc/42/limits": "Max locked memory  unlimited  unlimited  bytes",
	})
	o := &Outcome{}
	m.checkKernel(o)
	m.checkHugePages(o)
	m.checkMemlock(o, cfg)
	m.CheckClock(o)
	m.checkWorkers(o, cfg)
	m.checkInterrupts(o, cfg)
	if len(o.Findings)+len(o.Skipped) > 0 {
		t.Errorf("%+v", o)
	}
	m = fixture(t, nil)
	m.Pid, o = 0, &Outcome{}
	m.checkHugePages(o)
	m.checkMemlock(o, cfg)
	m.checkWorkers(o, cfg)
	m.checkInterrupts(o, config.Default())
	if len(o.Skipped) != 4 || len(o.Findings) > 0 {
		t.Errorf("without files: %+v", o)
	}
}

// What a NIC does to packets before XDP is found.
func TestOffloads(t *testing.T) {
	cfg := config.Default()
	cfg.Ports = []config.Port{{Name: "p1"}}
	br := &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Index: 2, Name: "br0"}, VlanFiltering: new(true)}
	port := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Index: 1, Name: "p1", MasterIndex: 2}}
	s := &hostNetwork{links: iface.Links{1: port, 2: br}}
	for _, c := range []struct {
		on     string
		want   string
		severe bool
	}{
		{iface.FeatureLRO, "ethtool -K p1 lro off", true}, {iface.FeatureHWGRO, "ethtool -K p1 rx-gro-hw off", false}, {iface.FeatureVLAN, "ethtool -K p1 rxvlan off", false},
	} {
		m := &Machine{Features: func(string) (map[string]bool, error) { return map[string]bool{c.on: true}, nil }}
		o := &Outcome{}
		m.checkOffloads(o, cfg, s)
		if len(o.Findings) != 1 || o.Findings[0].Command != c.want || o.Findings[0].Severe != c.severe || o.Findings[0].Port != "p1" {
			t.Errorf("%s: %+v", c.on, o)
		}
	}
}

// Tags are certain where group frames have one, or a VLAN interface is on top of the port or of its bridge. A bridge that
// filters VLANs gives an access port no tags, whatever is on top of it.
func TestTaggedPorts(t *testing.T) {
	vlan := func(parent int) netlink.Link {
		return &netlink.Vlan{LinkAttrs: netlink.LinkAttrs{Index: 3, Name: "x.100", ParentIndex: parent}, VlanId: 100}
	}
	for _, c := range []struct {
		name    string
		filters bool
		on      int // index of the interface below the VLAN interface; 0: there is none
		own     int // VLAN of group frames
		why     string
		certain bool
	}{
		{"nothing", false, 0, 0, "", false},
		{"its own", true, 0, 5, "its group frames have VLAN 5", true},
		{"on the port", false, 1, 0, "VLAN interface x.100 is on top of it", true},
		{"on the bridge", false, 2, 0, "VLAN interface x.100 is on top of it", true},
		{"a bridge that filters", true, 0, 0, "bridge br0 filters VLANs", false},
		{"on a bridge that filters", true, 2, 0, "bridge br0 filters VLANs", false},
	} {
		s := &hostNetwork{links: iface.Links{
			1: &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Index: 1, Name: "p1", MasterIndex: 2}},
			2: &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Index: 2, Name: "br0"}, VlanFiltering: &c.filters},
		}}
		if c.on != 0 {
			s.links[3] = vlan(c.on)
		}
		if why, certain := s.tagged("p1", &config.Port{Name: "p1", VLAN: c.own}); why != c.why || certain != c.certain {
			t.Errorf("%s: %q, %v; want %q, %v", c.name, why, certain, c.why, c.certain)
		}
	}
}

func TestCPULists(t *testing.T) {
	for text, want := range map[string]string{"0-3,8": "0-3,8", "5": "5", "1,2,3": "1-3", "0,2": "0,2", "": "", "x": "", "3-1": ""} {
		if got := joined(cpuList(text)); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
