// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// chain is a base chain of nftables at the forward hook; rules of iptables are such chains, too,
// unless they are legacy ones.
type chain struct {
	family      uint8
	table, name string
	drops       string // how it drops what no rule accepts; empty: it does not
}

// Verdicts of netfilter (linux/netfilter.h).
const verdictDrop = 0

// forwardChains returns the base chains at the forward hook of the calling thread's network
// namespace, of families whose hook has that number.
func forwardChains() (list []chain, err error) {
	answers, err := askNFT(unix.NFT_MSG_GETCHAIN, unix.NFT_MSG_NEWCHAIN)
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.EPROTONOSUPPORT) || errors.Is(err, unix.EINVAL) {
		return nil, nil // the kernel has no nftables
	}
	if err != nil {
		return nil, err
	}
	for _, a := range answers {
		c := chain{family: a.family, table: a.text(unix.NFTA_CHAIN_TABLE), name: a.text(unix.NFTA_CHAIN_NAME)}
		hook := attributesOf(a.attrs[unix.NFTA_CHAIN_HOOK])
		at, isBase := number(hook[unix.NFTA_HOOK_HOOKNUM])
		if !isBase || at != forwardHook(c.family) {
			continue
		}
		if policy, ok := number(a.attrs[unix.NFTA_CHAIN_POLICY]); ok && policy == verdictDrop {
			c.drops = "has the policy drop"
		}
		list = append(list, c)
	}
	if len(list) == 0 {
		return nil, nil
	}
	rules, err := askNFT(unix.NFT_MSG_GETRULE, unix.NFT_MSG_NEWRULE)
	if err != nil {
		return nil, err
	}
	for _, a := range rules {
		i := slices.IndexFunc(list, func(c chain) bool {
			return c.family == a.family && c.table == a.text(unix.NFTA_RULE_TABLE) && c.name == a.text(unix.NFTA_RULE_CHAIN)
		})
		if i >= 0 && list[i].drops == "" && dropsAll(a.attrs[unix.NFTA_RULE_EXPRESSIONS]) {
			list[i].drops = "ends with a rule that drops everything"
		}
	}
	return list, nil
}

// forwardHook is the number of a family's forward hook.
func forwardHook(family uint8) uint32 {
	if family == unix.NFPROTO_ARP {
		return 2 // NF_ARP_FORWARD
	}
	return unix.NF_INET_FORWARD // and NF_BR_FORWARD
}

// nftAnswer is an object of nftables.
type nftAnswer struct {
	family uint8
	attrs  map[uint16][]byte
}

func (a *nftAnswer) text(attr uint16) string { return nl.BytesToString(a.attrs[attr]) }

// askNFT dumps the objects of all tables.
func askNFT(get, answer uint16) (list []nftAnswer, err error) {
	req := nl.NewNetlinkRequest(unix.NFNL_SUBSYS_NFTABLES<<8|int(get), unix.NLM_F_DUMP)
	req.AddData(&nl.Nfgenmsg{NfgenFamily: unix.NFPROTO_UNSPEC, Version: nl.NFNETLINK_V0})
	messages, err := req.Execute(unix.NETLINK_NETFILTER, unix.NFNL_SUBSYS_NFTABLES<<8|answer)
	if err != nil {
		return nil, fmt.Errorf("ask for chains and rules of nftables: %w", err)
	}
	for _, m := range messages {
		if len(m) >= nl.SizeofNfgenmsg {
			list = append(list, nftAnswer{m[0], attributesOf(m[nl.SizeofNfgenmsg:])})
		}
	}
	return list, nil
}

// attributesOf reads attributes into a map; of those that are not well formed, none.
func attributesOf(b []byte) map[uint16][]byte {
	attrs, err := nl.ParseRouteAttr(b)
	if err != nil {
		return nil
	}
	m := make(map[uint16][]byte, len(attrs))
	for _, a := range attrs {
		m[a.Attr.Type&^uint16(unix.NLA_F_NESTED)] = a.Value
	}
	return m
}

// number reads a 32-bit number of nftables.
func number(b []byte) (uint32, bool) {
	if len(b) != 4 {
		return 0, false
	}
	return binary.BigEndian.Uint32(b), true
}

// dropsAll reports whether the expressions of a rule are a verdict to drop, or a rejection,
// without any condition.
func dropsAll(expressions []byte) bool {
	list, err := nl.ParseRouteAttr(expressions)
	if err != nil {
		return false
	}
	drops := false
	for _, x := range list {
		e := attributesOf(x.Value)
		switch nl.BytesToString(e[unix.NFTA_EXPR_NAME]) {
		case "counter", "log":
		case "reject":
			drops = true
		case "immediate":
			data := attributesOf(attributesOf(e[unix.NFTA_EXPR_DATA])[unix.NFTA_IMMEDIATE_DATA])
			code, ok := number(attributesOf(data[unix.NFTA_DATA_VERDICT])[unix.NFTA_VERDICT_CODE])
			drops = drops || ok && code == verdictDrop
		default:
			return false
		}
	}
	return drops
}
