// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"errors"
	"reflect"

	"github.com/gleam-rdma/gleam/config"
)

// Reconfigure applies next, which differs from now, the configuration in use, in keys that
// a reload applies alone. After an error nothing has changed.
func (e *Engine) Reconfigure(now, next *config.Config, force bool) error {
	rekeyed := !reflect.DeepEqual(now.Switch.Keys, next.Switch.Keys)
	if rekeyed && (len(now.Switch.Keys) == 0 || len(next.Switch.Keys) == 0) {
		return errors.New("switch.keys: a restart begins, and ends, the exchange of hellos: a reload replaces keys by others")
	}
	if !reflect.DeepEqual(now.Envelope.Keys, next.Envelope.Keys) {
		if err := e.setKeys(&next.Envelope); err != nil {
			return err
		}
	}
	if rekeyed {
		if err := e.switches.hellos.SetKeys(&next.Switch); err != nil {
			return err
		}
		var err error
		if !e.control.do(func() { err = e.control.setTrees(&next.Switch) }) {
			return errStopped
		}
		return err
	}
	return nil
}
