// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/gleam-rdma/gleam/lab/sim/topology"
)

// ParseTrace reads a trace, a line for each group and flow:
//
//	# comment
//	group g1 0 1 2 3
//	12.5us 0 > 1 64KiB
//	13us 0 > g1 1MiB
//
// Hosts are numbers below the given one. A group is named before its first flow.
func ParseTrace(text string, hosts int) (*List, error) {
	t := trace{hosts: hosts, group: make(map[string]int32)}
	for i, line := range strings.Split(text, "\n") {
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		if err := t.line(words); err != nil {
			return nil, fmt.Errorf("trace, line %d: %w", i+1, err)
		}
	}
	return NewList(t.flows, t.groups)
}

type trace struct {
	hosts  int
	flows  []Flow
	groups [][]topology.Node
	group  map[string]int32
}

func (t *trace) line(words []string) (err error) {
	if words[0] == "group" {
		return t.addGroup(words[1:])
	}
	if len(words) != 5 || words[2] != ">" {
		return fmt.Errorf("%q: want TIME SOURCE > HOST BYTES, or group NAME and its hosts", strings.Join(words, " "))
	}
	f := Flow{To: None, Group: None}
	if f.After, err = ParseTime(words[0]); err != nil {
		return err
	}
	if f.Source, err = t.host(words[1]); err != nil {
		return err
	}
	if g, ok := t.group[words[3]]; ok {
		f.Group = g
	} else if f.To, err = t.host(words[3]); err != nil {
		return fmt.Errorf("%w, or the name of a group", err)
	}
	if f.Bytes, err = ParseBytes(words[4]); err != nil {
		return err
	}
	t.flows = append(t.flows, f)
	return nil
}

func (t *trace) addGroup(words []string) error {
	if len(words) < 3 {
		return errors.New("want group NAME and two hosts or more")
	}
	if _, ok := t.group[words[0]]; ok {
		return fmt.Errorf("group %s is there twice", words[0])
	}
	if c := words[0][0]; '0' <= c && c <= '9' {
		return fmt.Errorf("group %s: want a name that begins with no digit", words[0])
	}
	var members []topology.Node
	for _, w := range words[1:] {
		h, err := t.host(w)
		if err != nil {
			return err
		}
		members = append(members, h)
	}
	t.group[words[0]] = int32(len(t.groups))
	t.groups = append(t.groups, members)
	return nil
}

func (t *trace) host(word string) (topology.Node, error) {
	n, err := strconv.Atoi(word)
	if err != nil || n < 0 || n >= t.hosts {
		return 0, fmt.Errorf("host %q: want a number from 0 to %d", word, t.hosts-1)
	}
	return topology.Node(n), nil
}

// suffix is a unit that a number ends with.
type suffix struct {
	name string
	unit float64
}

var (
	timeUnits = []suffix{{"ps", 1}, {"ns", float64(topology.Nanosecond)}, {"us", float64(topology.Microsecond)}, {"µs", float64(topology.Microsecond)}, {"ms", float64(topology.Millisecond)}, {"s", float64(topology.Second)}}
	byteUnits = []suffix{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"kB", 1e3}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"B", 1}, {"", 1}}
)

// ParseTime reads a time such as 12.5us. Its unit is ps, ns, us, ms or s.
func ParseTime(s string) (topology.Time, error) {
	if s == "0" {
		return 0, nil
	}
	x, ok := number(s, timeUnits, float64(1<<62))
	if !ok {
		return 0, fmt.Errorf("time %q: want a number of 0 or more with ps, ns, us, ms or s", s)
	}
	return topology.Time(x), nil
}

// ParseBytes reads a size such as 64KiB or 63.5MB.
func ParseBytes(s string) (int64, error) {
	x, ok := number(s, byteUnits, MaxBytes)
	if !ok {
		return 0, fmt.Errorf("size %q: want a number of 0 or more, with B, kB, MB, GB, KiB, MiB or GiB", s)
	}
	return int64(x), nil
}

// number reads a number with one of the units.
func number(s string, units []suffix, most float64) (float64, bool) {
	for _, u := range units {
		digits, ok := strings.CutSuffix(s, u.name)
		if !ok {
			continue
		}
		x, err := strconv.ParseFloat(digits, 64)
		if err == nil && x >= 0 && x*u.unit <= most {
			return x*u.unit + 0.5, true
		}
		if err == nil {
			return 0, false
		}
	}
	return 0, false
}
