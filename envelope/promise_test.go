// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package envelope

import "testing"

// What a switch sends promises something or does not: a kind of message that is added later has
// to be in these tables, or it waits.
func TestPromises(t *testing.T) {
	for _, x := range []struct {
		body Body
		want bool
	}{
		{&Accept{Request: TypeRegister}, true}, {&Accept{Request: TypeLeave}, true}, {&Accept{Request: TypeDelete}, true}, {&Notify{}, true}, {&Gone{}, true},
		{&Accept{Request: TypeRenew}, false}, {&Reject{}, false}, {&Challenge{}, false}, {&Where{}, false},
	} {
		if got := promises(x.body); got != x.want {
			t.Errorf("%v, %+v: %v", x.body.kind(), x.body, got)
		}
	}
	promising := map[relayKind]bool{relayCommit: true, relayCommitted: true, relayEnd: true, relayEnded: true, relayGone: true, relayNoted: true}
	if numRelayKinds != 14 {
		t.Error("there is another kind of relay: does it promise?")
	}
	for k := relayPrepare; k < numRelayKinds; k++ {
		if k.promises() != promising[k] {
			t.Errorf("%v: %v", k, k.promises())
		}
	}
}
