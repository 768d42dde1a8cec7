// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package iface

import (
	"encoding/binary"
	"errors"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gleam-rdma/gleam/lab"
	"github.com/gleam-rdma/gleam/test/labtest"
)

// A veth takes redirected frames while its far end has GRO.
func TestRedirects(t *testing.T) {
	x := labtest.Star(t, lab.StarConfig{Hosts: 2, NoBridge: true})
	var r *Redirects
	if err := x.Switch.Do(func() (err error) { r, err = OpenRedirects(); return err }); err != nil {
		if errors.Is(err, unix.ENOENT) {
			t.Skipf("this kernel does not know: %v", err)
		}
		t.Fatal(err)
	}
	defer r.Close()
	h := x.Hosts[1]
	for _, want := range []bool{false, true, false} {
		if err := h.NS.SetFeature(h.Interface, lab.GRO, want); err != nil {
			t.Fatal(err)
		}
		for i, name := range x.Ports {
			l, err := x.Switch.Handle().LinkByName(name)
			if err != nil {
				t.Fatal(err)
			}
			if taken, err := r.Taken(l.Attrs().Index); err != nil || taken != (want && i == 1) {
				t.Fatalf("GRO %v at the far end of port 1: port %d takes redirected frames: %v, %v", want, i, taken, err)
			}
		}
	}
	if _, err := r.Taken(1 << 20); !errors.Is(err, unix.ENODEV) {
		t.Fatalf("an interface that does not exist: %v", err)
	}
}

// What is no answer is an error.
func TestXDPFeatures(t *testing.T) {
	answer := make([]byte, 20, 64)
	answer = append(answer, 12, 0, netdevXDPFeatures, 0, 0x67, 0, 0, 0, 0, 0, 0, 0)
	for n := range len(answer) + 1 {
		b := append([]byte(nil), answer[:n]...)
		if n >= 4 {
			binary.NativeEndian.PutUint32(b, uint32(n))
		}
		if f, err := xdpFeatures(b); n == len(answer) && (err != nil || f != 0x67) || n < len(answer) && err == nil {
			t.Errorf("%d bytes of an answer: %#x, %v", n, f, err)
		}
	}
}
