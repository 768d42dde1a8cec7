// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package fabric

import (
	"errors"
	"fmt"
	"slices"
)

// link is the number of the link between two nodes.
func (f *Fabric) link(a, b string) (int, error) {
	i := slices.IndexFunc(f.topology.Links, func(l Link) bool { return l.A == a && l.B == b || l.A == b && l.B == a })
	if i < 0 {
		return 0, fmt.Errorf("fabric: there is no link between %s and %s", a, b)
	}
	return i, nil
}

// SetCarrier takes the carrier from both ends of a link, or gives it back, as if a cable was pulled:
// the interfaces stay up, and the kernel does not use the routes through them. The link must
// have a wire (Config.Count, or a loss, rate or delay).
func (f *Fabric) SetCarrier(a, b string, on bool) error {
	i, err := f.link(a, b)
	if err != nil {
		return err
	}
	l := f.topology.Links[i]
	if !f.wired(l) {
		return fmt.Errorf("fabric: link %v has no wire", l)
	}
	set := f.wires.SetDown
	if on {
		set = f.wires.SetUp
		delete(f.down, l)
	} else {
		f.down[l] = true
	}
	ends := wireEnds(i)
	if err := errors.Join(set(ends[0]), set(ends[1])); err != nil {
		return fmt.Errorf("fabric: link %v: %w", l, err)
	}
	return nil
}

// SetLink sets both ends of the link between two nodes up or down. With static routes, the
// routes of its two ends are set anew after it is up: the kernel removes some when an
// interface goes down. Other switches' routes stay as they are.
func (f *Fabric) SetLink(a, b string, up bool) error {
	i, err := f.link(a, b)
	if err != nil {
		return err
	}
	l := f.topology.Links[i]
	var errs []error
	for _, end := range [][2]string{{l.A, l.B}, {l.B, l.A}} {
		ns, name := f.end(end[0], end[1])
		if up {
			errs = append(errs, ns.SetUp(name))
		} else {
			errs = append(errs, ns.SetDown(name))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("fabric: link %v: %w", l, err)
	}
	if !up {
		f.down[l] = true
		return nil
	}
	delete(f.down, l)
	p := f.topology.shortestPaths(f.down)
	for _, name := range []string{l.A, l.B} {
		s := f.byName[name]
		if s == nil {
			continue
		}
		if err := s.NS.WaitUp(linkTimeout); err != nil {
			return err
		}
		if f.routing != Static {
			continue
		}
		for _, to := range f.Switches {
			if hops := p[name][to.Name]; len(hops) > 0 {
				errs = append(errs, s.routeTo(to, hops))
			}
		}
	}
	return errors.Join(errs...)
}
