// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/internal/doctor/checks"
	"github.com/gleam-rdma/gleam/test/labtest"
)

// What a host's NIC merges is found.
func TestHostOffloads(t *testing.T) {
	r := &Report{}
	checkHostOffloads(r, "eth0", func(string) (map[string]bool, error) { return map[string]bool{featureLRO: true}, nil })
	if len(r.Findings) != 1 || r.Findings[0].Command != "ethtool -K eth0 lro off" {
		t.Errorf("%+v", r.Findings)
	}
}

// What is wrong with an RDMA device is found.
func TestDevice(t *testing.T) {
	const dev, verbs = infiniband + "mlx5_0/ports/1/", "/sys/class/infiniband_verbs/uverbs0/ibdev"
	ip := netip.MustParseAddr("10.77.0.1")
	for _, c := range []struct {
		name    string
		change  map[string]string // changes of a device that is all right; "": the file is not there
		want    string            // ends a part of the finding
		command string
	}{
		{"all is well", nil, "", ""},
		{"none", map[string]string{dev + "gid_attrs/ndevs/0": "eth7"}, "no RDMA device is on eth0", "rdma link add rxe_eth0 type rxe netdev eth0"},
		{"iWARP", map[string]string{infiniband + "mlx5_0/node_type": "4: RNIC"}, "mlx5_0 speaks iWARP, not RoCE v2", ""},
		{"a protocol of its own", map[string]string{infiniband + "mlx5_0/node_type": "7: <unknown>"}, "mlx5_0 speaks a protocol of its own (node type 7: <unknown>)", ""},
		{"RoCE", map[string]string{infiniband + "mlx5_0/node_type": "1: CA"}, "", ""},
		{"RoCE v1 alone", map[string]string{dev + "gid_attrs/types/0": "IB/RoCE v1"}, "none of type RoCE v2", "cma_roce_mode -d mlx5_0 -p 1 -m 2"},
		{"another address", map[string]string{dev + "gids/0": "0000:0000:0000:0000:0000:ffff:0a4d:0009"}, "mlx5_0 has no GID for 10.77.0.1", "ip address change 10.77.0.1 dev eth0"},
		{"not active", map[string]string{dev + "state": "1: DOWN"}, "port 1 of mlx5_0 is not active (1: DOWN)", "ip link set eth0 up"},
		{"InfiniBand", map[string]string{dev + "link_layer": "InfiniBand"}, "no Ethernet", ""},
		{"no ib_uverbs", map[string]string{verbs: ""}, "ib_uverbs is not loaded", "modprobe ib_uverbs"},
	} {
		files := map[string]string{
			dev + "gids/0": "0000:0000:0000:0000:0000:ffff:0a4d:0001", dev + "gid_attrs/types/0": "RoCE v2", dev + "gid_attrs/ndevs/0": "eth0",
			dev + "state": "4: ACTIVE", dev + "link_layer": "Ethernet", verbs: "mlx5_0", "/dev/infiniband/uverbs0": "",
		}
		for k, v := range c.change {
			if files[k] = v; v == "" {
				delete(files, k)
			}
		}
		r := &Report{}
		m := &machine{&checks.Machine{Root: labtest.Files(t, files)}}
		m.checkDevice(r, "eth0", ip, &HostOptions{})
		r.Findings = deleteLocked(r.Findings)
		if c.want == "" {
			if len(r.Findings) > 0 {
				t.Errorf("%s: %+v", c.name, r.Findings)
			}
		} else if len(r.Findings) != 1 || !strings.Contains(r.Findings[0].Text, c.want) || r.Findings[0].Command != c.command || r.Findings[0].Cost == "" {
			t.Errorf("%s: %+v", c.name, r.Findings)
		}
	}
}

// Adapters that speak another protocol than RoCE are known by their driver or the type of their node.
func TestOtherProtocols(t *testing.T) {
	for device, want := range map[string]string{"efa_0": "the SRD of AWS EFA", "erdma_0": "Alibaba's eRDMA", "cxgb4_0": "iWARP", "irdma0": "iWARP", "siw0": "iWARP", "mlx5_1": "", "rxe0": ""} {
		kind := map[string]string{"the SRD of AWS EFA": "7: <unknown>", "": "1: CA"}[want]
		m := &machine{&checks.Machine{Root: labtest.Files(t, map[string]string{infiniband + device + "/node_type": cmp.Or(kind, "4: RNIC")})}}
		if is, remedy := m.otherProtocol(device); is != want || (remedy == "") != (want == "") || strings.Contains(remedy, "enable_roce") != (device == "irdma0") {
			t.Errorf("%s: %q, %q; want %q", device, is, remedy, want)
		}
	}
}

// deleteLocked leaves out the finding about this user's limit.
func deleteLocked(list []Finding) (rest []Finding) {
	for _, f := range list {
		if !strings.Contains(f.Text, "may lock") {
			rest = append(rest, f)
		}
	}
	return rest
}

// Settings of queue pairs that do not go with a group are found.
func TestSettings(t *testing.T) {
	for _, c := range []struct {
		timeout, retries, rnr uint8
		dead                  time.Duration
		want                  string
		severity              Severity
	}{
		{14, 7, 7, 100 * time.Millisecond, "", ""},
		{14, 7, 7, 0, "", ""},
		{0, 7, 7, 0, "waits for ever", Error},
		{18, 7, 7, 100 * time.Millisecond, "not longer than a sender's timeout", Error},
		{8, 7, 7, 100 * time.Millisecond, "the sender would give up first", Error},
		{14, 8, 7, 0, "8 is not in 1 to 7", Error},
		{14, 3, 7, 0, "retry_cnt 3", Warning},
		{22, 7, 7, 0, "timeout 22", Warning},
		{8, 7, 7, 0, "fails after 8.388608ms without an answer; a ConnectX as delivered repeats each 537ms, and fails after about 3.8s", Warning},
		{14, 3, 7, 0, "about 1.6s", Warning},
		{14, 7, 3, 100 * time.Millisecond, "rnr_retry 3", Warning},
	} {
		r := &Report{}
		checkSettings(r, &HostOptions{PathMTU: 1024, Timeout: c.timeout, Retries: c.retries, RNRRetry: c.rnr, DeadAfter: c.dead})
		if c.want == "" {
			if len(r.Findings) > 0 {
				t.Errorf("%+v: %+v", c, r.Findings)
			}
		} else if len(r.Findings) != 1 || !strings.Contains(r.Findings[0].Text, c.want) || r.Findings[0].Severity != c.severity {
			t.Errorf("%+v: %+v", c, r.Findings)
		}
	}
}
