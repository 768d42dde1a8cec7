// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"reflect"

	"github.com/gleam-rdma/gleam/config"
)

// Reconfigure applies next, which differs from now, the configuration in use, in keys that
// a reload applies alone. After an error nothing has changed.
func (e *Engine) Reconfigure(now, next *config.Config, force bool) error {
	if !reflect.DeepEqual(now.Envelope.Keys, next.Envelope.Keys) {
		return e.setKeys(&next.Envelope)
	}
	return nil
}
