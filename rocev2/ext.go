// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package rocev2

import "encoding/binary"

// RETH is an RDMA extended transport header, RETHLen bytes (IBTA §9.3.3).
//
//	0 VA(64)  8 R_Key(32)  12 DMALen(32)
type RETH []byte

// VA returns the remote virtual address.
func (r RETH) VA() uint64 { return binary.BigEndian.Uint64(r[0:8]) }

// RKey returns the remote key.
func (r RETH) RKey() uint32 { return binary.BigEndian.Uint32(r[8:12]) }

// DMALen returns the length in bytes of the whole message.
func (r RETH) DMALen() uint32 { return binary.BigEndian.Uint32(r[12:16]) }

// SetVA sets the remote virtual address.
func (r RETH) SetVA(v uint64) { binary.BigEndian.PutUint64(r[0:8], v) }

// SetRKey sets the remote key.
func (r RETH) SetRKey(k uint32) { binary.BigEndian.PutUint32(r[8:12], k) }

// SetDMALen sets the length of the message.
func (r RETH) SetDMALen(n uint32) { binary.BigEndian.PutUint32(r[12:16], n) }

// ImmDt is the immediate data, ImmDtLen bytes (IBTA §9.3.6). It is carried without
// interpretation.
type ImmDt []byte

// Data returns the immediate data in network byte order, as a number.
func (i ImmDt) Data() uint32 { return binary.BigEndian.Uint32(i[0:4]) }

// SetData sets the immediate data.
func (i ImmDt) SetData(v uint32) { binary.BigEndian.PutUint32(i[0:4], v) }

// IETH is an invalidate extended transport header, IETHLen bytes (IBTA §9.3.7): the R_Key
// that the receiver must invalidate.
type IETH []byte

// RKey returns the key to invalidate.
func (i IETH) RKey() uint32 { return binary.BigEndian.Uint32(i[0:4]) }

// SetRKey sets the key to invalidate.
func (i IETH) SetRKey(k uint32) { binary.BigEndian.PutUint32(i[0:4], k) }

// AtomicETH is an atomic extended transport header, AtomicETHLen bytes (IBTA
// §9.3.4).
//
//	0 VA(64)  8 R_Key(32)  12 swap or add(64)  20 compare(64)
type AtomicETH []byte

// VA returns the remote virtual address.
func (a AtomicETH) VA() uint64 { return binary.BigEndian.Uint64(a[0:8]) }

// RKey returns the remote key.
func (a AtomicETH) RKey() uint32 { return binary.BigEndian.Uint32(a[8:12]) }

// SwapAdd returns the new value of a swap, or the summand of an add.
func (a AtomicETH) SwapAdd() uint64 { return binary.BigEndian.Uint64(a[12:20]) }

// Compare returns the value for the comparison.
func (a AtomicETH) Compare() uint64 { return binary.BigEndian.Uint64(a[20:28]) }

// SetVA sets the remote virtual address.
func (a AtomicETH) SetVA(v uint64) { binary.BigEndian.PutUint64(a[0:8], v) }

// SetRKey sets the remote key.
func (a AtomicETH) SetRKey(k uint32) { binary.BigEndian.PutUint32(a[8:12], k) }

// SetSwapAdd sets the new value of a swap, or the summand of an add.
func (a AtomicETH) SetSwapAdd(v uint64) { binary.BigEndian.PutUint64(a[12:20], v) }

// SetCompare sets the value for the comparison.
func (a AtomicETH) SetCompare(v uint64) { binary.BigEndian.PutUint64(a[20:28], v) }
