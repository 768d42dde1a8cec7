// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dcqcn

import "time"

// NotificationPoint is the receiver's half for one flow: when packets marked CE
// arrive, it decides whether a CNP is due. Its zero
// value has one sent for every mark; make others with NewNotificationPoint. It
// belongs to one goroutine.
type NotificationPoint struct {
	interval time.Duration `state:"constant"`
	due      time.Duration `state:"ahead"` // no CNP before this
}

// NewNotificationPoint returns one that asks for at most one CNP in interval.
func NewNotificationPoint(interval time.Duration) NotificationPoint {
	return NotificationPoint{interval: interval}
}

// OnCE is told of every packet of the flow that arrived marked CE, and reports
// whether a CNP is to be sent now.
func (n *NotificationPoint) OnCE(now time.Duration) bool {
	if now < n.due {
		return false
	}
	n.due = now + n.interval
	return true
}
