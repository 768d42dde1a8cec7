// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package envelope

import (
	"fmt"
	"net/netip"
)

// Actor names the host whose authenticated request caused an Event: the key of the
// request and the address that it spoke for. The zero value stands for the switch itself,
// or for the caller of the driver.
type Actor struct {
	Key  KeyID // 0 under Auth.Insecure
	Addr netip.AddrPort
}

// String is "key 1, 10.77.0.1:4797".
func (a Actor) String() string {
	if a.Key == 0 {
		return fmt.Sprintf("no key, %s", a.Addr)
	}
	return fmt.Sprintf("key %d, %s", a.Key, a.Addr)
}

// IsValid reports whether there was a request.
func (a Actor) IsValid() bool { return a.Addr.IsValid() }

// attribute sets the actor of all events from the nth on that have none yet.
func (o *Output) attribute(n int, a Actor) {
	for i := n; i < len(o.Events); i++ {
		if !o.Events[i].By.IsValid() {
			o.Events[i].By = a
		}
	}
}
