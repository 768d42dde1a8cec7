// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package port

import (
	"errors"
	"fmt"
	"slices"

	"github.com/gleam-rdma/gleam/host/endpoint"
	"github.com/gleam-rdma/gleam/host/endpoint/oob"
)

// CheckDevice checks --backend, --device and --qp-timeout.
func CheckDevice(backend, device string, qpTimeout uint8) error {
	switch {
	case !slices.Contains(Backends, backend):
		return fmt.Errorf("--backend %q: want one of %v", backend, Backends)
	case backend == Soft && device != "":
		return errors.New("--device names an RDMA device, for --backend verbs; the soft backend takes --interface")
	case qpTimeout < 1 || qpTimeout > 31:
		return fmt.Errorf("--qp-timeout %d: want 1 to 31 (4.096 µs * 2^n)", qpTimeout)
	}
	return nil
}

// CheckKey checks that there is a key for registrations, and for the connections between
// sender and receivers, or that none is wanted.
func CheckKey(h *endpoint.HostConfig) error {
	if len(h.Auth.Keys) == 0 && !h.Auth.Insecure {
		return errors.New("sender, receivers and the switch trust each other by a key that all have: name its file by --key-file, " +
			"or say --insecure at all of them, which lets anybody take part")
	}
	return nil
}

// DialError adds to the error of a connection whose two sides do not agree about the key the
// flags that give this side's.
func DialError(err error) error {
	if auth := (*oob.AuthError)(nil); errors.As(err, &auth) {
		return fmt.Errorf("%w (the key of this host is that of --key-file, its id that of --key-id)", err)
	}
	return err
}
