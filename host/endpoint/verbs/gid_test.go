// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"
)

func addr(s string) netip.Addr { return netip.MustParseAddr(s) }

// twoPorts is the table of a device with two ports, the first of which has a
// VLAN interface as well.
var twoPorts = []gid{
	{addr: addr("fe80::1"), port: 1, index: 0, rocev2: true, ifindex: 2},
	{addr: addr("fd77::1"), port: 1, index: 1, rocev2: true, ifindex: 2},
	{addr: addr("10.0.0.1"), port: 1, index: 2, ifindex: 2}, // RoCEv1
	{addr: addr("10.0.0.1"), port: 1, index: 3, rocev2: true, ifindex: 2},
	{addr: addr("10.0.0.2"), port: 1, index: 4, rocev2: true, ifindex: 2},
	{addr: addr("10.9.0.1"), port: 1, index: 5, rocev2: true, ifindex: 3},
	{addr: addr("10.0.0.1"), port: 1, index: 6, rocev2: true, ifindex: 2}, // again
	{addr: addr("10.5.0.1"), port: 2, index: 3, rocev2: true, ifindex: 4},
}

func TestChooseGIDs(t *testing.T) {
	for name, c := range map[string]struct {
		cfg     Config
		ifindex int
		port    uint8
		want    []uint8 // indices
	}{
		"any":                        {want: []uint8{3, 4, 5, 1}, port: 1},
		"interface":                  {ifindex: 2, want: []uint8{3, 4, 1}, port: 1},
		"VLAN interface":             {ifindex: 3, want: []uint8{5}, port: 1},
		"interface of the 2nd port":  {ifindex: 4, want: []uint8{3}, port: 2},
		"address":                    {cfg: Config{LocalIP: addr("10.0.0.2")}, want: []uint8{4, 3, 5, 1}, port: 1},
		"IPv6 address":               {cfg: Config{LocalIP: addr("fd77::1")}, want: []uint8{1, 3, 4, 5}, port: 1},
		"address of the 2nd port":    {cfg: Config{LocalIP: addr("10.5.0.1")}, want: []uint8{3}, port: 2},
		"port":                       {cfg: Config{Port: 2}, want: []uint8{3}, port: 2},
		"address not of the port":    {cfg: Config{Port: 2, LocalIP: addr("10.0.0.1")}},
		"address of other interface": {cfg: Config{LocalIP: addr("10.0.0.1")}, ifindex: 3},
		"unknown address":            {cfg: Config{LocalIP: addr("10.0.0.9")}},
		"link-local address":         {cfg: Config{LocalIP: addr("fe80::1")}},
		"unknown port":               {cfg: Config{Port: 3}},
	} {
		var got []uint8
		for _, g := range chooseGIDs(twoPorts, c.cfg, c.ifindex) {
			got = append(got, g.index)
			if g.port != c.port || !g.rocev2 {
				t.Errorf("%s: chose %+v", name, g)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: indices %v, want %v", name, got, c.want)
		}
	}
}

func TestGIDAddr(t *testing.T) {
	for _, s := range []string{"10.0.0.1", "fd77::1"} {
		if got := gidAddr(addr(s).As16()); got != addr(s) {
			t.Errorf("the GID of %s is taken for %s", s, got)
		}
	}
}

func TestNoDeviceSaysWhatThereIs(t *testing.T) {
	tried := []candidate{
		{name: "rxe0", table: twoPorts},
		{name: "ib0", table: twoPorts[:1]},
		{name: "mlx5_0", err: callError(callOpen, 13)},
	}
	for want, err := range map[string]error{
		"no RDMA device has a GID for 10.0.0.9: load the RNIC's driver, or make a software one: rdma link add rxe0 type rxe netdev eth0": noDevice(Config{LocalIP: addr("10.0.0.9")}, nil, nil),
		"no RDMA device is on ens1: load the RNIC's driver, or make a software one: rdma link add rxe0 type rxe netdev ens1":             noDevice(Config{Interface: "ens1"}, nil, nil),
		"there is no usable RDMA device mlx4_0":                                                            noDevice(Config{Device: "mlx4_0"}, nil, nil),
		"there is no usable RDMA device:":                                                                  noDevice(Config{}, nil, nil),
		"rxe0 has fd77::1 (port 1), 10.0.0.1 (port 1), 10.0.0.2 (port 1)":                                  noDevice(Config{}, tried, nil),
		"ib0 has no RoCEv2 GID for an IP address: is its network interface up":                             noDevice(Config{}, tried, nil),
		"mlx5_0: ibv_open_device: EACCES (permission denied): may this user open /dev/infiniband/uverbs*?": noDevice(Config{}, tried, nil),
		"the kernel has siw0, but libibverbs lacks its driver: install ibverbs-providers":                  noDevice(Config{}, nil, []string{"siw0"}),
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v\nlacks %q", err, want)
		}
	}
}

func TestOpenNamesWhatWasWanted(t *testing.T) {
	cfg := Config{Device: "none0", LocalIP: addr("192.0.2.77"), Port: 1}
	_, err := Open(cfg)
	if err == nil || !strings.HasPrefix(err.Error(), "open verbs device (RDMA device none0, address 192.0.2.77, port 1): ") {
		t.Errorf("%v", err)
	}
	if errors.Is(err, ErrNotBuilt) == Built {
		t.Errorf("built with libibverbs: %v; error %v", Built, err)
	}
	if s := (Config{}).String(); s != "any device" {
		t.Errorf("an empty Config is %q", s)
	}
}
