// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"math"
	"net"
	"testing"

	"github.com/gleam-rdma/gleam/dataplane"
	"github.com/gleam-rdma/gleam/internal/control/locate"
)

// changeMAC gives host i another MAC address, which the kernel does not know.
func (l *fakeLocator) changeMAC(i, ifindex int, mac byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.really[fakeHost(i)] = locate.Location{Hop: fakeHost(i), Links: []int{ifindex}, Ifindex: ifindex, MAC: net.HardwareAddr{2, 0, 0, 0, 0, mac}}
}

func (l *fakeLocator) timesInvalidated(i int) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.invalidated[fakeHost(i)]
}

// A host whose MAC address is another one than the kernel has is found by the registration that asks
// for it, and has to confirm its new place. The kernel gives up no entry of a host that answers, nor
// that of a member.
func TestMemberWithANewMACAddress(t *testing.T) {
	f := suspectSwitch(t, 3)
	f.locator.changeMAC(2, 3, 0x99)
	f.enroll(0, 3, 0x100)
	for i := range 2 {
		a := f.proving(i, 0)
		f.proves(0, i, a, a.origin)
	}
	var a locationRequest
	f.eventually("the host is asked at its new MAC address", func() bool { a = f.proving(2, 0); return a.origin.MAC[5] == 0x99 })
	if f.installed(0) {
		t.Fatal("the kernel's word was enough")
	}
	f.proves(0, 2, a, a.origin)
	f.eventually("the group is there", func() bool { return f.installed(0) })
	f.control.do(func() {
		h := f.control.dir.hosts.byIP[fakeHost(2)]
		if f.control.reresolve(h); h.reresolve {
			t.Error("the entry of a member is given up")
		}
	})
	if a, b := f.locator.timesInvalidated(2), f.locator.timesInvalidated(1); a != 1 || b != 0 {
		t.Errorf("%d times for the host with a new address, %d for one that answers", a, b)
	}
}

// An authentic request from elsewhere has its sender resolved anew, once in a second.
func TestRequestFromANewMACAddress(t *testing.T) {
	f := suspectSwitch(t, 3)
	f.control.do(func() {
		c := f.control
		h := c.dir.hosts.guest(fakeHost(1), math.MaxInt, c.now())
		at, err := f.locator.Locate(h.ip)
		c.dir.hostAnswered(h, at, err, c.now())
		here := c.dir.originOf(&h.location)
		if c.askedFromElsewhere(h, here); h.reresolve {
			t.Error("a request from where the kernel has the host is one from elsewhere")
		}
		other := dataplane.Origin{Port: here.Port, MAC: here.MAC}
		other.MAC[5]++
		if c.askedFromElsewhere(h, other); !h.reresolve {
			t.Error("a request from another MAC address has no effect")
		}
		h.reresolve = false
		if c.askedFromElsewhere(h, other); h.reresolve {
			t.Error("a second request at once has an effect")
		}
	})
	f.eventually("the kernel is asked anew", func() bool { return f.locator.timesInvalidated(1) <= 1 })
}
