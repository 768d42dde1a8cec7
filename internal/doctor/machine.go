// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/gleam-rdma/gleam/internal/config"
	"github.com/gleam-rdma/gleam/internal/kernel"
)

// machine is what a computer says of itself. Tests give it other folders and answers.
type machine struct {
	root    string // above /proc and /sys
	release string // of the kernel
	pid     int    // of gleamd; 0: it does not run
	// synchronised reports whether the kernel's clock is set by a time server.
	synchronised func() (bool, error)
}

// thisMachine describes the computer that the process runs on.
func thisMachine() *machine {
	return &machine{release: kernel.Release(), synchronised: clockIsSynchronised}
}

func clockIsSynchronised() (bool, error) {
	var t unix.Timex
	if _, err := unix.Adjtimex(&t); err != nil {
		return false, err
	}
	return t.Status&unix.STA_UNSYNC == 0, nil
}

// read returns a file of /proc or /sys without white space at its ends; empty: it is not there.
func (m *machine) read(path string) string {
	b, err := os.ReadFile(filepath.Join("/", m.root, path))
	if err != nil {
		return ""
	}
	return string(bytes.TrimSpace(b))
}

// names returns the entries of a folder of /proc or /sys.
func (m *machine) names(path string) (names []string) {
	list, _ := os.ReadDir(filepath.Join("/", m.root, path))
	for _, e := range list {
		names = append(names, e.Name())
	}
	return names
}

// checkKernel checks the kernel's version.
func (m *machine) checkKernel(r *Report) {
	var found []Finding
	if kernel.Oldest.After(m.release) {
		f := degraded(kernel.TooOld(m.release), Error)
		f.Remedy = "install a newer kernel: the distribution's backports have one"
		found = append(found, f)
	}
	r.add("kernel", found...)
}

// checkHugePages checks that packet memory can be in huge pages.
func (m *machine) checkHugePages(r *Report) {
	switch kernel.HugePages(m.root) {
	case "":
		r.skip("huge-pages", "this kernel has no transparent huge pages")
	case "never":
		r.add("huge-pages", Finding{
			Severity: Warning, Text: "transparent huge pages are off",
			Cost:    kernel.CostNoHugePages,
			Command: "echo madvise > " + kernel.HugePagesFile, Remedy: "gleamd uses them from its next start on; after a reboot the setting is gone unless the kernel's command line has transparent_hugepage=madvise",
		})
	default:
		r.add("huge-pages")
	}
}

// checkMemlock checks that gleamd may lock its packet memory, again if all ports were gone at
// once.
func (m *machine) checkMemlock(r *Report, cfg *config.Config) {
	if m.pid == 0 {
		r.skip("memlock", "gleamd does not run")
		return
	}
	status, limits := m.read(fmt.Sprintf("/proc/%d/status", m.pid)), m.read(fmt.Sprintf("/proc/%d/limits", m.pid))
	limit, ok := memlockLimit(limits)
	if status == "" || !ok {
		r.skip("memlock", "the limits of gleamd's process cannot be read; root can")
		return
	}
	if has, _ := strconv.ParseUint(field(status, "CapEff:"), 16, 64); has&(1<<unix.CAP_IPC_LOCK) != 0 {
		r.add("memlock")
		return
	}
	need := uint64(cfg.UMEM.Frames) * uint64(cfg.UMEM.FrameSize)
	if limit >= need {
		r.add("memlock")
		return
	}
	r.add("memlock", Finding{
		Severity: Warning, Text: fmt.Sprintf("gleamd may lock %d KiB of memory, and its packet memory has %d KiB", limit>>10, need>>10),
		Cost:    "when the interfaces of all ports have gone and come back, the ports cannot be opened again",
		Command: fmt.Sprintf("prlimit --pid %d --memlock=unlimited", m.pid), Remedy: "for the next start: LimitMEMLOCK=infinity in the systemd unit, or a start as root",
	})
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

// checkClock checks that the time is cheap to read and right.
func (m *machine) checkClock(r *Report) {
	var found []Finding
	if now := m.read(clockSource + "current_clocksource"); slices.Contains(slowClocks, now) {
		f := Finding{
			Severity: Warning, Text: fmt.Sprintf("the kernel reads the time from %s", now),
			Cost:   "each look at the clock takes a microsecond or more, and the worker looks at it for each batch",
			Remedy: "see why the kernel does not trust the CPU's counter: dmesg | grep -i -e tsc -e clocksource",
		}
		for _, better := range []string{"tsc", "kvm-clock", "arch_sys_counter", "hyperv_clocksource_tsc_page"} {
			if slices.Contains(strings.Fields(m.read(clockSource+"available_clocksource")), better) {
				f.Command = fmt.Sprintf("echo %s > %scurrent_clocksource", better, clockSource)
				break
			}
		}
		found = append(found, f)
	}
	if ok, err := m.synchronised(); err == nil && !ok {
		found = append(found, Finding{
			Severity: Warning, Text: "no time server sets the clock",
			Cost:    "times in events and logs cannot be compared with those of hosts and other switches, and certificates seem to end early or late. Groups are not affected: leases and timeouts are measured by clocks that nobody sets",
			Command: "timedatectl set-ntp true", Remedy: "or chrony, ptp4l with phc2sys",
		})
	}
	r.add("clock", found...)
}
