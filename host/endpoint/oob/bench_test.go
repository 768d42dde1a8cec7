// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package oob

import (
	"context"
	"net"
	"testing"
)

// BenchmarkConnect is a connection made and admitted, with a key and without.
func BenchmarkConnect(b *testing.B) {
	for name, id := range map[string]*Identity{"plain": plain, "keyed": keyed('k')} {
		b.Run(name, func(b *testing.B) {
			ln, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				b.Fatal(err)
			}
			defer ln.Close()
			ctx := context.Background()
			for b.Loop() {
				go func() {
					if c, err := id.Dial(ctx, ln.Addr().String(), Exchange); err == nil {
						defer c.Close()
						_, _ = c.Read(make([]byte, 1))
					}
				}()
				c, err := id.Accept(ctx, ln, Exchange)
				if err != nil {
					b.Fatal(err)
				}
				c.Close()
			}
		})
	}
}

// BenchmarkNewIdentity is what a host pays once.
func BenchmarkNewIdentity(b *testing.B) {
	for b.Loop() {
		keyed('k')
	}
}
