// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/gleam-rdma/gleam/config"
)

// checkWorkers checks on which CPUs the workers are.
func (m *Machine) checkWorkers(o *Outcome, cfg *config.Config) {
	online := cpuList(m.Read("/sys/devices/system/cpu/online"))
	if len(online) == 0 {
		o.skip(CheckWorkers, "the kernel does not say which CPUs there are")
		return
	}
	var found []Finding
	for _, cpu := range cfg.Worker.CPUs {
		if cpu < 0 {
			continue
		}
		if !slices.Contains(online, cpu) {
			found = append(found, Finding{
				Severe: true, Text: fmt.Sprintf("worker.cpu names CPU %d, which is not online", cpu),
				Cost: "the worker floats over all CPUs, and shares them with everything else", Command: fmt.Sprintf("echo 1 > /sys/devices/system/cpu/cpu%d/online", cpu),
				Remedy: "or another CPU in worker.cpu, and a restart of gleamd",
			})
			continue
		}
		governor := fmt.Sprintf("/sys/devices/system/cpu/cpu%d/cpufreq/scaling_governor", cpu)
		if m.Read(governor) == "powersave" && !strings.HasPrefix(m.Read(strings.TrimSuffix(governor, "scaling_governor")+"scaling_driver"), "intel_pstate") {
			found = append(found, Finding{
				Text: fmt.Sprintf("CPU %d of a worker stays at its lowest frequency (governor powersave)", cpu),
				Cost: "fewer packets a second, and a longer time for each", Command: "echo performance > " + governor,
			})
		}
	}
	if n := len(cfg.Worker.CPUs); n > 1 && n >= len(online) && cfg.Worker.Spin > 0 {
		found = append(found, Finding{
			watched: true, Text: fmt.Sprintf("%d workers are on a machine with %d CPUs", n, len(online)),
			Cost:   "no CPU is left for interrupts and everything else, so no worker polls: each packet on an idle switch waits for a wake-up",
			Remedy: fmt.Sprintf("at most %d entries in worker.cpu, and a restart of gleamd", len(online)-1),
		})
	}
	o.add(CheckWorkers, found...)
}

// checkInterrupts checks where the NICs' interrupts are served: beside the workers, on their
// NUMA nodes.
func (m *Machine) checkInterrupts(o *Outcome, cfg *config.Config) {
	var pinned []int
	for _, cpu := range cfg.Worker.CPUs {
		if cpu >= 0 {
			pinned = append(pinned, cpu)
		}
	}
	if len(pinned) == 0 {
		o.skip(CheckInterrupts, "no worker has a CPU of its own (worker.cpu)")
		return
	}
	var found []Finding
	looked := false
	online := cpuList(m.Read("/sys/devices/system/cpu/online"))
	for i := range cfg.Ports {
		port := cfg.Ports[i].Name
		device := "/sys/class/net/" + port + "/device/"
		irqs := m.Names(device + "msi_irqs")
		looked = looked || len(irqs) > 0
		for _, irq := range irqs {
			at := "/proc/irq/" + irq + "/"
			on := cpuList(m.Read(at + "effective_affinity_list"))
			if on == nil {
				on = cpuList(m.Read(at + "smp_affinity_list"))
			}
			if cfg.Worker.Spin == 0 || len(on) == 0 || slices.ContainsFunc(on, func(cpu int) bool { return !slices.Contains(pinned, cpu) }) {
				continue
			}
			f := Finding{
				Port: port, Text: fmt.Sprintf("interrupt %s is served on CPU %s, where a worker polls", irq, joined(on)),
				Cost: "receiving and the worker take turns: both fall behind when packets come fast",
			}
			if others := without(online, pinned); len(others) > 0 {
				f.Command = fmt.Sprintf("echo %s > %ssmp_affinity_list", joined(others), at)
				f.Remedy = "irqbalance would move it back: name the CPUs of the workers in IRQBALANCE_BANNED_CPULIST"
			} else {
				f.Remedy = "leave a CPU without a worker (worker.cpu)"
			}
			found = append(found, f)
		}
		node, err := strconv.Atoi(m.Read(device + "numa_node"))
		if err != nil || node < 0 {
			continue
		}
		near := cpuList(m.Read(fmt.Sprintf("/sys/devices/system/node/node%d/cpulist", node)))
		if far := without(pinned, near); len(near) > 0 && len(far) > 0 {
			found = append(found, Finding{
				Port: port, Text: fmt.Sprintf("its NIC is at NUMA node %d, and workers are on CPUs of other nodes: %s", node, joined(far)),
				Cost: "each packet crosses the link between the nodes twice", Remedy: fmt.Sprintf("CPUs of %s in worker.cpu, and a restart of gleamd", joined(near)),
			})
		}
	}
	if !looked && len(found) == 0 {
		o.skip(CheckInterrupts, "no port's interface has interrupts of its own")
		return
	}
	o.add(CheckInterrupts, found...)
}

// cpuList reads a list such as 0-3,8; nil if it is none.
func cpuList(text string) (cpus []int) {
	for part := range strings.SplitSeq(text, ",") {
		a, b, isRange := strings.Cut(strings.TrimSpace(part), "-")
		first, err := strconv.Atoi(a)
		if err != nil {
			return nil
		}
		last := first
		if isRange {
			if last, err = strconv.Atoi(b); err != nil || last < first || last-first > 1<<16 {
				return nil
			}
		}
		for cpu := first; cpu <= last; cpu++ {
			cpus = append(cpus, cpu)
		}
	}
	return cpus
}

// joined writes a list of CPUs as the kernel reads it.
func joined(cpus []int) string {
	var b strings.Builder
	for i := 0; i < len(cpus); i++ {
		first := cpus[i]
		for i+1 < len(cpus) && cpus[i+1] == cpus[i]+1 {
			i++
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		fmt.Fprint(&b, first)
		if cpus[i] > first {
			fmt.Fprintf(&b, "-%d", cpus[i])
		}
	}
	return b.String()
}

// without returns the CPUs that the other list does not have.
func without(cpus, others []int) (left []int) {
	for _, cpu := range cpus {
		if !slices.Contains(others, cpu) {
			left = append(left, cpu)
		}
	}
	return left
}
