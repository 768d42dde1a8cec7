// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Command gleamd is the daemon of a Gleam switch.
//
//	gleamd --config /etc/gleam/gleamd.yaml          run
//	gleamd --config /etc/gleam/gleamd.yaml --check  say whether the file is all right
//
// It runs until SIGINT or SIGTERM, then gives its ports back to the kernel and
// exits with 0. It exits with 1 if it cannot start or go on, with 2 if the
// command line makes no sense. SIGHUP, or gleam reload, reloads envelope.keys; everything else in the
// configuration is read at start only, which the log says if it has changed.
package main

import (
	"context"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/gleam-rdma/gleam/config"
	"github.com/gleam-rdma/gleam/internal/confine/privilege"
	"github.com/gleam-rdma/gleam/internal/confine/sandbox"
	"github.com/gleam-rdma/gleam/internal/control"
	"github.com/gleam-rdma/gleam/internal/doctor"
)

// garbagePercent is the garbage that may collect before it is freed, in percent of the memory in use (GOGC). Most memory
// is that of groups, and the registration of each leaves garbage once.
const garbagePercent = 25

func main() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(garbagePercent)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	d := &daemon{
		stdout: os.Stdout, stderr: os.Stderr, journal: systemJournal(), hangup: hangup,
		open: func(cfg *config.Config, say control.Notify) (engine, error) {
			id, err := privilege.Identify(cfg.User, os.Geteuid(), os.Getegid())
			if err != nil {
				return nil, err
			}
			privilege.RaiseMemlock()
			// Now there are few threads, and none of them is in the kernel's verifier.
			if err := sandbox.DropBounding(); err != nil {
				return nil, err
			}
			return control.OpenFor(id.UID, cfg, say)
		},
		inspect: doctor.Start,
		identify: func(want string) (privilege.Identity, error) {
			return privilege.Identify(want, os.Geteuid(), os.Getegid())
		},
		confine: confine,
	}
	code := d.main(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}
