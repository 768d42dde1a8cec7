// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"github.com/gleam-rdma/gleam/internal/control/location"
	"github.com/gleam-rdma/gleam/test/mutation/mutant"
)

// Wrong ways to answer holders of several keys, and to believe where hosts are. The rule
// is a subject of docs/PROTOCOL.md.
var _ = []mutant.Mutant{
	mutant.New("a member's port is enough", "WrongLocation", mutant.In((*directory).isFrom,
		"&& locate.MAC(s.MAC) == locate.MAC(at.MAC)",
		"")),
	mutant.New("a member's MAC address is enough", "WrongLocation", mutant.In((*directory).isFrom,
		"s.Port == d.plane.PortIndex(at.Ifindex) &&",
		"")),
	mutant.New("a member without a place speaks from anywhere", "WrongLocation", mutant.In((*directory).memberLocation,
		`				return at, true
			}
			at, _ = h.Place(g.key)
			return at, true`,
		`				return at, true
			}
			at, _ = h.Place(g.key)
			return at, false`)),
	mutant.New("the place of a lost member is that of its first key", "WrongLocation", mutant.In((*directory).memberLocation,
		`at, _ = h.Place(g.key)`,
		`at = h.$1()`, (*location.Host).Pinned)),
	mutant.New("one that has left speaks from its old place alone", "WrongLocation", mutant.In((*directory).memberLocation,
		`			at, _ = h.Place(g.key)
			return at, true // the kernel has none at the moment
		}
	}
	if !left {`,
		`			at, _ = h.Place(g.key)
			return at, true // the kernel has none at the moment
		}
	}
	if h == nil {`)),
	mutant.New("envelopes from elsewhere are no warning", "WrongLocation", mutant.In((*control).logRefusal,
		"c.notify(x.reason == envelope.WrongLocation,",
		"c.notify(false,")),
}
