// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"errors"
	"io"
	"net"
	"sync"
)

// Relay has TCP connections to l go to an address in the namespace n. It returns when l is closed,
// after the connections have ended.
func (n *Namespace) Relay(l net.Listener, address string) error {
	var open sync.WaitGroup
	defer open.Wait()
	done := make(chan struct{})
	defer close(done)
	for {
		near, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return err
		}
		open.Go(func() {
			defer near.Close()
			var far net.Conn
			if n.Do(func() (err error) { far, err = net.Dial("tcp", address); return err }) != nil {
				return // the far end refuses, and so does this one
			}
			defer far.Close()
			ended := make(chan struct{}, 2)
			for _, c := range [][2]net.Conn{{near, far}, {far, near}} {
				open.Go(func() {
					_, _ = io.Copy(c[0], c[1]) // an error is an end
					ended <- struct{}{}
				})
			}
			select {
			case <-ended:
			case <-done:
			}
		})
	}
}
