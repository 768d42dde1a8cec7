// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package join

import (
	"fmt"
	"net/netip"
	"os"
	"reflect"
	"sync"

	"github.com/gleam-rdma/gleam/endpoint"
)

// hosts are the hosts that this process answers envelopes with. One address can
// have one only, whatever number of groups it is in.
var hosts = struct {
	sync.Mutex
	m map[hostKey]*sharedHost
}{m: make(map[hostKey]*sharedHost)}

type hostKey struct {
	ip netip.Addr
	ns string // network namespace, as the link in /proc reads
}

type sharedHost struct {
	*endpoint.Host
	cfg   endpoint.HostConfig
	users int
}

// shareHost returns the host of ip in the calling thread's network namespace,
// and makes one if there is none. release is to be called once.
func shareHost(ip netip.Addr, cfg endpoint.HostConfig) (*endpoint.Host, func(), error) {
	ns, _ := os.Readlink(threadNS) // without /proc there is but one
	key := hostKey{ip, ns}
	hosts.Lock()
	defer hosts.Unlock()
	h := hosts.m[key]
	if h == nil {
		made, err := endpoint.NewHost(ip, cfg)
		if err != nil {
			return nil, nil, err
		}
		h = &sharedHost{Host: made, cfg: cfg}
		hosts.m[key] = h
	} else if !reflect.DeepEqual(h.cfg, cfg) {
		return nil, nil, fmt.Errorf("this process is in a group with address %s already, with another key, port or timeout for registration: use the same for all", ip)
	}
	h.users++
	return h.Host, func() {
		hosts.Lock()
		defer hosts.Unlock()
		if h.users--; h.users == 0 {
			delete(hosts.m, key)
			_ = h.Close()
		}
	}, nil
}
