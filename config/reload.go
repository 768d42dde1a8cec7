// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package config

import "reflect"

// Restarts returns the keys at the top of the file in which c and next differ, and
// which need a restart: all but envelope.keys, which may be reloaded.
func (c *Config) Restarts(next *Config) (keys []string) {
	a, b := *c, *next
	a.Envelope.Keys, b.Envelope.Keys = nil, nil
	x, y := reflect.ValueOf(a), reflect.ValueOf(b)
	for i := range x.NumField() {
		if !reflect.DeepEqual(x.Field(i).Interface(), y.Field(i).Interface()) {
			keys = append(keys, x.Type().Field(i).Tag.Get("yaml"))
		}
	}
	return keys
}
