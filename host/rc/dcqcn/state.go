// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dcqcn

import "github.com/gleam-rdma/gleam/internal/statecode"

// CodeState writes or reads all of r that calls and time can change: two of the same Config
// behave alike from here on if their encodings are equal. It is for model checking, not for
// storage.
func (r *ReactionPoint) CodeState(code *statecode.Code) {
	c := stateCode{*code}
	if code.Reading {
		r.readState(&c)
		*code = c.Code
		return
	}
	r.catchUp(code.Now)
	code.Bytes = r.appendState(&c, c.Bytes)
}

// CodeState is as for a ReactionPoint.
func (n *NotificationPoint) CodeState(code *statecode.Code) {
	c := stateCode{*code}
	if code.Reading {
		n.readState(&c)
		*code = c.Code
		return
	}
	code.Bytes = n.appendState(&c, c.Bytes)
}

// stateCode is the encoding of either. The methods of both are generated from the tags.
type stateCode struct{ statecode.Code }
