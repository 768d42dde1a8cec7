// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package envelope

// IsRenewal reports whether a datagram says of itself that it is a Renew: for a driver
// that has those served first, since leases end without them. Nothing else of it is
// looked at.
func IsRenewal(b []byte) bool { return len(b) > typeOffset && Type(b[typeOffset]) == TypeRenew }

// typeOffset is where a message's type is.
const typeOffset = 5
