// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"fmt"

	"github.com/gleam-rdma/gleam/api"
)

// startedEvent is the first event of the journal: gleamd has started. An operator who looks for the end
// of a group finds by it that a restart was the cause, and whether groups outlive one.
func startedEvent(build api.Version, k *keeper) api.Event {
	return api.Event{Kind: api.EventStarted, Reason: fmt.Sprintf("gleamd %s: %s", build.Text(), k.beforeText())}
}

// beforeText says what is known of the time before the start.
func (k *keeper) beforeText() string {
	switch {
	case k == nil:
		return "the configuration has no key state, so groups end with gleamd"
	case k.found.Damaged != nil:
		return fmt.Sprintf("the state file was damaged, so groups of before are lost; it is %s now", k.found.DamagedFile)
	case k.found.New:
		return "there was no state file"
	}
	return fmt.Sprintf("the state file has groups of before: %d", len(k.found.State.Groups))
}
