// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/internal/config"
	"github.com/gleam-rdma/gleam/internal/kernel"
)

// fixture is a machine with files of /proc and /sys.
func fixture(t *testing.T, files map[string]string) *machine {
	t.Helper()
	m := &machine{root: t.TempDir(), release: "6.1.0-13-amd64", pid: 42, synchronised: func() (bool, error) { return true, nil }}
	for name, text := range files {
		p := filepath.Join(m.root, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return m
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
		look  func(*machine, *Report)
		text  string
		bad   Severity
		mend  bool // the command changes files, and ends it
	}{
		{"no huge pages", map[string]string{kernel.HugePagesFile: "always madvise [never]"}, (*machine).checkHugePages, "transparent huge pages are off", Warning, true},
		{"a slow clock", map[string]string{clockSource + "current_clocksource": "hpet", clockSource + "available_clocksource": "hpet tsc acpi_pm"}, (*machine).checkClock, "reads the time from hpet", Warning, true},
		{"a slow clock and no other", map[string]string{clockSource + "current_clocksource": "acpi_pm", clockSource + "available_clocksource": "acpi_pm"}, (*machine).checkClock, "reads the time from acpi_pm", Warning, false},
		{"a wrong clock", nil, func(m *machine, r *Report) {
			m.synchronised = func() (bool, error) { return false, nil }
			m.checkClock(r)
		}, "no time server sets the clock", Warning, false},
		{"little locked memory", map[string]string{"/proc/42/status": "Name:\tgleamd\nCapEff:\t0000000000003000", "/proc/42/limits": "Limit  Soft  Hard  Units\nMax locked memory         8388608              8388608              bytes"},
			func(m *machine, r *Report) { m.checkMemlock(r, pinned) }, "gleamd may lock 8192 KiB of memory, and its packet memory has 65536 KiB", Warning, false},
		{"an old kernel", nil, func(m *machine, r *Report) { m.release = "5.4.0-42"; m.checkKernel(r) }, "the kernel is Linux 5.4.0-42", Error, false},
		{"a worker's CPU is off", map[string]string{cpus + "online": "0-2"}, func(m *machine, r *Report) { m.checkWorkers(r, pinned) }, "names CPU 3, which is not online", Error, false},
		{"a slow CPU", with(map[string]string{cpus + "cpu2/cpufreq/scaling_governor": "powersave", cpus + "cpu2/cpufreq/scaling_driver": "acpi-cpufreq"}),
			func(m *machine, r *Report) { m.checkWorkers(r, pinned) }, "CPU 2 of a worker stays at its lowest frequency", Warning, true},
		{"more workers than CPUs", map[string]string{cpus + "online": "2-3"}, func(m *machine, r *Report) { m.checkWorkers(r, pinned) }, "2 workers are on a machine with 2 CPUs", Warning, false},
		{"an interrupt beside a worker", with(map[string]string{irq + "msi_irqs/77": "msix", "/proc/irq/77/smp_affinity_list": "3"}),
			func(m *machine, r *Report) { m.checkInterrupts(r, pinned) }, "interrupt 77 is served on CPU 3, where a worker polls", Warning, true},
		{"a far NIC", with(map[string]string{irq + "numa_node": "1", "/sys/devices/system/node/node1/cpulist": "0-1"}),
			func(m *machine, r *Report) { m.checkInterrupts(r, pinned) }, "its NIC is at NUMA node 1, and workers are on CPUs of other nodes: 2-3", Warning, false},
	} {
		m := fixture(t, c.files)
		r := &Report{}
		c.look(m, r)
		if len(r.Findings) != 1 || !strings.Contains(r.Findings[0].Text, c.text) || r.Findings[0].Severity != c.bad || r.Findings[0].Cost == "" || r.Findings[0].Command+r.Findings[0].Remedy == "" {
			t.Errorf("%s: %+v", c.name, r.Findings)
			continue
		}
		if !c.mend {
			continue
		}
		line := strings.NewReplacer(" /sys/", " "+m.root+"/sys/", " /proc/", " "+m.root+"/proc/").Replace(r.Findings[0].Command)
		if out, err := exec.Command("sh", "-c", line).CombinedOutput(); err != nil {
			t.Errorf("%s: %s: %v: %s", c.name, line, err, out)
		}
		r = &Report{}
		if c.look(m, r); len(r.Findings) > 0 {
			t.Errorf("%s: after %s: %+v", c.name, line, r.Findings)
		}
	}
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
	r := &Report{}
	m.checkKernel(r)
	m.checkHugePages(r)
	m.checkMemlock(r, cfg)
	m.checkClock(r)
	m.checkWorkers(r, cfg)
	m.checkInterrupts(r, cfg)
	for _, c := range r.Checks {
		if c.State != OK {
			t.Errorf("%+v", c)
		}
	}
	m = fixture(t, nil)
	m.pid, r = 0, &Report{}
	m.checkHugePages(r)
	m.checkMemlock(r, cfg)
	m.checkWorkers(r, cfg)
	m.checkInterrupts(r, config.Default())
	for _, c := range r.Checks {
		if c.State != Skipped || c.Reason == "" {
			t.Errorf("without files: %+v", c)
		}
	}
}

// What a NIC merges is found.
func TestOffloads(t *testing.T) {
	cfg := config.Default()
	cfg.Ports = []config.Port{{Name: "p1"}}
	r := &Report{}
	checkOffloads(r, cfg, &network{}, func(string) (map[string]bool, error) {
		return map[string]bool{featureLRO: true, featureHWGRO: true}, nil
	})
	if len(r.Findings) != 2 || r.Findings[0].Command != "ethtool -K p1 lro off" || r.Findings[0].Severity != Error || r.Findings[1].Command != "ethtool -K p1 rx-gro-hw off" {
		t.Errorf("%+v", r.Findings)
	}
	r = &Report{}
	checkHostOffloads(r, "eth0", func(string) (map[string]bool, error) { return map[string]bool{featureLRO: true}, nil })
	if len(r.Findings) != 1 || r.Findings[0].Command != "ethtool -K eth0 lro off" {
		t.Errorf("%+v", r.Findings)
	}
}

// What is wrong with an RDMA device is found.
func TestDevice(t *testing.T) {
	const dev, verbs = infiniband + "mlx5_0/ports/1/", "/sys/class/infiniband_verbs/uverbs0/ibdev"
	ip := netip.MustParseAddr("10.77.0.1")
	for _, c := range []struct {
		name    string
		change  map[string]string // of a device that is all right; "": the file is not there
		want    string            // ends a part of the finding
		command string
	}{
		{"all is well", nil, "", ""},
		{"none", map[string]string{dev + "gid_attrs/ndevs/0": "eth7"}, "no RDMA device is on eth0", "rdma link add rxe_eth0 type rxe netdev eth0"},
		{"RoCE v1 alone", map[string]string{dev + "gid_attrs/types/0": "IB/RoCE v1"}, "none of type RoCE v2", "cma_roce_mode -d mlx5_0 -p 1 -m 2"},
		{"another address", map[string]string{dev + "gids/0": "0000:0000:0000:0000:0000:ffff:0a4d:0009"}, "mlx5_0 has no GID for 10.77.0.1", "ip address change 10.77.0.1 dev eth0"},
		{"not active", map[string]string{dev + "state": "1: DOWN"}, "port 1 of mlx5_0 is not active (1: DOWN)", "ip link set eth0 up"},
		{"InfiniBand", map[string]string{dev + "link_layer": "InfiniBand"}, "no Ethernet", ""},
		{"no ib_uverbs", map[string]string{verbs: ""}, "ib_uverbs is not loaded", "modprobe ib_uverbs"},
	} {
		files := map[string]string{
			dev + "gids/0": "0000:0000:0000:0000:0000:ffff:0a4d:0001", dev + "gid_attrs/types/0": "RoCE v2", dev + "gid_attrs/ndevs/0": "eth0",
			dev + "state": "4: ACTIVE", dev + "link_layer": "Ethernet", verbs: "mlx5_0", "/dev/infiniband/uverbs0": "",
		}
		for k, v := range c.change {
			if files[k] = v; v == "" {
				delete(files, k)
			}
		}
		r := &Report{}
		fixture(t, files).checkDevice(r, "eth0", ip, &HostOptions{})
		r.Findings = deleteLocked(r.Findings)
		if c.want == "" {
			if len(r.Findings) > 0 {
				t.Errorf("%s: %+v", c.name, r.Findings)
			}
		} else if len(r.Findings) != 1 || !strings.Contains(r.Findings[0].Text, c.want) || r.Findings[0].Command != c.command || r.Findings[0].Cost == "" {
			t.Errorf("%s: %+v", c.name, r.Findings)
		}
	}
}

// deleteLocked leaves out the finding about this user's limit.
func deleteLocked(list []Finding) (rest []Finding) {
	for _, f := range list {
		if !strings.Contains(f.Text, "may lock") {
			rest = append(rest, f)
		}
	}
	return rest
}

// Settings of queue pairs that do not go with a group are found.
func TestSettings(t *testing.T) {
	for _, c := range []struct {
		timeout, retries, rnr uint8
		dead                  time.Duration
		want                  string
		severity              Severity
	}{
		{14, 7, 7, 100 * time.Millisecond, "", ""},
		{14, 7, 7, 0, "", ""},
		{0, 7, 7, 0, "waits for ever", Error},
		{18, 7, 7, 100 * time.Millisecond, "not longer than a sender's timeout", Error},
		{8, 7, 7, 100 * time.Millisecond, "the sender would give up first", Error},
		{14, 8, 7, 0, "8 is not in 1 to 7", Error},
		{14, 3, 7, 0, "retry_cnt 3", Warning},
		{22, 7, 7, 0, "timeout 22", Warning},
		{14, 7, 3, 100 * time.Millisecond, "rnr_retry 3", Warning},
	} {
		r := &Report{}
		checkSettings(r, &HostOptions{PathMTU: 1024, Timeout: c.timeout, Retries: c.retries, RNRRetry: c.rnr, DeadAfter: c.dead})
		if c.want == "" {
			if len(r.Findings) > 0 {
				t.Errorf("%+v: %+v", c, r.Findings)
			}
		} else if len(r.Findings) != 1 || !strings.Contains(r.Findings[0].Text, c.want) || r.Findings[0].Severity != c.severity {
			t.Errorf("%+v: %+v", c, r.Findings)
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
