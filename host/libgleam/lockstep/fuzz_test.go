// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package lockstep

import (
	"os"
	"os/exec"
	"testing"

	"github.com/gleam-rdma/gleam/test/labtest"
)

// programEnv has the machine's file for the processes that fuzz: they need not build it.
const programEnv = "GLEAM_LOCKSTEP_MACHINE"

// FuzzWire: the decoders of libgleam and of package envelope take the same messages for the
// same, and refuse the same for the same reason. The bytes have no MAC, so that the bodies
// are looked at.
func FuzzWire(f *testing.F) {
	for _, b := range corpus(f) {
		f.Add(b)
	}
	if os.Getenv(programEnv) == "" {
		labtest.Needs(f, "gcc")
		f.Setenv(programEnv, program.Path(f, "machine"))
	}
	var c *process
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) < 12 || len(b) > 60000 {
			return
		}
		if c == nil {
			cmd := exec.Command(os.Getenv(programEnv))
			cmd.Stderr = os.Stderr
			var err error
			if c, err = run(cmd); err != nil {
				t.Fatal(err)
			}
		}
		c.t = t
		x := append([]byte(nil), b...)
		x[6], x[7], x[10], x[11] = 0, 0, byte(len(x)>>8), byte(len(x))
		sameCodec(t, c, nil, true, x)
	})
}
