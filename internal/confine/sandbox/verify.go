// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// verify reads from the kernel what each thread of this process may do. bounding is what its
// bounding set has. changed says
// that it has become another user, which leaves all groups.
func verify(l Limits, bounding uint64, changed bool) error {
	tasks, err := filepath.Glob("/proc/self/task/*/status")
	if err != nil || len(tasks) == 0 {
		return errors.New("/proc/self/task is not there")
	}
	seen := 0
	for _, task := range tasks {
		status, err := os.ReadFile(task)
		if err != nil {
			continue // a thread that has ended
		}
		seen++
		if err := checkStatus(string(status), l, bounding, changed); err != nil {
			return fmt.Errorf("%s: %w", task, err)
		}
	}
	if seen == 0 {
		return errors.New("/proc/self/task cannot be read")
	}
	return nil
}

// checkStatus looks for what l leaves in a status file of /proc.
func checkStatus(status string, l Limits, bounding uint64, changed bool) error {
	var caps uint64
	for _, c := range l.Capabilities {
		caps |= 1 << c
	}
	const none = "0000000000000000"
	want := map[string]string{
		"Uid": strings.TrimSuffix(strings.Repeat(fmt.Sprintf("%d\t", l.UID), 4), "\t"), "NoNewPrivs": "1", "Seccomp": "2",
		"CapInh": none, "CapBnd": fmt.Sprintf("%016x", bounding), "CapAmb": none,
		"CapPrm": fmt.Sprintf("%016x", caps), "CapEff": fmt.Sprintf("%016x", caps),
	}
	if changed {
		want["Groups"] = " "
	}
	for line := range strings.Lines(status) {
		key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ":\t")
		if w, ok := want[key]; ok && w != value {
			return fmt.Errorf("%s is %q, not %q", key, value, w)
		}
		delete(want, key)
	}
	for key := range want {
		return fmt.Errorf("the kernel says nothing of %s", key)
	}
	return nil
}
