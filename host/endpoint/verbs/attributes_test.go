// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"math"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"github.com/gleam-rdma/gleam/host/endpoint"
	"github.com/gleam-rdma/gleam/rocev2"
)

func TestPathMTUCodes(t *testing.T) {
	for code, bytes := range map[uint32]int{0: 0, 1: 256, 2: 512, 3: 1024, 4: 2048, 5: 4096, 6: 0, math.MaxUint32: 0} {
		if got := rocev2.PathMTUOfCode(code); got != bytes {
			t.Errorf("code %d: %d bytes, want %d", code, got, bytes)
		}
		if got, err := pathMTUCode(bytes); bytes != 0 && (got != code || err != nil) {
			t.Errorf("%d bytes: code %d (%v), want %d", bytes, got, err, code)
		}
	}
	for _, bytes := range []int{0, -256, 128, 1000, 8192} {
		if code, err := pathMTUCode(bytes); err == nil {
			t.Errorf("%d bytes: code %d", bytes, code)
		}
	}
}

func TestCompleteQP(t *testing.T) {
	var cfg endpoint.QPConfig
	if err := completeQP(&cfg, 1000, 1000); err != nil {
		t.Fatal(err)
	}
	want := endpoint.QPConfig{
		MaxSend: 128, MaxRecv: 128, Timeout: 14, RetryCount: 7, RNRRetry: 7, MinRNRTimer: 640 * time.Microsecond, HopLimit: 64,
	}
	if cfg != want {
		t.Errorf("defaults are %+v", cfg)
	}
	for want, cfg := range map[string]endpoint.QPConfig{
		"timeout code 32":             {Timeout: 32},
		"retry count 8":               {RetryCount: 8},
		"RNR retry count 9":           {RNRRetry: 9},
		"RNR timer of 655.361ms":      {MinRNRTimer: maxRNRTimer + time.Microsecond},
		"RNR timer of -1ns":           {MinRNRTimer: -1},
		"PSNs 0x1000000, 0x0":         {SQPSN: 1 << 24},
		"PSNs 0x0, 0x1000000":         {RQPSN: 1 << 24},
		"queues of -1 sends":          {MaxSend: -1},
		"128 sends and 1001 receives": {MaxRecv: 1001},
		"completion queues hold 1000": {MaxSend: 501, MaxRecv: 500},
	} {
		if err := completeQP(&cfg, 1000, 1000); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: error %v, want %q", cfg, err, want)
		}
	}
	if d := rocev2.RNRCodeFor(maxRNRTimer).Duration(); d != maxRNRTimer {
		t.Errorf("the code for %v is %v", maxRNRTimer, d)
	}
}

func TestCheckRemote(t *testing.T) {
	local := addr("10.0.0.1")
	good := endpoint.Remote{IP: addr("10.0.0.2"), QPN: 0x11, PathMTU: 1024}
	if err := checkRemote(local, good, 1024); err != nil {
		t.Error(err)
	}
	for want, change := range map[string]func(*endpoint.Remote){
		"same family":                 func(r *endpoint.Remote) { r.IP = addr("fd77::2") },
		"not a unicast address":       func(r *endpoint.Remote) { r.IP = addr("224.0.0.9") },
		"QPN 0x1: want 0x10":          func(r *endpoint.Remote) { r.QPN = 1 },
		"QPN 0xffffff":                func(r *endpoint.Remote) { r.QPN = 0xFFFFFF },
		"PSN 0x1000000":               func(r *endpoint.Remote) { r.RQPSN = 1 << 24 },
		"path MTU 1000: want":         func(r *endpoint.Remote) { r.PathMTU = 1000 },
		"MTU to 2128 or more":         func(r *endpoint.Remote) { r.PathMTU = 2048 },
		"invalid IP is not of the sa": func(r *endpoint.Remote) { r.IP = endpoint.Remote{}.IP },
	} {
		to := good
		change(&to)
		if err := checkRemote(local, to, 1024); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: error %v, want %q", to, err, want)
		}
	}
}

func TestAlloc(t *testing.T) {
	buf, free, err := Alloc(5000)
	if err != nil {
		t.Fatal(err)
	}
	va := uint64(uintptr(unsafe.Pointer(&buf[0])))
	page := unix.Getpagesize()
	if len(buf) != 5000 || !pageOffsetsAgree(va, 0, page) || !pageOffsetsAgree(va, uint64(7*page), page) || pageOffsetsAgree(va, 1, page) {
		t.Errorf("%d bytes at 0x%x", len(buf), va)
	}
	buf[4999] = 1
	if err := free(); err != nil {
		t.Error(err)
	}
	for _, n := range []int{0, -1, math.MaxInt} {
		if _, _, err := Alloc(n); err == nil {
			t.Errorf("allocated %d bytes", n)
		}
	}
}

// TestOutstanding compares with a slice.
func TestOutstanding(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		depth := rapid.IntRange(1, 5).Draw(t, "depth")
		o := newOutstanding(depth)
		var model []request
		t.Repeat(map[string]func(*rapid.T){
			"push": func(t *rapid.T) {
				if len(model) == depth {
					t.Skip("full")
				}
				r := request{rapid.Uint64().Draw(t, "id"), endpoint.Recv}
				o.push(r)
				model = append(model, r)
			},
			"pop": func(t *rapid.T) {
				r, ok := o.pop()
				if ok != (len(model) > 0) || ok && r != model[0] {
					t.Fatalf("popped %v %v of %v", r, ok, model)
				}
				if ok {
					model = model[1:]
				}
			},
			"drop": func(t *rapid.T) {
				k := rapid.IntRange(0, len(model)).Draw(t, "k")
				o.drop(k)
				model = model[:len(model)-k]
			},
			"": func(t *rapid.T) {
				if o.room() != depth-len(model) {
					t.Fatalf("room for %d, want %d", o.room(), depth-len(model))
				}
			},
		})
	})
}
