// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	// diagnosisPart is the part of a case's limit after which it counts as stuck.
	diagnosisPart = 0.4
	// diagnosisTime is the time between two samples of the counters of a case that is stuck.
	diagnosisTime = 2 * time.Second
)

// diagnose writes what the switches and the devices of rxe do, while a case is stuck, into a
// file: groups, statistics, and how rxe's counters change. A capture of meanwhile is beside it.
func (b *bench) diagnose(ctx context.Context, name string) (err error) {
	f, err := os.Create(filepath.Join(b.out, name+"-stuck.txt"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	hosts, daemons := b.everyone(), []*daemon{b.daemon}
	if b.tree != nil && b.tree.failed == nil {
		daemons = append(daemons, b.tree.daemons[:]...)
	}
	stop, err := captureOf(filepath.Join(b.out, name+"-stuck.pcap"), hosts...)
	if err != nil {
		return err
	}
	before := rxeCounters(hosts)
	for _, d := range daemons {
		d.describe(ctx, f)
	}
	select {
	case <-ctx.Done():
	case <-time.After(diagnosisTime):
	}
	for _, d := range daemons {
		d.describe(ctx, f)
	}
	after := rxeCounters(hosts)
	for i, h := range hosts {
		for c, v := range after[i] {
			if v != before[i][c] {
				fmt.Fprintf(f, "%s %s: %s, before %s\n", h.rdma, c, v, before[i][c])
			}
		}
	}
	return stop()
}

// everyone returns the hosts of rxe of the star and of the tree.
func (b *bench) everyone() []*host {
	if b.tree == nil {
		return b.hosts
	}
	return append(slices.Clip(b.hosts), b.tree.hosts...)
}

// describe writes what a switch has to say about itself.
func (d *daemon) describe(ctx context.Context, w io.Writer) {
	if d == nil {
		return // it is not there yet
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	fmt.Fprintf(w, "%s, %s\n", d.log.Name(), time.Now().UTC().Format(time.StampMilli))
	e := json.NewEncoder(w)
	stats, err := d.client.Stats(ctx)
	groups, err2 := d.client.Groups(ctx)
	ended, err3 := d.client.EndedGroups(ctx)
	ports, err4 := d.client.Ports(ctx)
	if err := errors.Join(err, err2, err3, err4, e.Encode(stats)); err != nil {
		fmt.Fprintln(w, err)
	}
	for _, g := range groups {
		full, err := d.client.Group(ctx, g.IP)
		if err := errors.Join(err, e.Encode(full)); err != nil {
			fmt.Fprintln(w, err)
		}
	}
	if err := errors.Join(e.Encode(ended), e.Encode(ports)); err != nil {
		fmt.Fprintln(w, err)
	}
}

// receivedRNR is rxe's counter of RNR NAKs that its queue pairs have received.
const receivedRNR = "rcvd_rnr_err"

// rxeCounter returns a counter of h's device.
func rxeCounter(h *host, name string) string { return rxeCounters([]*host{h})[0][name] }

// rxeCounters returns the counters of each host's device.
func rxeCounters(hosts []*host) (all []map[string]string) {
	for _, h := range hosts {
		m := map[string]string{}
		dir := "/sys/class/infiniband/" + h.rdma + "/ports/1/hw_counters"
		files, _ := os.ReadDir(dir) // none: there is nothing to compare
		for _, f := range files {
			if v, err := os.ReadFile(filepath.Join(dir, f.Name())); err == nil {
				m[f.Name()] = strings.TrimSpace(string(v))
			}
		}
		all = append(all, m)
	}
	return all
}
