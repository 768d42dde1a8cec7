// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"time"

	"github.com/gleam-rdma/gleam/internal/control/locate"
)

// kernelTables is what the control loop follows of the kernel: the locations of hosts, the state of the
// ports' interfaces, and the changes of both.
type kernelTables struct {
	locator           locator
	lookups           *lookupQueue
	changes           *locate.Changes
	pacer             changePacer // delays the handling of changes
	watcher           watcher     // nil in tests
	routes            routes      // nil: no keys of switches are configured
	routeBell         <-chan struct{}
	filterErrReported bool          // the operator was told that the netlink filter fails
	linksDue          bool          // the ports' state must be requested
	linksRequested    bool          // the locator has that request
	vrfsUnknown       bool          // the last read of the ports' VRFs failed, and the operator was told
	portRetryAt       time.Duration // the time when the state of the ports is read because of retryPorts; 0: never
}

// retryPorts has the state of the ports read at the given time.
func (x *kernelTables) retryPorts(at time.Duration) {
	if x.portRetryAt == 0 || at < x.portRetryAt {
		x.portRetryAt = at
	}
}

// nextPortRetry returns when the state of the ports is read because of retryPorts.
func (x *kernelTables) nextPortRetry() (at time.Duration, ok bool) {
	return x.portRetryAt, x.portRetryAt > 0
}
