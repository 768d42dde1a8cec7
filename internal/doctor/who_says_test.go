// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"maps"
	"net/netip"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/bpf"
	"github.com/gleam-rdma/gleam/config"
	"github.com/gleam-rdma/gleam/dataplane/iface"
	"github.com/gleam-rdma/gleam/internal/doctor/checks"
	"github.com/gleam-rdma/gleam/internal/doctor/kernel"
	"github.com/gleam-rdma/gleam/test/labtest"
)

// words are what the three places say of one fault: nothing, that it is there, or that the switch does
// not start with it. Doctor's word for an error is its own.
type words struct{ check, doctor, log string }

const (
	silent  = ""
	told    = "yes"
	isError = "error"
	ends    = "ends"
)

// foundBy is a check, and whether the switch starts with what it finds.
type foundBy struct {
	check string
	fatal bool
}

// The table "Who says what" of docs/PORTS.md has what the three places say of what the checks find on a
// machine on which all is wrong, and of the checks that ask a running gleamd.
func TestWhoSaysWhat(t *testing.T) {
	got := wrongEverywhere(t)
	for _, c := range []string{"ports", "xdp-mode"} { // of gleamd, which says them as they happen
		got[foundBy{c, false}] = words{silent, told, told}
	}
	got[foundBy{checks.CheckNamespace, false}] = words{told, told, silent} // TestAnotherNamespace; a gleamd is in its own
	// The ID is made of a file that the test cannot take away.
	got[foundBy{checks.CheckSwitchID, true}] = words{ends, isError, ends}
	for _, c := range checks.All {
		if _, has := got[foundBy{c, false}]; !has && got[foundBy{c, true}] == (words{}) {
			t.Errorf("the check %s has found nothing on a machine on which all is wrong", c)
		}
	}
	want := whoSaysWhat(t)
	for k := range maps.Keys(want) {
		if _, has := got[k]; !has {
			t.Errorf("the table has a row of %+v, and there is no such finding", k)
		}
	}
	for k, w := range got {
		if slices.Contains(startChecks, k.check) != (w.check != silent) || !slices.Contains(Checks, k.check) {
			t.Errorf("%+v: of --check %v, of doctor %v", k, slices.Contains(startChecks, k.check), slices.Contains(Checks, k.check))
		}
		if want[k] != w {
			t.Errorf("%+v: the table has %+v, and said is %+v", k, want[k], w)
		}
	}
}

// whoSaysWhat reads the table.
func whoSaysWhat(t *testing.T) map[foundBy]words {
	t.Helper()
	text, err := os.ReadFile("../../docs/PORTS.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n## Who says what\n")
	rows := make(map[foundBy]words)
	for _, row := range regexp.MustCompile("(?m)^\\|[^|]+\\| `([a-z-]+)` \\|([^|]*)\\|([^|]*)\\|([^|]*)\\|$").FindAllStringSubmatch(section, -1) {
		cells := row[2:]
		for i, c := range cells {
			switch c = strings.TrimSpace(c); {
			case c == "":
				cells[i] = silent
			case strings.HasPrefix(c, "refused"), strings.HasPrefix(c, "it does not start"):
				cells[i] = ends
			case strings.HasPrefix(c, "error"):
				cells[i] = isError
			default:
				cells[i] = told
			}
		}
		key := foundBy{row[1], cells[0] == ends}
		if _, twice := rows[key]; twice {
			t.Errorf("the table has two rows of %+v", key)
		}
		rows[key] = words{cells[0], cells[1], cells[2]}
	}
	return rows
}

// wrongEverywhere has the checks of a start look at a machine on which all is wrong, in a network namespace of
// its own, and returns what the three places make of their findings. Doctor has an error if all of them are.
func wrongEverywhere(t *testing.T) map[foundBy]words {
	labtest.Enter(t)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range []string{"1", "2"} {
		must(netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "p" + p, MTU: 1000}, PeerName: "h" + p}))
	}
	second, err := netlink.LinkByName("p2")
	must(err)
	address, err := netlink.ParseAddr("10.77.0.1/16") // no route, as the interface is down
	must(err)
	must(netlink.AddrAdd(second, address))
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.XDP, License: "GPL", Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 2), asm.Return()}})
	if err != nil {
		labtest.Unavailable(t, "load an XDP program: %v", err)
	}
	defer p.Close()
	must(netlink.LinkSetXdpFdWithFlags(second, p.FD(), 1<<1)) // generic

	const cpus, device, clock = "/sys/devices/system/cpu/", "/sys/class/net/p1/device/", "/sys/devices/system/clocksource/clocksource0/"
	m := &machine{&checks.Machine{
		Root: labtest.Files(t, map[string]string{
			kernel.HugePagesFile: "always madvise [never]", clock + "current_clocksource": "hpet",
			"/proc/sys/net/ipv4/ip_forward": "0", "/proc/self/status": "CapEff:\t0000000000003000", "/proc/self/limits": "Max locked memory  65536  65536  bytes",
			cpus + "online": "0-2", cpus + "cpu2/cpufreq/scaling_governor": "powersave", device + "msi_irqs/77": "msix", "/proc/irq/77/smp_affinity_list": "2",
		}),
		Release: "5.4.0", Synchronised: func() (bool, error) { return true, nil },
		Features: func(string) (map[string]bool, error) {
			return map[string]bool{iface.FeatureLRO: true, iface.FeatureHWGRO: true}, nil
		},
		XDPFeatures: func(int) (iface.XDPFeatures, error) { return 0, unix.ENOENT },
		HashesPorts: func(string) (bool, error) { return false, nil },
	}}
	cfg := config.Default()
	cfg.User, cfg.State = config.UserAuto, ""
	cfg.Ports = []config.Port{{Name: "p1"}, {Name: "p2"}, {Name: "none0"}}
	cfg.GroupPrefixes = []netip.Prefix{netip.MustParsePrefix("10.77.0.0/16"), netip.MustParsePrefix("10.99.0.0/24")}
	cfg.Worker.CPUs, cfg.FastPath, cfg.XDP.Mode = []int{2, 3}, "auto", config.XDPGeneric
	o := m.start(cfg, &Running{Ports: []api.Port{{Name: "p1", Guard: map[string]api.GuardDrop{bpf.DropGuardARP.String(): {MAC: "02:00:00:00:77:01", Time: time.Now()}}}}})
	r := &Report{}
	r.take(o)

	said := make(map[foundBy]words)
	for i := range o.Findings {
		f := &o.Findings[i]
		if !slices.Contains(checks.All, f.Check) {
			continue // of this process, and not of the machine
		}
		k := foundBy{f.Check, f.Fatal}
		w, again := said[k]
		w.check = told
		if f.Fatal {
			w.check = ends
		}
		if severity := r.Findings[i].Severity; severity != Error {
			w.doctor = told
		} else if !again {
			w.doctor = isError
		}
		switch {
		case f.ForLog():
			w.log = told
		case f.Fatal:
			w.log = ends
		}
		said[k] = w
	}
	return said
}
