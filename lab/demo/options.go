// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package demo is `gleam demo`: the main job from end to end on one machine. It makes a
// lab of namespaces, runs the real gleamd in the one in the middle, software RDMA
// endpoints in the others, sends a file from one to all by the group and then again by
// separate unicasts, and compares the received bytes.
package demo

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/gleam-rdma/gleam/host/endpoint"
	"github.com/gleam-rdma/gleam/lab"
	"github.com/gleam-rdma/gleam/lab/fabric"
	"github.com/gleam-rdma/gleam/rocev2"
)

// Options are the demo's parameters. Change those of Default.
type Options struct {
	File        string  // file to send; empty: Size bytes of generated data
	Size        int64   // bytes, if there is no File
	Members     int     // members of the group, the sender included: 2 to lab.MaxHosts
	Op          string  // write, write-imm or send
	MessageSize int64   // bytes of each message
	MTU         int     // path MTU in bytes: 256, 512, 1024, 2048 or 4096
	Loss        float64 // probability with which each packet is lost at each endpoint, in either direction
	Repair      bool    // true: the switch repairs losses behind it
	Seed        uint64  // the seed of the losses and the generated data
	IPv6        bool
	Rotate      int           // turns of every member as the source, in place of one transfer
	Policy      string        // the policy for dead or failing receivers: strict, evict or quorum:K
	KillMember  string        // kill this receiver when half of the messages are complete
	FastPath    bool          // true: gleamd's fast path is on: XDP replicates
	Targets     bool          // send once more with a target message before each WRITE
	Keep        bool          // leave the lab up
	Web         string        // address of the live page, which is shown until an interrupt; empty: none
	Timeout     time.Duration // the timeout of each transfer
	Gleamd      string        // path of the daemon; empty: beside this program, or in PATH
	FabricOptions
}

// Default returns the options of `make demo`.
func Default() Options {
	return Options{
		Size: 64 << 20, Members: 4, Op: "write", MessageSize: 1 << 20, MTU: 1024, Repair: true, Seed: 1, Policy: "strict", Timeout: 5 * time.Minute,
		FabricOptions: FabricOptions{Leaves: 4, Spines: 2, K: 4, Routing: fabric.Static},
	}
}

// maxMessage is the longest message of RC, 2^31 bytes (IBTA C9-94); payload of the demo
// as a whole is bounded by memory: every receiver holds all of it.
const maxMessage = 1 << 31

// check reports the first option that cannot be.
func (o *Options) check() error {
	if err := o.checkFabric(); err != nil {
		return err
	}
	switch {
	case o.Topology == "" && (o.Members < 2 || o.Members > lab.MaxHosts):
		return fmt.Errorf("--members %d: want 2 to %d, the sender included", o.Members, lab.MaxHosts)
	case !rocev2.ValidPathMTU(o.MTU):
		return fmt.Errorf("--mtu %d: want %s (the path MTU, in bytes of payload)", o.MTU, rocev2.PathMTUText)
	case o.MessageSize < 1 || o.MessageSize > maxMessage:
		return fmt.Errorf("--message-size %d: want 1 to %d bytes", o.MessageSize, maxMessage)
	case o.File == "" && (o.Size < 1 || o.Size > math.MaxInt32*16):
		return fmt.Errorf("--size %d: want 1 byte to 32GiB", o.Size)
	case math.IsNaN(o.Loss) || o.Loss < 0 || o.Loss > 0.3:
		return fmt.Errorf("--loss %v: want a probability from 0 to 0.3", o.Loss)
	case o.Rotate < 0 || o.Rotate > 100:
		return fmt.Errorf("--rotate %d: want how often every member is to be the source, up to 100", o.Rotate)
	case o.Rotate > 0 && o.File != "":
		return errors.New("--rotate with --file: every source sends bytes of its own, give a --size")
	case o.KillMember != "" && (o.Rotate > 0 || o.Targets):
		return errors.New("--kill-member goes neither with --rotate nor with --targets")
	case o.Targets && (o.Rotate > 0 || o.Op == endpoint.Send.String()):
		return errors.New("--targets is for WRITEs, and not with --rotate")
	case o.Targets && strings.HasPrefix(o.Policy, "quorum"):
		return errors.New("--targets: not with a quorum, whose stragglers would need targets of long ago")
	case o.Timeout <= 0:
		return fmt.Errorf("--timeout %v: want more than 0", o.Timeout)
	}
	if o.KillMember != "" {
		if _, err := o.victim(); err != nil {
			return err
		}
	}
	if _, _, err := o.policy(); err != nil {
		return err
	}
	_, err := o.op()
	return err
}

func (o *Options) op() (endpoint.WROp, error) {
	for _, op := range []endpoint.WROp{endpoint.Write, endpoint.WriteImm, endpoint.Send} {
		if op.String() == o.Op {
			return op, nil
		}
	}
	return 0, fmt.Errorf("--op %q: want write, write-imm or send", o.Op)
}

// Size is a number of bytes as the command line takes it: 4096, 64KiB, 16MiB,
// 1GiB, also with K, M, G, KB, MB, GB for the same powers of two. It is a
// pflag.Value.
type Size int64

// Set parses s.
func (z *Size) Set(s string) error {
	num := strings.TrimRight(strings.ToLower(strings.TrimSpace(s)), "kmgib")
	unit := strings.ToLower(strings.TrimSpace(s))[len(num):]
	shift, ok := map[string]uint{"": 0, "b": 0, "k": 10, "kb": 10, "kib": 10, "m": 20, "mb": 20, "mib": 20, "g": 30, "gb": 30, "gib": 30}[unit]
	n, err := strconv.ParseInt(num, 10, 64)
	if !ok || err != nil || n < 0 || n > math.MaxInt64>>shift {
		return fmt.Errorf("%q is no size: want something like 4096, 64KiB or 16MiB", s)
	}
	*z = Size(n << shift)
	return nil
}

// String returns z in the largest unit that divides it.
func (z *Size) String() string { return sizeString(int64(*z)) }

// Type names the value in help texts.
func (z *Size) Type() string { return "size" }

func sizeString(n int64) string {
	for _, u := range []struct {
		name  string
		shift uint
	}{{"GiB", 30}, {"MiB", 20}, {"KiB", 10}} {
		if n > 0 && n&(1<<u.shift-1) == 0 {
			return fmt.Sprintf("%d%s", n>>u.shift, u.name)
		}
	}
	return strconv.FormatInt(n, 10)
}
