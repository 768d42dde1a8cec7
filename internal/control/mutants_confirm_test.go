// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"github.com/gleam-rdma/gleam/internal/control/locate"
	"github.com/gleam-rdma/gleam/test/mutation/mutant"
)

// Wrong ways to answer holders of several keys, and to believe where hosts are. The rule
// is a subject of docs/PROTOCOL.md.
var _ = []mutant.Mutant{
	mutant.New("a member's port is enough", "WrongLocation", mutant.In((*directory).FromMember,
		"d.from.port == pi && locate.MAC(d.from.mac) == locate.MAC(d.home.MAC)",
		"d.from.port == pi")),
	mutant.New("a member's MAC address is enough", "WrongLocation", mutant.In((*directory).FromMember,
		"d.from.port == pi && locate.MAC(",
		"locate.MAC(")),
	mutant.New("a member without a place speaks from anywhere", "WrongLocation", mutant.In((*directory).memberLocation,
		`				return at
			}
			return h.pin`,
		`				return at
			}
			return $1{}`, locate.Location{})),
	mutant.New("the place that a member left from is forgotten", "WrongLocation", mutant.In((*hosts).removeMember,
		`h.left = h.pin
		h.pin, h.seen = locate.Location{}, nil`,
		`
		h.pin, h.seen = locate.Location{}, nil`)),
	mutant.New("one that has left speaks from its old place alone", "WrongLocation", mutant.In((*directory).memberLocation,
		`			return h.pin // the kernel has none at the moment
		}
	}
	switch {
	case !left:`,
		`			return h.pin // the kernel has none at the moment
		}
	}
	switch {
	case h == nil:`)),
	mutant.New("envelopes from elsewhere are no warning", "WrongLocation", mutant.In((*control).logRefusal,
		"c.notify(x.reason == envelope.WrongLocation,",
		"c.notify(false,")),
}
