// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package join

import (
	"context"
	"fmt"

	"github.com/gleam-rdma/gleam/endpoint"
)

// numbers is a queue pair of which only the numbers are known here: somebody
// else connects it.
type numbers struct {
	endpoint.QP // nil: the rest is not called
	a           *attempt
	info        endpoint.QPInfo
}

func (n *numbers) Info() endpoint.QPInfo { return n.info }

// Connect passes on what to connect to and waits until that is done.
func (n *numbers) Connect(ctx context.Context, to endpoint.Remote) error {
	n.a.described <- to
	select {
	case err := <-n.a.connected:
		return err
	case <-ctx.Done():
		return fmt.Errorf("the application had not connected its queue pair: %w", context.Cause(ctx))
	}
}

// region is a Memory as an endpoint.MR; its bytes are somebody else's.
type region struct {
	endpoint.MR // nil: the rest is not called
	mem         Memory
}

func (r *region) Addr() uint64 { return r.mem.Addr }
func (r *region) Len() int     { return int(r.mem.Len) }
func (r *region) RKey() uint32 { return r.mem.RKey }
