// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"time"

	manager "github.com/coreos/go-systemd/v22/daemon"
	"go.uber.org/zap"
)

// notify tells the service manager a state. Without NOTIFY_SOCKET there is none to tell.
func notify(state string) error {
	_, err := manager.SdNotify(false, state)
	return err
}

// watchdogShare is the number of notifications in the watchdog's time: one may fail without a
// restart.
const watchdogShare = 3

// feedWatchdog sends WATCHDOG=1 to the service manager whenever the control loop and each worker
// have made progress. It returns when ctx ends.
func (d *daemon) feedWatchdog(ctx context.Context, eng engine, log *zap.Logger) {
	within, err := manager.SdWatchdogEnabled(false)
	if err != nil {
		log.Warn("WATCHDOG_USEC is not understood: the service manager's watchdog is not notified", zap.Error(err))
	}
	if within == 0 {
		return
	}
	interval := max(within/watchdogShare, time.Millisecond)
	tick := time.NewTicker(interval)
	defer tick.Stop()
	silent := false
	for {
		err := d.feedOnce(ctx, eng, interval)
		if ctx.Err() != nil {
			return
		}
		if (err != nil) != silent {
			silent = err != nil
			if silent {
				log.Warn("gleamd makes no progress: the service manager's watchdog is not notified", zap.Error(err), zap.Duration("ends_gleamd_after", within))
			} else {
				log.Info("gleamd makes progress again: the service manager's watchdog is notified again")
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

func (d *daemon) feedOnce(ctx context.Context, eng engine, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if err := eng.Progress(ctx); err != nil {
		return err
	}
	return notify(manager.SdNotifyWatchdog)
}
