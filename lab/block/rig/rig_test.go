// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"bytes"
	"context"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/gleam-rdma/gleam/test/labtest"
)

var programs = labtest.Programs{Packages: []string{"github.com/gleam-rdma/gleam/lab/block/blockd", "github.com/gleam-rdma/gleam/cmd/gleamd"}}

func TestMain(m *testing.M) { os.Exit(programs.Run(m)) }

// start starts a device; what gateway and replicas have written is the log of a test that fails.
func start(t *testing.T, c Config) *Device {
	t.Helper()
	labtest.Require(t)
	labtest.Part(t, "block", "soak-block") // its programs would take the CPUs from other packages
	c.Blockd, c.Gleamd = programs.Path(t, "blockd"), programs.Path(t, "gleamd")
	if c.Size == "" {
		c.Size = "16M"
	}
	if c.MTU == 0 {
		c.MTU = 1024
	}
	d, err := Start(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("gateway:\n%s", d.Gateway().Output())
			for i := range c.Replicas {
				t.Logf("replica %d:\n%s", i+1, d.Replica(i+1).Output())
			}
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

func dial(t *testing.T, d *Device) *Client {
	t.Helper()
	n, err := Dial(d.Socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = n.Close() })
	return n
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestDevice(t *testing.T) {
	for name, more := range map[string][]string{"group": nil, "unicast": {"-unicast"}, "quorum": {"-quorum", "2"}} {
		t.Run(name, func(t *testing.T) {
			d := start(t, Config{Replicas: 3, Gateway: more})
			n := dial(t, d)
			want := make([]byte, n.Size)
			r := rand.New(rand.NewPCG(1, 2))
			for range 200 {
				k := r.IntN(100_000) + 1
				off := r.Int64N(n.Size - int64(k))
				p := want[off:][:k]
				switch r.IntN(8) {
				case 0:
					clear(p)
					ok(t, n.Do(Trim, 0, off, k, nil))
				case 1:
					clear(p)
					ok(t, n.Do(WriteZeroes, 2, off, k, nil))
				case 2:
					ok(t, n.Do(Flush, 0, 0, 0, nil))
				default:
					for i := range p {
						p[i] = byte(r.Uint32())
					}
					ok(t, n.Do(Write, uint16(r.IntN(2)), off, k, p))
				}
			}
			big := want[:3<<20]
			for i := range big {
				big[i] = byte(r.Uint32())
			}
			ok(t, n.Do(Write, 0, 0, len(big), big))
			for range 3 { // another replica each time, or the same
				got := make([]byte, n.Size)
				ok(t, n.Do(Read, 0, 0, len(got), got))
				if !bytes.Equal(got, want) {
					t.Fatal("the device has other bytes than were written")
				}
			}
		})
	}
}

// Clients that others wrote agree with the handshake and the requests.
func TestClients(t *testing.T) {
	d := start(t, Config{Replicas: 2})
	labtest.Needs(t, "nbdinfo", "qemu-io")
	uri := "nbd+unix:///?socket=" + d.Socket
	for _, c := range [][]string{
		{"nbdinfo", uri}, {"nbdinfo", "--list", uri},
		{"qemu-io", "-f", "raw", "-c", "write -P 7 4096 65536", "-c", "write -f -P 9 8192 512", "-c", "read -P 9 8192 512", "-c", "discard 0 4096", "-c", "write -z 65536 4096", "-c", "flush", uri},
	} {
		out, err := exec.Command(c[0], c[1:]...).CombinedOutput()
		if err != nil || strings.Contains(string(out), "failed") {
			t.Errorf("%v: %v\n%s", c, err, out)
		}
		t.Logf("%s", out)
	}
}
