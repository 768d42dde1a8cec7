// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"slices"
	"testing"

	"github.com/gleam-rdma/gleam/api"
)

// To what the kernel lacks come the ports that work less well. What only the fast path
// needs is missed where that is on.
func TestDescribeKernel(t *testing.T) {
	found := &api.Kernel{Release: "6.1", Degraded: []api.Degradation{{Feature: "btf", Text: "no BTF"}, {Feature: "huge_pages", Text: "no huge pages"}}}
	ports := []api.Port{
		{Name: "p1", State: api.PortOpen, XDPMode: api.XDPGeneric, Driver: "e1000", Ifindex: 1 << 30},
		{Name: "p2", State: api.PortOpen, XDPMode: "native", FastPath: &api.PortFastPath{Reason: "it has a rate"}},
		{Name: "p3", State: api.PortOpen, XDPMode: "native", FastPath: &api.PortFastPath{Used: true}},
		{Name: "p4", State: "lost", XDPMode: api.XDPGeneric},
	}
	texts := func(k *api.Kernel) (list []string) {
		for _, d := range k.Degraded {
			list = append(list, d.Port+" "+d.Text)
		}
		return list
	}
	ofPorts := []string{"p1 XDP runs in generic mode (driver e1000)", "p2 the fast path does not use it: it has a rate"}
	for fast, want := range map[bool][]string{
		true:  append([]string{" no BTF", " no huge pages"}, ofPorts...),
		false: append([]string{" no huge pages"}, ofPorts...),
	} {
		k := describeKernel(found, ports, fast)
		if got := texts(k); !slices.Equal(got, want) {
			t.Errorf("with fast_path %v: %q, want %q", fast, got, want)
		}
		if k.Release != "6.1" || len(k.Interfaces) != 0 {
			t.Errorf("%+v", k)
		}
	}
	if len(found.Degraded) != 2 || found.Degraded[0].Feature != "btf" {
		t.Errorf("what was found at the start has changed: %+v", found)
	}
}
