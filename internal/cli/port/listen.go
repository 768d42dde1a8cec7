// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package port

import (
	"errors"
	"fmt"
	"net"
	"syscall"
)

// Listen listens at a TCP address for other hosts' instances of command, in the network
// namespace of the calling thread.
func Listen(address, command string) (net.Listener, error) {
	ln, err := net.Listen("tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		_, p, _ := net.SplitHostPort(address) // it has been listened at
		return nil, fmt.Errorf("%w: another program has the port, perhaps another `%s` (ss -ltnp 'sport = :%s' names it): end it, or name another port", err, command, p)
	}
	return ln, err
}
