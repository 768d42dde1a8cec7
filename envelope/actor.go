// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package envelope

import (
	"fmt"
	"net/netip"
)

// Actor is whose authenticated request brought an Event about: the key that it was
// under and the address that it spoke for. The zero value is nobody: the switch itself,
// or whoever called the driver.
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

// attribute names the actor of all events that have none yet, from the nth on.
func (o *Output) attribute(n int, a Actor) {
	for i := n; i < len(o.Events); i++ {
		if !o.Events[i].By.IsValid() {
			o.Events[i].By = a
		}
	}
}
