// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"strconv"

	"github.com/goccy/go-yaml/ast"

	"github.com/gleam-rdma/gleam/config/linkrate"
)

// Bounds of a port's queue, in bytes: a packet of a path MTU of 4096 waits in
// the least one only if it is empty.
const (
	minQueue = 4096
	maxQueue = 1 << 30
)

// rate reads a rate such as 100mbit, or none.
func (d *decoder) rate(dst *linkrate.Rate, v value) {
	s, ok := v.node.(*ast.StringNode)
	if !ok {
		d.wrongKind(v, "a rate with its unit, such as 100mbit, or none")
		return
	}
	r, err := linkrate.Parse(s.Value)
	if err != nil {
		d.failAt(v, "%s", err)
		return
	}
	*dst = r
}

// ecn reads off, or thresholds for a queue of that many bytes into e, which holds the
// defaults.
func (d *decoder) ecn(e *ECN, queue int, v value) {
	switch n := v.node.(type) {
	case nil, *ast.NullNode:
		return
	case *ast.BoolNode:
		if !n.Value {
			*e = ECN{}
			return
		}
	case *ast.StringNode:
		if n.Value == "off" {
			*e = ECN{}
			return
		}
	case *ast.MappingNode, *ast.MappingValueNode:
		d.thresholds(e, queue, v)
		return
	}
	d.wrongKind(v, "off, or a mapping of kmin, kmax and pmax")
}

func (d *decoder) thresholds(e *ECN, queue int, v value) {
	before := len(d.errs)
	seen := d.mapping(v,
		field{"kmin", d.int(&e.KMin, 0, maxQueue)},
		field{"kmax", d.int(&e.KMax, 1, maxQueue)},
		field{"pmax", d.share(&e.PMax)})
	if len(d.errs) > before {
		return
	}
	kmax, kmin := v, v
	if s, ok := seen["kmax"]; ok {
		kmax = s
	}
	if s, ok := seen["kmin"]; ok {
		kmin = s
	}
	switch {
	case e.KMax >= queue:
		d.fail(kmax.line, join(v.key, "kmax"), strconv.Itoa(e.KMax), "is not below queue, "+strconv.Itoa(queue)+": frames would be dropped before all are marked")
	case e.KMin > e.KMax:
		d.fail(kmin.line, join(v.key, "kmin"), strconv.Itoa(e.KMin), "is above kmax, "+strconv.Itoa(e.KMax))
	}
}

// share reads a number from 0 to 1.
func (d *decoder) share(dst *float64) func(value) {
	return func(v value) {
		switch v.node.(type) {
		case *ast.IntegerNode, *ast.FloatNode:
			x, err := strconv.ParseFloat(text(v.node), 64)
			if err != nil || x < 0 || x > 1 {
				d.failAt(v, "want a number from 0 to 1")
				return
			}
			*dst = x
		default:
			d.wrongKind(v, "a number from 0 to 1")
		}
	}
}
