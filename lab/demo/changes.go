// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/gleam-rdma/gleam/lab/fabric"
)

// changeKind is a kind of change, by its flag.
type changeKind string

const (
	reload        changeKind = "reload"
	failLink      changeKind = "fail-link"
	failSwitch    changeKind = "fail-switch"
	restartSwitch changeKind = "restart-switch"
)

// auto is the element that the group's packets use when the change begins.
const auto = "auto"

// change is a change of the fabric in the middle of the group's transfer.
type change struct {
	kind changeKind
	what string  // a switch, a link as A-B, or auto; "" with reload
	kill bool    // a restart after kill -9, not SIGTERM
	part float64 // the share of the messages that are complete when it begins
}

func (c change) String() string {
	switch {
	case c.kind == reload:
		return "reload of every gleamd"
	case c.kill:
		return fmt.Sprintf("%s %s (kill -9)", c.kind, c.what)
	}
	return fmt.Sprintf("%s %s", c.kind, c.what)
}

// parse reads WHAT[:kill|:term][@PERCENT].
func (k changeKind) parse(text string) (c change, err error) {
	c.kind = k
	what, when, timed := strings.Cut(text, "@")
	if timed {
		percent, err := strconv.ParseFloat(strings.TrimSuffix(when, "%"), 64)
		if err != nil || percent <= 0 || percent >= 100 {
			return c, fmt.Errorf("--%s %s: want the part of the messages behind @, such as 30%%", k, text)
		}
		c.part = percent / 100
	}
	what, how, told := strings.Cut(what, ":")
	switch {
	case told && (k != restartSwitch || how != "kill" && how != "term"):
		return c, fmt.Errorf("--%s %s: want %s", k, text, k.usage())
	case what == "":
		return c, fmt.Errorf("--%s wants %s", k, k.usage())
	}
	c.what, c.kill = what, how == "kill"
	return c, nil
}

// usage says what the value of the flag is.
func (k changeKind) usage() string {
	switch k {
	case failLink:
		return "A-B[@PERCENT]"
	case restartSwitch:
		return "SWITCH[:kill|:term][@PERCENT]"
	}
	return "SWITCH[@PERCENT]"
}

// changes returns what is to happen, in its order. Those without a time of their own are spread evenly.
func (o *FabricOptions) changes() (all []change, err error) {
	if o.Reload {
		all = append(all, change{kind: reload})
	}
	for _, f := range []struct {
		kind  changeKind
		texts []string
	}{{failLink, o.FailLink}, {failSwitch, o.FailSwitch}, {restartSwitch, o.RestartSwitch}} {
		for _, text := range f.texts {
			c, err := f.kind.parse(text)
			if err != nil {
				return nil, err
			}
			if err := c.resolve(o.topology); err != nil {
				return nil, fmt.Errorf("--%s %s: %w", f.kind, text, err)
			}
			all = append(all, c)
		}
	}
	for i := range all {
		if all[i].part == 0 {
			all[i].part = float64(i+1) / float64(len(all)+1)
		}
	}
	slices.SortStableFunc(all, func(a, b change) int { return int((a.part - b.part) * 1e6) })
	return all, nil
}

// resolve checks the name.
func (c *change) resolve(t *fabric.Topology) error {
	switch {
	case c.what == auto:
		return nil
	case c.kind != failLink:
		c.what = switchName(t, c.what)
		if !slices.Contains(t.Switches, c.what) {
			return fmt.Errorf("there is no switch %s; there are %s", c.what, strings.Join(t.Switches, ", "))
		}
		return nil
	}
	for i := range c.what {
		if c.what[i] != '-' {
			continue
		}
		a, b := switchName(t, c.what[:i]), switchName(t, c.what[i+1:])
		for _, l := range t.Links {
			if l.A == a && l.B == b || l.A == b && l.B == a {
				if slices.Contains(t.Hosts, a) || slices.Contains(t.Hosts, b) {
					return fmt.Errorf("%s is the only link of a host; want one between two switches", l)
				}
				c.what = l.String()
				return nil
			}
		}
	}
	return fmt.Errorf("there is no such link; there are %s", strings.Join(innerLinks(t), ", "))
}

// switchName takes spine1 and leaf1 for the names of a leaf-spine, s1 and l1.
func switchName(t *fabric.Topology, name string) string {
	for long, short := range map[string]string{"spine": "s", "leaf": "l"} {
		if n, ok := strings.CutPrefix(name, long); ok && !slices.Contains(t.Switches, name) && slices.Contains(t.Switches, short+n) {
			return short + n
		}
	}
	return name
}

// innerLinks are the names of the links between switches.
func innerLinks(t *fabric.Topology) (names []string) {
	for _, l := range t.Links {
		if slices.Contains(t.Switches, l.A) && slices.Contains(t.Switches, l.B) {
			names = append(names, l.String())
		}
	}
	return names
}
