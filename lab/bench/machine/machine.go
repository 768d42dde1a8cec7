// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package machine describes the machine of a benchmark: a number without it is no
// measurement.
package machine

import (
	"fmt"
	"os"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

// Machine is the machine and the version of a benchmark.
type Machine struct {
	CPU     string `json:"cpu"` // model name, as the kernel has it
	Cores   int    `json:"cores"`
	Kernel  string `json:"kernel"` // release
	Go      string `json:"go"`
	Version string `json:"version"` // the version of gleam
}

// Here describes this machine. A value that the system does not report is "unknown".
func Here(version string) Machine {
	m := Machine{CPU: "unknown", Cores: runtime.NumCPU(), Kernel: "unknown", Go: runtime.Version(), Version: version}
	if b, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		if name := model(string(b)); name != "" {
			m.CPU = name
		}
	}
	var u unix.Utsname
	if unix.Uname(&u) == nil {
		m.Kernel = unix.ByteSliceToString(u.Release[:])
	}
	return m
}

// model finds the first processor's name in /proc/cpuinfo.
func model(cpuinfo string) string {
	for line := range strings.Lines(cpuinfo) {
		key, value, _ := strings.Cut(line, ":")
		if k := strings.TrimSpace(key); k == "model name" || k == "Model" || k == "cpu model" {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// String is one line for people.
func (m Machine) String() string {
	return fmt.Sprintf("%s, %d cores, Linux %s, %s, gleam %s", m.CPU, m.Cores, m.Kernel, m.Go, m.Version)
}
