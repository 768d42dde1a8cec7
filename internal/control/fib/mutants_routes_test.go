// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package fib

import "github.com/gleam-rdma/gleam/test/mutation/mutant"

// Wrong ways to follow the kernel's routes. doc.go has the rules.
var _ = []mutant.Mutant{
	mutant.New("next hops of links without a carrier are used", "Routes", mutant.In((*Route).decide,
		"case h.flags&(unix.RTNH_F_DEAD|unix.RTNH_F_LINKDOWN) != 0:",
		"case h.flags&unix.RTNH_F_DEAD != 0:")),
	mutant.New("packets that must be wrapped are sent bare", "Routes", mutant.In((*Route).decide,
		`case h.wrapped:
			if r.Status == Down {`,
		`case h.wrapped && r.Status != Down:
			if r.Status == Down {`)),
	mutant.New("the links of next hops that cannot be used are forgotten", "Routes", mutant.In((*Route).decide,
		`continue
		}
		r.links = append(r.links, h.Link)
		switch {
		case h.flags&(unix.RTNH_F_DEAD|unix.RTNH_F_LINKDOWN) != 0:
		case h.wrapped:`,
		`continue
		}
		if h.flags&(unix.RTNH_F_DEAD|unix.RTNH_F_LINKDOWN) == 0 {
			r.links = append(r.links, h.Link)
		}
		switch {
		case h.flags&(unix.RTNH_F_DEAD|unix.RTNH_F_LINKDOWN) != 0:
		case h.wrapped:`)),
	mutant.New("a link's last route is forgotten with it", "Routes", mutant.In((*Table).Answer,
		"if len(r.links) == 0 && r.group == 0 {",
		"if len(r.links) == 0 && r.group != 0 {")),
	mutant.New("a default route marks any number", "Routes", mutant.In((*Table).Feed,
		"seen > maxConcerned",
		"seen > 1000*maxConcerned")),
	mutant.New("a less specific route is a reason to match", "Routes", mutant.In((*Table).Feed,
		"d.route.Prefix.Bits() <= e.Prefix.Bits()",
		"d.route.Prefix.Bits() >= 0")),
	mutant.New("a more specific route is none", "Routes", mutant.In((*Table).Feed,
		"d.route.Prefix.Bits() <= e.Prefix.Bits()",
		"d.route.Prefix.Bits() == e.Prefix.Bits()")),
	mutant.New("next hops are counted and not compared", "Routes", mutant.In(Route.same,
		"slices.Equal(r.Hops, o.Hops)",
		"len(r.Hops) == len(o.Hops)")),
	mutant.New("an IPv4 address in IPv6 is another one", "Routes", mutant.In((*Table).Subscribe,
		`a = a.Unmap().WithZone("")`,
		`a = a.WithZone("")`)),
	mutant.NewForRoot("lost notifications are not made up for", "Routes", mutant.In((*Watcher).read,
		`w.lost++
				t.Feed(Event{All: true})`,
		"w.lost++")),
}
