// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package hardware

import (
	"context"
	"fmt"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/config"
	"github.com/gleam-rdma/gleam/internal/doctor/checks"
)

// Roles of machines.
const (
	roleBox      = "box"
	roleSource   = "source"
	roleReceiver = "receiver"
)

// boxOptions say what a switch reports.
type boxOptions struct {
	common
	config string   // gleamd's configuration; empty: none is given
	ports  []string // interfaces
}

// answerTimeout bounds how long gleamd may take to say that it runs.
const answerTimeout = 3 * time.Second

// box records the machine of a switch.
func box(ctx context.Context, o *boxOptions) error {
	s, m, cfg := &steps{log: o.log}, checks.This(), config.Default()
	if o.config != "" {
		o.scrub.file(o.config, "gleamd.yaml")
		check := run(ctx, "gleamd --check", time.Minute, "gleamd --check --config "+o.config, "gleamd", "--check", "--config", o.config)
		s.add(check)
		if c, err := config.Load(o.config); err == nil { // else the check has said so
			cfg = c
		}
	} else {
		s.notRun("gleamd --check", "no configuration is given (--config)")
	}
	nics, err := readNICs(m, cfg, o.ports)
	if err != nil {
		return err
	}
	s.add(version(ctx, o.socket))
	if why := answers(ctx, o.socket); why != nil {
		s.notRun("doctor", why.Error())
	} else {
		args := []string{"--socket", o.socket, "doctor"}
		if o.config != "" {
			args = append(args, "--config", o.config)
		}
		s.add(doctor(ctx, "doctor", args...))
	}
	return o.finish(ctx, &record{role: roleBox, kernel: m.Release, nics: nics}, s)
}

// answers reports why gleamd does not answer at a socket; nil: it does.
func answers(ctx context.Context, socket string) error {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	c := api.Dial(socket)
	defer c.Close()
	_, err := c.Version(ctx)
	return err
}

// finish writes the archive, and returns the first failure.
func (c *common) finish(ctx context.Context, r *record, s *steps) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	for i := range r.nics {
		r.nics[i].Interface = c.scrub.text(r.nics[i].Interface)
	}
	for i := range r.rnics {
		for j, name := range r.rnics[i].Interfaces {
			r.rnics[i].Interfaces[j] = c.scrub.text(name)
		}
	}
	for _, x := range s.all {
		y := c.scrub.step(x)
		if r.steps = append(r.steps, y); y.Name == "doctor" {
			r.doctor = y.Result
		}
	}
	r.date = time.Now().UTC()
	out := c.out
	if out == "" {
		out = "gleam-hardware-" + r.role + ".tar.gz"
	}
	if err := r.write(out); err != nil {
		return fmt.Errorf("write the archive: %w", err)
	}
	fmt.Fprintf(c.log, "\n%sThe archive is %s; gleam hardware show %[2]s prints its report.\n", r.row(), out)
	return s.failure()
}
