// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/bpf"
	"github.com/gleam-rdma/gleam/config"
	"github.com/gleam-rdma/gleam/dataplane/xsk"
	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/envelope/hello"
	"github.com/gleam-rdma/gleam/host/endpoint"
	"github.com/gleam-rdma/gleam/mcast"
)

// TestOneDefaultQPN: members that are set up apart from each other arrive at the
// same virtual QPN, whichever way in they take, and read of the same one.
func TestOneDefaultQPN(t *testing.T) {
	r := api.Register{}
	r.Default()
	if r.QPN != api.QPN(mcast.DefaultQPN) || endpoint.DefaultVirtualQPN != mcast.DefaultQPN || !mcast.DefaultQPN.Valid() {
		t.Errorf("default virtual QPNs: API %#x, endpoint %#x, core %#x", r.QPN, endpoint.DefaultVirtualQPN, mcast.DefaultQPN)
	}
	number := fmt.Sprintf("%#x", uint32(mcast.DefaultQPN))
	for file, want := range map[string]string{
		"host/libgleam/gleam.h": "virtual_qpn;      /* [" + number + "] */",
		"docs/APPLICATIONS.md":  number + " unless somebody names another",
	} {
		text, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), want) {
			t.Errorf("%s does not say %q", file, want)
		}
	}
}

// The configuration takes as many entries of an allow list as the tables of the XDP
// program have, and says so for one more.
func TestAllowListsFitTheirTables(t *testing.T) {
	for entries, fits := range map[int]bool{bpf.MaxAllowed: true, bpf.MaxAllowed + 1: false} {
		var list []string
		for i := range entries {
			list = append(list, fmt.Sprintf("10.%d.%d.0/24", i/256, i%256))
		}
		text := fmt.Sprintf("ports:\n  - name: eth1\n    allow:\n      addresses: [%s]\ngroup_prefixes: [10.99.0.0/24]\nenvelope: {insecure: true}\n", strings.Join(list, ", "))
		_, err := config.Parse("x.yaml", []byte(text))
		if refused := err != nil && strings.Contains(err.Error(), fmt.Sprintf("want at most %d", bpf.MaxAllowed)); refused == fits {
			t.Errorf("%d entries, where the tables have %d: %v", entries, bpf.MaxAllowed, err)
		} else if fits && err != nil {
			t.Errorf("%d entries: %v", entries, err)
		}
	}
}

// What a package has without a configuration is what gleamd has with the configuration's defaults.
func TestConfiguredDefaults(t *testing.T) {
	c := config.Default()
	for key, values := range map[string][2]any{
		"api.socket":            {c.API.Socket, api.DefaultSocket},
		"envelope.udp_port":     {c.Envelope.UDPPort, uint16(envelope.DefaultPort)},
		"limits.source_timeout": {c.Limits.SourceTimeout, mcast.DefaultSourceTimeout},
		"repair.timeout":        {c.Repair.Timeout, mcast.DefaultRepairTimeout},
		"repair.tries":          {c.Repair.Tries, mcast.DefaultRepairTries},
		"rings.rx":              {c.Rings.RX, xsk.DefaultRingSize},
		"switch.hello_interval": {c.Switch.HelloInterval, hello.DefaultInterval},
	} {
		if values[0] != values[1] {
			t.Errorf("%s: the configuration has %v, the package that it is for %v", key, values[0], values[1])
		}
	}
}

// The interval of hellos has the bounds of the protocol.
func TestConfiguredHellos(t *testing.T) {
	for interval, fits := range map[time.Duration]bool{
		hello.MinInterval: true, hello.MinInterval - time.Millisecond: false, hello.MaxInterval: true, hello.MaxInterval + time.Millisecond: false,
	} {
		_, err := config.Parse("x.yaml", fmt.Appendf(nil, "ports: [{name: eth1}]\ngroup_prefixes: [10.99.0.0/24]\nenvelope: {insecure: true}\nswitch: {hello_interval: %v}\n", interval))
		if (err == nil) != fits {
			t.Errorf("hello_interval %v: %v", interval, err)
		}
	}
}

// The folder of the daemon's socket becomes the daemon's user's: what root writes or believes is elsewhere.
func TestSocketsFolderHasTheSocketAlone(t *testing.T) {
	folder := filepath.Dir(api.DefaultSocket)
	for name, src := range goFiles(t) {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text := strings.ReplaceAll(string(src), api.DefaultSocket, "")
		for _, s := range []string{`"` + folder + `"`, `"` + folder + `/`} {
			if strings.Contains(text, s) {
				t.Errorf("%s names %s: that is the folder of gleamd's user", name, s)
			}
		}
	}
}
