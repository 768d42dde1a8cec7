// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"time"
)

// Job is a run of fio's random writes against a device.
type Job struct {
	Size, Depth int // bytes of a write, and writes under way
	Time, Ramp  time.Duration
	More        []string // further arguments
}

// Figures are fio's of a Job: latencies are those of a write from its submission to its completion.
type Figures struct {
	IOPS, MBs           float64
	P50, P99, P999, Max time.Duration
	Writes              int
	// Cores is the CPU time of fio, the gateway, the switch and the replicas, by the time that fio ran.
	Cores float64
}

// Fio runs a job.
func (d *Device) Fio(ctx context.Context, j Job) (*Figures, error) {
	c := exec.CommandContext(ctx, "fio", append([]string{
		"--name=write", "--ioengine=nbd", "--uri=nbd+unix:///?socket=" + d.Socket, "--rw=randwrite", "--randrepeat=0", "--refill_buffers", "--norandommap",
		fmt.Sprintf("--bs=%d", j.Size), fmt.Sprintf("--iodepth=%d", j.Depth), "--time_based", fmt.Sprintf("--runtime=%dms", j.Time.Milliseconds()),
		fmt.Sprintf("--ramp_time=%dms", j.Ramp.Milliseconds()), "--output-format=json",
	}, j.More...)...)
	var said bytes.Buffer
	c.Stderr = &said
	start := time.Now()
	before, err := d.cpu()
	if err != nil {
		return nil, err
	}
	out, err := c.Output()
	ran := time.Since(start)
	if errors.Is(err, exec.ErrNotFound) {
		return nil, errors.New("fio is not installed: apt-get install fio")
	}
	var r struct {
		Jobs []struct {
			Error int
			Write struct {
				IOPS  float64
				Total int   `json:"total_ios"`
				BW    int64 `json:"bw_bytes"`
				Lat   struct {
					Max int64
				} `json:"lat_ns"`
				Clat struct {
					Percentile map[string]int64
				} `json:"clat_ns"`
			}
		}
	}
	if at := bytes.IndexByte(out, '{'); err == nil && at >= 0 {
		err = json.Unmarshal(out[at:], &r)
	}
	if err != nil || len(r.Jobs) != 1 || r.Jobs[0].Error != 0 {
		return nil, fmt.Errorf("fio: %w\n%s%s", err, said.Bytes(), out)
	}
	after, err := d.cpu()
	if err != nil {
		return nil, err
	}
	used := after - before + c.ProcessState.UserTime() + c.ProcessState.SystemTime()
	w := r.Jobs[0].Write
	at := func(p string) time.Duration { return time.Duration(w.Clat.Percentile[p]) }
	return &Figures{
		IOPS: w.IOPS, MBs: float64(w.BW) / 1e6, Writes: w.Total, Max: time.Duration(w.Lat.Max),
		P50: at("50.000000"), P99: at("99.000000"), P999: min(at("99.900000"), time.Duration(w.Lat.Max)), // fio's percentiles are rounded up
		Cores: used.Seconds() / ran.Seconds(),
	}, nil
}
