// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package join

import (
	"context"
	"fmt"

	"github.com/gleam-rdma/gleam/endpoint"
)

// fixedQP is a queue pair of which only the numbers are known here: somebody
// else connects it.
type fixedQP struct {
	endpoint.QP // nil: the rest is not called
	attempt     *attempt
	info        endpoint.QPInfo
}

func (n *fixedQP) Info() endpoint.QPInfo { return n.info }

// Connect passes on what to connect to and waits until that is done.
func (n *fixedQP) Connect(ctx context.Context, to endpoint.Remote) error {
	n.attempt.described <- to
	select {
	case err := <-n.attempt.connected:
		return err
	case <-ctx.Done():
		return fmt.Errorf("the application had not connected its queue pair: %w", context.Cause(ctx))
	}
}

// fixedMR is a Memory as an endpoint.MR; its bytes are somebody else's.
type fixedMR struct {
	endpoint.MR // nil: the rest is not called
	mem         Memory
}

func (r *fixedMR) Addr() uint64 { return r.mem.Addr }
func (r *fixedMR) Len() int     { return int(r.mem.Len) }
func (r *fixedMR) RKey() uint32 { return r.mem.RKey }
