// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/lab"
)

const daemonWait = 30 * time.Second

// daemon is gleamd in the switch's namespace.
type daemon struct {
	program, file string // the configuration's
	ns            *lab.Namespace
	process       *lab.Process
	client        *api.Client
	log           *os.File
}

// startDaemon starts the star's switch.
func startDaemon(ctx context.Context, m *machine, program, logs string) (*daemon, error) {
	text := "ports:\n"
	for _, h := range m.all() {
		text += "  - name: " + h.port + "\n"
	}
	dir, err := os.MkdirTemp(m.state, "state-")
	if err != nil {
		return nil, err
	}
	return newDaemon(ctx, m, m.sw, program, logs, text+"state: "+dir+"\n")
}

// newDaemon starts gleamd in a namespace, with these lines of configuration about its ports.
func newDaemon(ctx context.Context, m *machine, ns *lab.Namespace, program, logs, text string) (*daemon, error) {
	dir, err := os.MkdirTemp(m.state, "gleamd-")
	if err != nil {
		return nil, err
	}
	if err := errors.Join(os.Chmod(m.state, 0o755), os.Chmod(dir, 0o777)); err != nil { // gleamd gives up being root
		return nil, err
	}
	socket := dir + "/gleamd.sock"
	text += fmt.Sprintf("group_prefixes:\n  - %s\n  - %s\n", lab.StarGroupsIPv4, lab.StarGroupsIPv6)
	text += fmt.Sprintf("envelope: {keys: [{id: 1, secret: \"hex:%x\"}]}\n", auth.Keys[1])
	text += "umem: {frames: 8192, frame_size: 4096}\nrings: {rx: 512, tx: 512, fill: 512, completion: 512}\n"
	text += "api: {socket: " + socket + "}\n"
	file := dir + "/gleamd.yaml"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return nil, err
	}
	d := &daemon{client: api.Dial(socket), program: program, file: file, ns: ns}
	if d.log, err = os.Create(filepath.Join(logs, filepath.Base(program)+"-"+filepath.Base(dir)+".log")); err != nil {
		return nil, err
	}
	if err := d.start(ctx); err != nil {
		return nil, errors.Join(err, d.log.Close())
	}
	return d, nil
}

// start runs the program until it answers.
func (d *daemon) start(ctx context.Context) (err error) {
	c := exec.Command(d.program, "--config", d.file)
	c.Stdout, c.Stderr = io.Writer(d.log), io.Writer(d.log)
	if d.process, err = d.ns.Start(c); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, daemonWait)
	defer cancel()
	answers := make(chan error, 1)
	go func() { answers <- d.client.WaitReady(ctx) }()
	select {
	case <-d.process.Done():
		return fmt.Errorf("%s ended at once: %w\n%s", d.program, d.process.Wait(), d.process.Output())
	case err = <-answers:
	}
	if err != nil {
		return errors.Join(fmt.Errorf("%s: %w\n%s", d.program, err, d.process.Output()), d.process.Stop(time.Second))
	}
	return nil
}

func (d *daemon) stop() error {
	d.client.Close()
	select {
	case <-d.process.Done():
		return errors.Join(fmt.Errorf("gleamd ended by itself: %w", d.process.Wait()), d.log.Close())
	default:
	}
	err := d.process.Stop(10 * time.Second)
	if out := d.process.Output(); strings.Contains(out, "panic") || strings.Contains(out, "DATA RACE") {
		err = errors.Join(err, fmt.Errorf("gleamd said:\n%s", out))
	}
	return errors.Join(err, d.log.Close())
}

// drops returns how often the switch has dropped a packet for reason.
func (d *daemon) drops(ctx context.Context, reason string) (uint64, error) {
	s, err := d.client.Stats(ctx)
	if err != nil {
		return 0, err
	}
	return s.Unserved(reason), nil
}
