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
	mutant.New("gateways of two links are one next hop", "Routes", mutant.In((*Route).arrange,
		"hops[n-1].Link == h.Link && hops[n-1].Gateway == h.Gateway",
		"hops[n-1].Gateway == h.Gateway")),
	mutant.New("a link's last route is forgotten with it", "Routes", mutant.In((*Table).Answer,
		"if len(r.links) == 0 && r.group == 0 {",
		"if len(r.links) == 0 && r.group != 0 {")),
	mutant.New("routes keep what they depended on", "Routes", mutant.In((*Table).Unsubscribe,
		"t.index(d, false)",
		"")),
	mutant.New("a removal hides a destination from the sweep", "Routes", mutant.In((*Table).Unsubscribe,
		`t.all[d.position], moved.position = moved, d.position
		t.hurry(moved)`,
		"t.all[d.position], moved.position = moved, d.position")),
	mutant.New("a new destination takes another one's turn", "Routes", mutant.In((*Table).Subscribe,
		`if t.sweep > 0 {
			t.sweep++`,
		"if t.sweep > 0 {")),
	mutant.New("a link event concerns the routes by it alone", "Routes", mutant.In((*Table).Feed,
		`case e.All:
		t.Sweep()
	case e.Link != 0:
		for d := range t.byLink[e.Link] {
			t.hurry(d)
		}
		t.Sweep()`,
		`case e.All:
		t.Sweep()
	case e.Link != 0:
		for d := range t.byLink[e.Link] {
			t.hurry(d)
		}`)),
	mutant.New("a member of a group has no effect on its groups", "Routes", mutant.In((*Table).Feed,
		`t.Sweep()
	case e.Prefix.IsValid():`,
		"case e.Prefix.IsValid():")),
	mutant.New("a default route marks any number", "Routes", mutant.In((*Table).Feed,
		"seen > maxConcerned",
		"seen > 1000*maxConcerned")),
	mutant.New("a less specific route is a reason to match", "Routes", mutant.In((*Table).Feed,
		"d.route.Prefix.Bits() <= e.Prefix.Bits()",
		"d.route.Prefix.Bits() >= 0")),
	mutant.New("a more specific route is none", "Routes", mutant.In((*Table).Feed,
		"d.route.Prefix.Bits() <= e.Prefix.Bits()",
		"d.route.Prefix.Bits() == e.Prefix.Bits()")),
	mutant.New("changes are reported twice", "Routes", mutant.In((*Table).Answer,
		"if differs && !d.changed {",
		"if differs {")),
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
