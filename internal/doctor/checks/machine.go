// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/gleam-rdma/gleam/config"
	"github.com/gleam-rdma/gleam/dataplane/iface"
	"github.com/gleam-rdma/gleam/dataplane/ntuple"
	"github.com/gleam-rdma/gleam/internal/doctor/kernel"
)

// Machine is what a computer says of itself. Tests give it other folders and answers.
type Machine struct {
	Root    string // above /proc and /sys
	Release string // the release of the kernel
	Pid     int    // the PID of the gleamd that runs; 0: none does
	// Elsewhere means that the gleamd that runs is in another network namespace than the calling thread.
	Elsewhere bool
	// Synchronised reports whether the kernel's clock is set by a time server.
	Synchronised func() (bool, error)
	// Features returns which features of an interface are on, by the names of iface.
	Features func(name string) (map[string]bool, error)
	// XDPFeatures returns what the driver of an interface has for XDP.
	XDPFeatures func(ifindex int) (iface.XDPFeatures, error)
	// HashesPorts reports whether an interface chooses the receive queue of UDP packets by ports, too.
	HashesPorts func(name string) (bool, error)
}

// This describes the computer that the process runs on.
func This() *Machine {
	return &Machine{Release: kernel.Release(), Synchronised: clockIsSynchronised, Features: iface.Features, XDPFeatures: iface.FeaturesOf, HashesPorts: ntuple.HashesPorts}
}

func clockIsSynchronised() (bool, error) {
	var t unix.Timex
	if _, err := unix.Adjtimex(&t); err != nil {
		return false, err
	}
	return t.Status&unix.STA_UNSYNC == 0, nil
}

// Read returns a file of /proc or /sys without white space at its ends; empty: it is not there.
func (m *Machine) Read(path string) string {
	b, err := os.ReadFile(filepath.Join("/", m.Root, path))
	if err != nil {
		return ""
	}
	return string(bytes.TrimSpace(b))
}

// Names returns the entries of a folder of /proc or /sys.
func (m *Machine) Names(path string) (names []string) {
	list, _ := os.ReadDir(filepath.Join("/", m.Root, path))
	for _, e := range list {
		names = append(names, e.Name())
	}
	return names
}

// checkKernel checks the kernel's version.
func (m *Machine) checkKernel(o *Outcome) {
	var found []Finding
	if kernel.Oldest.After(m.Release) {
		d := kernel.TooOld(m.Release)
		found = append(found, Finding{Severe: true, Text: d.Text, Cost: d.Cost, Remedy: "install a newer kernel: the distribution's backports have one"})
	}
	o.add(CheckKernel, found...)
}

// checkHugePages checks that packet memory can be in huge pages.
func (m *Machine) checkHugePages(o *Outcome) {
	switch kernel.HugePages(m.Root) {
	case "":
		o.skip(CheckHugePages, "this kernel has no transparent huge pages")
	case "never":
		o.add(CheckHugePages, Finding{
			Text:    "transparent huge pages are off",
			Cost:    kernel.CostNoHugePages,
			Command: "echo madvise > " + kernel.HugePagesFile, Remedy: "gleamd uses them from its next start on; after a reboot the setting is gone unless the kernel's command line has transparent_hugepage=madvise",
		})
	default:
		o.add(CheckHugePages)
	}
}

// checkMemlock checks that gleamd may lock its packet memory, again if all ports were gone at
// once: the one that runs, or one that this process starts.
func (m *Machine) checkMemlock(o *Outcome, cfg *config.Config) {
	who, pid := "gleamd", strconv.Itoa(m.Pid)
	if m.Pid == 0 {
		who, pid = "a gleamd that this process starts", "self"
	}
	status, limits := m.Read("/proc/"+pid+"/status"), m.Read("/proc/"+pid+"/limits")
	limit, ok := memlockLimit(limits)
	if status == "" || !ok {
		o.skip(CheckMemlock, "the limits of gleamd's process cannot be read; root can")
		return
	}
	enough := uint64(1 << unix.CAP_IPC_LOCK)
	if m.Pid == 0 {
		enough |= 1 << unix.CAP_SYS_RESOURCE // it raises its limit (privilege.RaiseMemlock)
	}
	has, _ := strconv.ParseUint(field(status, "CapEff:"), 16, 64)
	need := uint64(cfg.UMEM.Frames) * uint64(cfg.UMEM.FrameSize)
	if has&enough != 0 || limit >= need {
		return
	}
	f := Finding{
		Text:   fmt.Sprintf("%s may lock %d KiB of memory, and its packet memory has %d KiB", who, limit>>10, need>>10),
		Cost:   "when the interfaces of all ports have gone and come back, the ports cannot be opened again",
		Remedy: "LimitMEMLOCK=infinity in the systemd unit, ulimit -l unlimited, or a start as root",
	}
	if m.Pid != 0 {
		f.Command, f.Remedy = fmt.Sprintf("prlimit --pid %d --memlock=unlimited", m.Pid), "for the next start: "+f.Remedy
	}
	o.add(CheckMemlock, f)
}

// memlockLimit reads the soft limit of /proc/PID/limits.
func memlockLimit(limits string) (bytes uint64, ok bool) {
	f := strings.Fields(field(limits, "Max locked memory"))
	if len(f) == 0 {
		return 0, false
	}
	if f[0] == "unlimited" {
		return 1<<64 - 1, true
	}
	n, err := strconv.ParseUint(f[0], 10, 64)
	return n, err == nil
}

// field returns what follows a name at the beginning of a line.
func field(text, name string) string {
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, name); ok {
			return strings.TrimSpace(rest)
		}
	}
	return ""
}

const clockSource = "/sys/devices/system/clocksource/clocksource0/"

// slowClocks are clock sources that are read from a device.
var slowClocks = []string{"hpet", "acpi_pm", "pit", "jiffies", "refined-jiffies"}

// CheckClock checks that the time is cheap to read and right.
func (m *Machine) CheckClock(o *Outcome) {
	var found []Finding
	if now := m.Read(clockSource + "current_clocksource"); slices.Contains(slowClocks, now) {
		f := Finding{
			Text:   fmt.Sprintf("the kernel reads the time from %s", now),
			Cost:   "each look at the clock takes a microsecond or more, and the worker looks at it for each batch",
			Remedy: "see why the kernel does not trust the CPU's counter: dmesg | grep -i -e tsc -e clocksource",
		}
		for _, better := range []string{"tsc", "kvm-clock", "arch_sys_counter", "hyperv_clocksource_tsc_page"} {
			if slices.Contains(strings.Fields(m.Read(clockSource+"available_clocksource")), better) {
				f.Command = fmt.Sprintf("echo %s > %scurrent_clocksource", better, clockSource)
				break
			}
		}
		found = append(found, f)
	}
	if ok, err := m.Synchronised(); err == nil && !ok {
		found = append(found, Finding{
			Note: true, Text: "no time server sets the clock",
			Cost:    "times in events and logs cannot be compared with those of hosts and other switches, and certificates seem to end early or late. Groups are not affected: leases and timeouts are measured by clocks that nobody sets",
			Command: "timedatectl set-ntp true", Remedy: "or chrony, ptp4l with phc2sys",
		})
	}
	o.add(CheckClock, found...)
}
