// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/gleam-rdma/gleam/test/labtest"
)

// The enum in the committed object, as BTF has it, and the names in Go agree.
func TestReasonsMatchProgram(t *testing.T) {
	spec, err := loadSteer()
	if err != nil {
		t.Fatal(err)
	}
	var enum *btf.Enum
	if err := spec.Types.TypeByName("steer_reason", &enum); err != nil {
		t.Fatal(err)
	}
	if len(enum.Values) != int(NumReasons)+1 {
		t.Fatalf("the program has %d reasons, Go has %d", len(enum.Values)-1, NumReasons)
	}
	for i, v := range enum.Values {
		r, want := Reason(i), "NUM_REASONS"
		if r < NumReasons {
			want = strings.ToUpper(r.String())
		}
		if v.Value != uint64(i) || v.Name != want || (r.Text() == "") != (r == NumReasons) {
			t.Errorf("reason %d is %s = %d in the program, %s in Go: %q", i, v.Name, v.Value, want, r.Text())
		}
	}
	for name, want := range map[string]uint32{
		steerMapCounters: uint32(NumReasons), steerMapPrefixes4: 2 * MaxPrefixes, steerMapPrefixes6: 2 * MaxPrefixes,
		steerMapAllowed4: MaxAllowed, steerMapAllowed6: MaxAllowed, steerMapAllowedMacs: MaxAllowed, steerMapStations: 4 * MaxStations,
		steerMapXsks: maxQueues, steerMapPorts: portBuckets,
	} {
		if got := spec.Maps[name].MaxEntries; got != want {
			t.Errorf("map %s has %d entries, Go says %d", name, got, want)
		}
	}
	if NumReasons.String() != "invalid" {
		t.Errorf("NumReasons is called %q", NumReasons)
	}
}

func TestNewSteeringRefuses(t *testing.T) {
	good := netip.MustParsePrefix("10.77.0.0/16")
	tooMany := make([]netip.Prefix, MaxPrefixes+1)
	for i := range tooMany {
		tooMany[i] = netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(i >> 8), byte(i), 0}), 24)
	}
	for _, tc := range []struct {
		name     string
		prefixes []netip.Prefix
		port     uint16
		want     string
	}{
		{"port 0", []netip.Prefix{good}, 0, "envelope port 0"},
		{"RoCEv2's port", []netip.Prefix{good}, 4791, "4791 is the port of RoCEv2"},
		{"no prefix", nil, 4792, "no group prefix"},
		{"zero prefix", []netip.Prefix{good, {}}, 4792, "not valid"},
		{"everything", []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0")}, 4792, "0.0.0.0/0 would take every"},
		{"host bits", []netip.Prefix{netip.MustParsePrefix("10.77.1.0/16")}, 4792, "did you mean 10.77.0.0/16?"},
		{"mapped", []netip.Prefix{netip.MustParsePrefix("::ffff:10.77.0.0/112")}, 4792, "write it as IPv4"},
		{"too many", tooMany, 4792, "at most 1024"},
	} {
		s, err := NewSteering(tc.prefixes, tc.port, 1)
		if err == nil {
			s.Close()
			t.Errorf("%s: no error", tc.name)
		} else if !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %q does not say %q", tc.name, err, tc.want)
		}
	}
}

// A second program on an interface, in any mode, is refused with its name and
// the remedy, and does not disturb the first; closing the first makes room.
func TestAttachIsExclusive(t *testing.T) {
	labtest.Enter(t)
	s := newTestSteering(t)
	l := addVeth(t, "p1", "h1")
	index := l.Attrs().Index
	for _, first := range []Mode{Native, Generic} {
		p, err := s.Attach(index, "p1", first, 0)
		if err != nil {
			t.Fatal(err)
		}
		if p.Mode() != first || p.NativeError() != nil {
			t.Errorf("mode is %s (%v), want %s", p.Mode(), p.NativeError(), first)
		}
		for _, second := range []Mode{Auto, Native, Generic} {
			_, err := s.Attach(index, "p1", second, 0)
			if !errors.Is(err, ErrBusy) {
				t.Errorf("%s after %s: %v, want ErrBusy", second, first, err)
				continue
			}
			if m := err.Error(); !strings.Contains(m, "another XDP program is attached to p1") || !strings.Contains(m, "is another gleamd running there?") {
				t.Errorf("%s after %s: the error names neither interface nor remedy: %s", second, first, m)
			}
		}
		if got := xdpMode(t, "p1"); got == nil || !got.Attached {
			t.Error("the first program is no longer attached")
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		if got := xdpMode(t, "p1"); got != nil && got.Attached {
			t.Error("after Close a program is still attached")
		}
	}
}

func xdpMode(t *testing.T, name string) *netlink.LinkXdp {
	t.Helper()
	l, err := netlink.LinkByName(name)
	if err != nil {
		t.Fatal(err)
	}
	return l.Attrs().Xdp
}

// Where the driver cannot run the program natively, Auto falls back and stores the
// reason, and Native fails with a remedy. A veth refuses a large MTU.
func TestFallBackToGeneric(t *testing.T) {
	labtest.Enter(t)
	s := newTestSteering(t)
	l := addVeth(t, "p0", "h0")
	setMTU(t, 9000, "p0", "h0")
	_, err := s.Attach(l.Attrs().Index, "p0", Native, 0)
	if err == nil || !strings.Contains(err.Error(), "MTU") || !strings.Contains(err.Error(), "p0") {
		t.Errorf("native with MTU 9000: %v, want an error about the MTU of p0", err)
	}
	p, err := s.Attach(l.Attrs().Index, "p0", Auto, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if p.Mode() != Generic || !errors.Is(p.NativeError(), unix.ERANGE) {
		t.Errorf("mode %s, native error %v; want generic and ERANGE", p.Mode(), p.NativeError())
	}
}

// The port's MTU decides which program is attached, and both run natively on a
// veth, also at the limit and just beyond it.
func TestAttachByMTU(t *testing.T) {
	labtest.Enter(t)
	s := newTestSteering(t)
	l := addVeth(t, "p0", "h0")
	for _, tc := range []struct {
		mtu  int
		mode Mode
		want Mode
	}{
		{1500, Auto, Native}, {MaxSingleBufferMTU, Native, Native}, {MaxSingleBufferMTU + 1, Native, Native},
		{4200, Auto, Native}, {9000, Auto, Native}, {9000, Native, Native}, {9000, Generic, Generic}, {1500, Generic, Generic},
	} {
		setMTU(t, tc.mtu, "p0", "h0")
		p, err := s.Attach(l.Attrs().Index, "p0", tc.mode, tc.mtu)
		if err != nil {
			t.Errorf("MTU %d, %s: %v", tc.mtu, tc.mode, err)
			continue
		}
		if p.Mode() != tc.want || p.Frags() != (tc.mtu > MaxSingleBufferMTU) || p.NativeError() != nil {
			t.Errorf("MTU %d, %s: mode %s, frags %v, native error %v", tc.mtu, tc.mode, p.Mode(), p.Frags(), p.NativeError())
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		if x := xdpMode(t, "p0"); x != nil && x.Attached {
			t.Errorf("MTU %d: a program is left", tc.mtu)
		}
	}
}

// A port that is attached again has the program that its MTU needs now, natively.
func TestAttachToByMTU(t *testing.T) {
	labtest.Enter(t)
	s := newTestSteering(t)
	l := addVeth(t, "p0", "h0")
	p, err := s.Attach(l.Attrs().Index, "p0", Auto, 1500)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	s.LoadBoth()
	for _, tc := range []struct {
		mtu   int
		mode  Mode
		frags bool
	}{{1500, Auto, false}, {MaxSingleBufferMTU, Native, false}, {9000, Auto, true}, {1500, Auto, false}, {9000, Native, true}, {MaxSingleBufferMTU, Native, false}} {
		if err := p.Detach(); err != nil {
			t.Fatal(err)
		}
		setMTU(t, tc.mtu, "p0", "h0")
		if err := p.AttachTo(l.Attrs().Index, "p0", tc.mode, tc.mtu); err != nil {
			t.Errorf("MTU %d, %s: %v", tc.mtu, tc.mode, err)
			continue
		}
		if p.Mode() != Native || p.Frags() != tc.frags || p.NativeError() != nil {
			t.Errorf("MTU %d, %s: mode %s, frags %v, native error %v", tc.mtu, tc.mode, p.Mode(), p.Frags(), p.NativeError())
		}
	}
}

// A port that is attached again at an MTU that its driver promises, and does not take, gets the program for several
// buffers before generic mode.
func TestAttachToFragsBeforeGeneric(t *testing.T) {
	labtest.Enter(t)
	s := newTestSteering(t)
	l := addVeth(t, "p0", "h0")
	p, err := s.Attach(l.Attrs().Index, "p0", Auto, 1500)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if err := p.Detach(); err != nil {
		t.Fatal(err)
	}
	setMTU(t, 9000, "p0", "h0")
	if err := p.AttachTo(l.Attrs().Index, "p0", Auto, 3000); err != nil || p.Mode() != Native || !p.Frags() || p.NativeError() != nil {
		t.Errorf("%v: mode %s, frags %v, native error %v", err, p.Mode(), p.Frags(), p.NativeError())
	}
}

// A driver whose limit is lower than the MTU promises gets the program for
// several buffers before generic mode is resorted to. A veth's limit is the
// same as ours, so the MTU that is claimed here is not the real one.
func TestAttachFragsBeforeGeneric(t *testing.T) {
	labtest.Enter(t)
	s := newTestSteering(t)
	l := addVeth(t, "p0", "h0")
	setMTU(t, 9000, "p0", "h0")
	for _, mode := range []Mode{Auto, Native} {
		p, err := s.Attach(l.Attrs().Index, "p0", mode, 3000)
		if err != nil {
			t.Fatal(err)
		}
		if p.Mode() != Native || !p.Frags() || p.NativeError() != nil {
			t.Errorf("%s: mode %s, frags %v, native error %v", mode, p.Mode(), p.Frags(), p.NativeError())
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
}

// Programs for several buffers are as exclusive.
func TestAttachMTUIsExclusive(t *testing.T) {
	labtest.Enter(t)
	s := newTestSteering(t)
	l := addVeth(t, "p0", "h0")
	setMTU(t, 9000, "p0", "h0")
	p, err := s.Attach(l.Attrs().Index, "p0", Auto, 9000)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	for _, mtu := range []int{1500, 3000, 9000} {
		if _, err := s.Attach(l.Attrs().Index, "p0", Auto, mtu); !errors.Is(err, ErrBusy) {
			t.Errorf("MTU %d: %v, want ErrBusy", mtu, err)
		}
	}
}

func TestAttachErrors(t *testing.T) {
	labtest.Enter(t)
	s := newTestSteering(t)
	_, err := s.Attach(9999, "nope", Auto, 0)
	if !errors.Is(err, unix.ENODEV) && !errors.Is(err, unix.EINVAL) || !strings.Contains(err.Error(), "nope") {
		t.Errorf("missing interface: %v", err)
	}
	l := addVeth(t, "p0", "h0")
	if _, err := s.Attach(l.Attrs().Index, "p0", Mode(7), 0); err == nil || !strings.Contains(err.Error(), "invalid mode 7") {
		t.Errorf("mode 7: %v", err)
	}
	p, err := s.Attach(l.Attrs().Index, "p0", Auto, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range []int{-1, 1024} {
		if err := p.SetSocket(q, 0); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("RX queue %d of p0", q)) {
			t.Errorf("SetSocket(%d): %v", q, err)
		}
	}
	if err := p.SetSocket(0, 0); err == nil || !strings.Contains(err.Error(), "RX queue 0 of p0") {
		t.Errorf("SetSocket with a descriptor that is no AF_XDP socket: %v", err)
	}
	if err := netlink.LinkDel(l); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Counters(); err != nil {
		t.Errorf("counters of a vanished interface: %v", err)
	}
	if err := p.Close(); err != nil {
		t.Errorf("close on a vanished interface: %v", err)
	}
}

// Without privileges, errors name the capabilities; with a kernel that is too old, the
// kernel's version.
func TestErrorsNameTheRemedy(t *testing.T) {
	for err, want := range map[error]string{
		unix.EPERM:                              "CAP_BPF and CAP_NET_ADMIN",
		unix.EACCES:                             "CAP_BPF and CAP_NET_ADMIN",
		ebpf.ErrNotSupported:                    "Linux 5.10",
		unix.ENOSYS:                             "Linux 5.10",
		&ebpf.VerifierError{Cause: unix.EACCES}: "load it: ",
	} {
		got := explain("load it", err)
		if !strings.Contains(got.Error(), want) || !errors.Is(got, err) {
			t.Errorf("%v: %q does not say %q, or lost the cause", err, got, want)
		}
		var v *ebpf.VerifierError
		if errors.As(err, &v) && strings.Contains(got.Error(), "CAP_BPF") {
			t.Errorf("a refusal by the verifier is blamed on privileges: %s", got)
		}
	}
}

// A veth whose MTU has fallen, and its peer's has not, keeps the program for several buffers: no generic mode.
func TestAttachToWithALongPeer(t *testing.T) {
	labtest.Enter(t)
	s := newTestSteering(t)
	l := addVeth(t, "p0", "h0")
	setMTU(t, 9000, "p0", "h0")
	p, err := s.Attach(l.Attrs().Index, "p0", Auto, 9000)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	s.LoadBoth()
	for _, peer := range []int{9000, 1500} {
		if err := p.Detach(); err != nil {
			t.Fatal(err)
		}
		setMTU(t, 1500, "p0")
		setMTU(t, peer, "h0")
		if err := p.AttachTo(l.Attrs().Index, "p0", Auto, 1500); err != nil || p.Mode() != Native || p.Frags() != (peer == 9000) || p.NativeError() != nil {
			t.Errorf("the peer's MTU is %d: %v: mode %s, frags %v, native error %v", peer, err, p.Mode(), p.Frags(), p.NativeError())
		}
	}
}
