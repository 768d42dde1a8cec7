// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package cm

import (
	"encoding/binary"

	"github.com/gleam-rdma/gleam/rocev2"
)

// Refusal is why a REQ is rejected, or why a connection has ended at the switch's will.
// The zero Refusal is none.
type Refusal struct {
	Reason RejectReason
	Code   Code // the code under ConsumerReject
	Text   string
	mtu    uint8  // right MTU by IBTA's code, with InvalidMTU
	nonce  uint64 // nonce that the next REQ has to show, with Unproven
}

// Code is the second byte of the private data of a REJ with ConsumerReject.
type Code uint8

// Codes of refusals.
const (
	NotAuthenticated Code = 1 // no private data, a wrong MAC, or an address that the group is not open for
	NotRegistered    Code = 2 // the registrar rejects the member
	GroupEnded       Code = 3
	Incomplete       Code = 4 // the other members did not come in time
	Replaced         Code = 5 // another REQ of the address came
	ListenerRefused  Code = 6 // a listener that the switch has dialled has refused
	NotCreated       Code = 7 // the REQ may not make the group, or the group expects another number of members
	Unproven         Code = 8 // the REQ has not the nonce that follows: connect again with it
)

var replacement = Refusal{Reason: ConsumerReject, Code: Replaced, Text: "another queue pair of this address has connected"}

// nonceLen is the length of the nonce in a REJ with Unproven: the third byte of its private data, which is
// else 0. The nonce follows, and then the text.
const nonceLen = 8

// unproven refuses a REQ without the switch's nonce.
func unproven(nonce uint64) Refusal {
	return Refusal{Reason: ConsumerReject, Code: Unproven, Text: "connect again with the switch's nonce: gleam_cm_connect does", nonce: nonce}
}

// wrongMTU refuses another path MTU than the group's, in bytes.
func wrongMTU(mtu int) Refusal {
	return Refusal{Reason: InvalidMTU, mtu: uint8(rocev2.PathMTUCode(mtu))}
}

// rejection returns the REJ, without its IDs, that says x.
func rejection(x *Refusal) *Message {
	m := &Message{Attribute: ConnectReject, Reject: Reject{Of: RejectedREQ, Reason: x.Reason}}
	switch x.Reason {
	case ConsumerReject:
		m.Data = []byte{privateVersion, byte(x.Code), 0}
		if x.Code == Unproven {
			m.Data[2] = nonceLen
			m.Data = binary.BigEndian.AppendUint64(m.Data, x.nonce)
		}
		m.Data = append(m.Data, x.Text...)
	case InvalidMTU:
		m.Reject.ARI = []byte{x.mtu << 4}
	}
	return m
}
