// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package neighbours

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"os"

	"github.com/gleam-rdma/gleam/config"
	"github.com/gleam-rdma/gleam/envelope/hello"
)

// machineIDFile has the machine's ID (machine-id(5)); tests change it.
var machineIDFile = "/etc/machine-id"

// machineIDDigits is the length of a machine's ID, in hexadecimal digits.
const machineIDDigits = 32

// ID returns the identity that is configured, or else one that is made from the machine's
// ID. That ID is confidential, so it is the key of a hash (machine-id(5)).
func ID(cfg *config.Switch) (hello.SwitchID, error) {
	if cfg.ID != 0 {
		return hello.SwitchID(cfg.ID), nil
	}
	b, err := os.ReadFile(machineIDFile)
	if err != nil {
		return 0, fmt.Errorf("make the ID of this switch: %w: set switch.id", err)
	}
	if b = bytes.TrimSpace(b); len(b) != machineIDDigits {
		return 0, fmt.Errorf("make the ID of this switch: %s does not have %d hexadecimal digits (it may not be set up yet): set switch.id", machineIDFile, machineIDDigits)
	}
	h := hmac.New(sha256.New, b)
	h.Write([]byte("gleam: ID of a switch"))
	return hello.SwitchID(max(1, binary.BigEndian.Uint64(h.Sum(nil)))), nil
}
