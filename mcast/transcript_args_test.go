// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/gleam-rdma/gleam/rocev2"
	"github.com/gleam-rdma/gleam/test/model/notation"
)

// The arguments of a transcript's commands.

func num(t *testing.T, s string, base, bits int) uint64 {
	v, err := strconv.ParseUint(strings.TrimPrefix(s, "0x"), base, bits)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func psn(t *testing.T, s string) rocev2.PSN {
	n, err := notation.ParsePSN(s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

type args struct {
	t *testing.T
	d *datadriven.TestData
}

func (a args) str(key, def string) string {
	for _, c := range a.d.CmdArgs {
		if c.Key == key && len(c.Vals) > 0 {
			return c.Vals[0]
		}
	}
	return def
}

func (a args) list(key string) []string {
	for _, c := range a.d.CmdArgs {
		if c.Key == key {
			return c.Vals
		}
	}
	return nil
}

func (a args) hex(key string) uint64 { return num(a.t, a.str(key, "0"), 16, 64) }

func (a args) psn(key string) rocev2.PSN { return psn(a.t, a.str(key, "0")) }

// va is the virtual address in RETH; -1 is that of a target message.
func (a args) va() uint64 {
	if a.str("va", "") == "-1" {
		return targetMessageVA
	}
	return a.hex("va")
}

func windowOf(t *testing.T, v []string) (w Window) {
	if len(v) == 3 {
		w = Window{num(t, v[0], 16, 64), num(t, v[1], 16, 64), uint32(num(t, v[2], 16, 32))}
	}
	return w
}

// setRole sets what a member may do with data of its own.
func setRole(m *MemberSpec, role string) {
	switch role {
	case "receive-only":
		m.ReceiveOnly = true
	case "leads":
		m.Reply = ReplyForwarded
	case "follows":
		m.Reply = ReplyDiscarded
	}
}

var opNames = map[string]rocev2.Opcode{
	"SendFirst": rocev2.SendFirst, "SendMiddle": rocev2.SendMiddle, "SendLast": rocev2.SendLast,
	"SendOnly": rocev2.SendOnly, "WriteFirst": rocev2.WriteFirst, "WriteMiddle": rocev2.WriteMiddle,
	"WriteLast": rocev2.WriteLast, "WriteOnly": rocev2.WriteOnly, "Read": rocev2.ReadRequest,
	"CompareSwap": rocev2.CompareSwap, "Flush": rocev2.Flush, "AtomicWrite": rocev2.AtomicWrite,
	"SendOnlyInv": rocev2.SendOnlyInv, "ReadRespOnly": rocev2.ReadRespOnly, "Unknown": 0x15,
}
