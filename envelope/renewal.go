// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package envelope

// IsRenewal reports whether the type byte of a datagram says Renew. A driver serves those
// first, since leases end without them. No other byte is checked.
func IsRenewal(b []byte) bool { return len(b) > typeOffset && Type(b[typeOffset]) == TypeRenew }

// typeOffset is the offset of a message's type.
const typeOffset = 5
