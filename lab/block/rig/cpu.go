// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"errors"
	"os"
	"time"

	"github.com/gleam-rdma/gleam/lab"
)

// cpu returns the CPU time that the device's processes that run, and its switch, have had.
func (d *Device) cpu() (sum time.Duration, err error) {
	d.mu.Lock()
	all := append([]*lab.Process{d.gateway, d.Bed.Gleamd.Process}, d.replicas[1:]...)
	d.mu.Unlock()
	for _, p := range all {
		t, err := p.CPUTime()
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return 0, err
		}
		sum += t
	}
	return sum, nil
}
