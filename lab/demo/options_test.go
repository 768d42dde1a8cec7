// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"math"
	"strings"
	"testing"
	"time"
)

func TestSize(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "1": 1, "4096": 4096, "100b": 100, " 7 ": 7,
		"1k": 1 << 10, "1KB": 1 << 10, "64KiB": 64 << 10, "16MiB": 16 << 20, "16m": 16 << 20, "2GiB": 2 << 30, "3g": 3 << 30,
		"8589934591GiB": 8589934591 << 30,
	} {
		var z Size
		if err := z.Set(text); err != nil || int64(z) != want {
			t.Errorf("%q is %d, %v, want %d", text, int64(z), err, want)
		}
		back := Size(-1)
		if err := back.Set(z.String()); err != nil || back != z {
			t.Errorf("%q printed as %q, which is %d, %v", text, z.String(), int64(back), err)
		}
	}
	for _, text := range []string{"", "MiB", "-1", "1.5MiB", "1TiB", "1 2", "1kk", "0x10", "8589934592GiB", "99999999999999999999"} {
		z := Size(5)
		if err := z.Set(text); err == nil || !strings.Contains(err.Error(), text) || z != 5 {
			t.Errorf("%q is %d, %v, want an error that quotes it", text, int64(z), err)
		}
	}
	for n, want := range map[int64]string{0: "0", 1023: "1023", 1024: "1KiB", 1536: "1536", 64 << 20: "64MiB", 1 << 30: "1GiB"} {
		if got := sizeString(n); got != want {
			t.Errorf("%d prints as %s, want %s", n, got, want)
		}
	}
}

func TestOptions(t *testing.T) {
	d := Default()
	if err := d.check(); err != nil {
		t.Errorf("the defaults: %v", err)
	}
	for name, c := range map[string]struct {
		change func(*Options)
		says   string // empty: fine
	}{
		"two members":            {func(o *Options) { o.Members = 2 }, ""},
		"64 members":             {func(o *Options) { o.Members = 64 }, ""},
		"one member":             {func(o *Options) { o.Members = 1 }, "--members 1"},
		"65 members":             {func(o *Options) { o.Members = 129 }, "--members 129"},
		"path MTU 256":           {func(o *Options) { o.MTU = 256 }, ""},
		"path MTU 2048":          {func(o *Options) { o.MTU = 2048 }, ""},
		"path MTU 4096":          {func(o *Options) { o.MTU = 4096 }, ""},
		"path MTU 8192":          {func(o *Options) { o.MTU = 8192 }, "--mtu 8192"},
		"path MTU 1500":          {func(o *Options) { o.MTU = 1500 }, "--mtu 1500"},
		"no message":             {func(o *Options) { o.MessageSize = 0 }, "--message-size 0"},
		"messages of 2 GiB":      {func(o *Options) { o.MessageSize = 1 << 31 }, ""},
		"messages beyond":        {func(o *Options) { o.MessageSize = 1<<31 + 1 }, "--message-size 2147483649"},
		"nothing to send":        {func(o *Options) { o.Size = 0 }, "--size 0"},
		"a file instead":         {func(o *Options) { o.Size, o.File = 0, "x" }, ""},
		"a third lost":           {func(o *Options) { o.Loss = 0.3 }, ""},
		"more lost":              {func(o *Options) { o.Loss = 0.31 }, "--loss 0.31"},
		"negative loss":          {func(o *Options) { o.Loss = -0.1 }, "--loss -0.1"},
		"loss of NaN":            {func(o *Options) { o.Loss = math.NaN() }, "--loss NaN"},
		"READ":                   {func(o *Options) { o.Op = "read" }, `--op "read"`},
		"no operation":           {func(o *Options) { o.Op = "" }, "--op"},
		"send":                   {func(o *Options) { o.Op = "send" }, ""},
		"write-imm":              {func(o *Options) { o.Op = "write-imm" }, ""},
		"no time":                {func(o *Options) { o.Timeout = -time.Second }, "--timeout -1s"},
		"rotation":               {func(o *Options) { o.Rotate = 2 }, ""},
		"rotation backwards":     {func(o *Options) { o.Rotate = -1 }, "--rotate -1"},
		"rotation with one file": {func(o *Options) { o.Rotate, o.File = 1, "x" }, "--file"},
	} {
		o := Default()
		c.change(&o)
		err := o.check()
		if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
	}
}

func TestSamePrefix(t *testing.T) {
	const n = 200_000
	for _, at := range []int{0, 1, 65535, 65536, 65537, n - 1, n} {
		a, b := make([]byte, n), make([]byte, n)
		if at < n {
			b[at] = 1
		}
		if got := samePrefix(a, b); got != at {
			t.Errorf("%d bytes are the same, want %d", got, at)
		}
	}
}
