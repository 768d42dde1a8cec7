// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gleam-rdma/gleam/rocev2"
)

// The table has what was put and not removed, and no worker has many more groups
// than another one if none are removed. A group that comes back is the same worker's.
func TestOwnersAgainstAModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		workers := rapid.IntRange(1, 5).Draw(t, "workers")
		o := newGroupOwners(workers)
		model, former := make(map[netip.Addr]int), make(map[netip.Addr]int)
		addr := func() netip.Addr {
			n := rapid.IntRange(0, 300).Draw(t, "addr")
			if rapid.Bool().Draw(t, "v6") {
				return netip.AddrFrom16([16]byte{0xfd, 14: byte(n >> 8), 15: byte(n)})
			}
			return netip.AddrFrom4([4]byte{10, 77, byte(n >> 8), byte(n)})
		}
		for range rapid.IntRange(1, 300).Draw(t, "ops") {
			ip := addr()
			if _, ok := model[ip]; ok {
				o.remove(ip)
				former[ip] = model[ip]
				delete(model, ip)
				continue
			}
			w := o.choose(ip)
			if last, ok := former[ip]; ok && w != last {
				t.Fatalf("%v was worker %d's just now, and is to be %d's", ip, last, w)
			}
			for _, n := range o.load {
				if hasKey(former, ip) {
					break
				}
				if n < o.load[w] {
					t.Fatalf("worker %d of %v was chosen", w, o.load)
				}
			}
			o.put(ip, w)
			model[ip] = w
		}
		load := make([]int, workers)
		for _, w := range model {
			load[w]++
		}
		if !slices.Equal(load, o.load) {
			t.Fatalf("the workers have %v groups, want %v", o.load, load)
		}
		if n := addr().Next().Next(); !hasKey(model, n) {
			o.remove(n)
		}
		for ip, want := range model {
			if got, ok := o.of(rocev2.KeyOf(ip)); !ok || got != want {
				t.Fatalf("%v belongs to %d (%v), want %d", ip, got, ok, want)
			}
		}
		for range 50 {
			ip := addr()
			if got, ok := o.of(rocev2.KeyOf(ip)); ok != hasKey(model, ip) {
				t.Fatalf("%v belongs to %d (%v)", ip, got, ok)
			}
		}
	})
}

// A group that comes back after recentFor gets the worker with the fewest groups, and ties
// go round.
func TestOwnersChoose(t *testing.T) {
	o := newGroupOwners(3)
	ip := func(n byte) netip.Addr { return netip.AddrFrom4([4]byte{10, 77, 0, n}) }
	for n, want := range []int{0, 1, 2, 0} {
		if w := o.choose(ip(byte(n))); w != want {
			t.Errorf("group %d gets worker %d, want %d", n, w, want)
		}
		o.put(ip(byte(n)), want)
	}
	o.remove(ip(0))
	for _, c := range []struct {
		age  time.Duration
		want int
	}{{recentFor / 2, 0}, {2 * recentFor, 1}} {
		o.nextWorker = 1
		o.recent[0].removedAt = time.Now().Add(-c.age)
		if w := o.choose(ip(0)); w != c.want {
			t.Errorf("%v after its removal the group gets worker %d, want %d", c.age, w, c.want)
		}
	}
}

// The table is at most half full, and a third when it has grown.
func TestOwnersGrow(t *testing.T) {
	o := newGroupOwners(1)
	for n := range 200 {
		was := o.table.Load()
		o.put(netip.AddrFrom4([4]byte{10, 77, 0, byte(n)}), 0)
		x := o.table.Load()
		size := minOwnerSlots
		for size < 3*(n+1) {
			size *= 2
		}
		if 2*x.used > len(x.slots) || x.used != n+1 || x != was && len(x.slots) != size || x == was && 2*(n+1) > len(was.slots) {
			t.Fatalf("%d groups take %d of %d slots, with %d before", n+1, x.used, len(x.slots), len(was.slots))
		}
	}
}

// A table that grows leaves out the groups that were removed.
func TestOwnersGrowWithoutRemovedGroups(t *testing.T) {
	o := newGroupOwners(1)
	ip := func(n byte) netip.Addr { return netip.AddrFrom4([4]byte{10, 77, 0, n}) }
	for n := range byte(minOwnerSlots / 2) {
		o.put(ip(n), 0)
	}
	o.remove(ip(0))
	o.put(ip(9), 0)
	if x := o.table.Load(); x.used != minOwnerSlots/2 || len(x.slots) != 2*minOwnerSlots {
		t.Errorf("%d groups take %d of %d slots", o.groups, x.used, len(x.slots))
	}
}

// What is too short, or no IP, has no address.
func TestPeekIP(t *testing.T) {
	v4, v6 := netip.MustParseAddr("10.77.1.2"), netip.MustParseAddr("fd00::77")
	header4 := append([]byte{0x45, 15: 0}, v4.AsSlice()...)
	options := append(append([]byte{0x46, 15: 0}, v4.AsSlice()...), 1, 1, 1, 1)
	header6 := append(make([]byte, 24), v6.AsSlice()...)
	frame := func(kinds []uint16, behind []byte) []byte {
		b := make([]byte, 12)
		for i, k := range kinds {
			if i > 0 {
				b = append(b, 0, 5)
			}
			b = append(b, byte(k>>8), byte(k))
		}
		return append(b, behind...)
	}
	for name, c := range map[string]struct {
		kinds  []uint16
		header []byte
		want   netip.Addr
	}{
		"IPv4":              {[]uint16{rocev2.EtherTypeIPv4}, header4, v4},
		"IPv4 with options": {[]uint16{rocev2.EtherTypeIPv4}, options, v4},
		"IPv6":              {[]uint16{rocev2.EtherTypeIPv6}, header6, v6},
		"VLAN":              {[]uint16{rocev2.EtherTypeVLAN, rocev2.EtherTypeIPv4}, header4, v4},
		"QinQ":              {[]uint16{rocev2.EtherTypeQinQ, rocev2.EtherTypeVLAN, rocev2.EtherTypeIPv6}, header6, v6},
		"two VLANs":         {[]uint16{rocev2.EtherTypeVLAN, rocev2.EtherTypeVLAN, rocev2.EtherTypeIPv4}, header4, v4},
		"ARP":               {[]uint16{rocev2.EtherTypeARP}, header6, netip.Addr{}},
	} {
		whole := frame(c.kinds, c.header)
		k, l4, ok := peekIP(append(whole, 7, 8))
		if ok != c.want.IsValid() || ok && (k != rocev2.KeyOf(c.want) || len(l4) != 2 || l4[0] != 7) {
			t.Errorf("%s: %x, behind it %x, %v", name, k, l4, ok)
		}
		least := len(whole)
		if name == "IPv4 with options" {
			least -= 4 // the address is there, and nothing behind the header
		}
		for n := range whole {
			if k, l4, ok := peekIP(whole[:n]); ok != (n >= least) || !ok && (k != rocev2.AddrKey{} || l4 != nil) || ok && len(l4) > 0 {
				t.Errorf("%s, %d bytes of %d: %x, behind it %x, %v", name, n, len(whole), k, l4, ok)
			}
		}
		if _, l4, ok := peekIP(whole); ok != c.want.IsValid() || len(l4) > 0 {
			t.Errorf("%s: the header alone: %x, %v", name, l4, ok)
		}
	}
}

func hasKey(m map[netip.Addr]int, ip netip.Addr) bool { _, ok := m[ip]; return ok }

// Workers read while the control loop writes; a group that stays is always found.
func TestOwnersAreReadWithoutALock(t *testing.T) {
	o := newGroupOwners(4)
	stays := netip.MustParseAddr("10.77.254.250")
	o.put(stays, 3)
	var ended atomic.Bool
	var readers sync.WaitGroup
	for range 3 {
		readers.Go(func() {
			for !ended.Load() {
				if w, ok := o.of(rocev2.KeyOf(stays)); !ok || w != 3 {
					t.Errorf("belongs to %d, %v", w, ok)
					return
				}
			}
		})
	}
	for i := range 20_000 {
		ip := netip.AddrFrom4([4]byte{10, 77, 254, byte(i % 200)})
		if _, ok := o.of(rocev2.KeyOf(ip)); ok {
			o.remove(ip)
		} else {
			o.put(ip, o.choose(ip))
		}
	}
	ended.Store(true)
	readers.Wait()
	if n := testing.AllocsPerRun(100, func() { o.of(rocev2.KeyOf(stays)) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// manyOwners has groups, all of one worker, and an address more.
func manyOwners(groups int) (o *groupOwners, more netip.Addr) {
	o = newGroupOwners(1)
	for i := range groups {
		o.put(netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}), 0)
	}
	return o, netip.MustParseAddr("10.255.255.255")
}

// A registration and its end cost the same with any number of groups: the table is not
// copied.
func TestOwnersCostPerGroup(t *testing.T) {
	o, more := manyOwners(10_000)
	next := more
	if n := testing.AllocsPerRun(1000, func() {
		next = next.Next()
		o.put(next, 0)
		o.remove(next)
	}); n != 0 {
		t.Fatalf("%v allocations for a group that comes and goes, beside 10,000", n)
	}
	if n := len(o.table.Load().slots); n > 1<<16 {
		t.Errorf("%d slots for 10,000 groups", n)
	}
	// Groups that come and go for ever do not fill the table.
	for range 100_000 {
		next = next.Next()
		o.put(next, 0)
		o.remove(next)
	}
	if n := len(o.table.Load().slots); n > 1<<16 || o.groups != 10_000 {
		t.Errorf("%d slots for %d groups", n, o.groups)
	}
}

func BenchmarkOwners(b *testing.B) {
	for _, groups := range []int{10, 1000, 100_000} {
		b.Run(fmt.Sprint(groups), func(b *testing.B) {
			o, next := manyOwners(groups)
			for range b.N {
				next = next.Next()
				o.put(next, 0)
				o.remove(next)
			}
		})
	}
}

func BenchmarkOwnerOf(b *testing.B) {
	o, _ := manyOwners(1000)
	k := rocev2.KeyOf(netip.AddrFrom4([4]byte{10, 0, 1, 44}))
	for range b.N {
		if _, ok := o.of(k); !ok {
			b.Fatal("no owner")
		}
	}
}

// What is read of a frame before it is decoded is what decoding says, whatever the
// bytes.
func TestPeekedIsWhatIsDecoded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v6, tags := rapid.Bool().Draw(t, "v6"), rapid.IntRange(0, 1).Draw(t, "tags")
		addr := func(name string) netip.Addr {
			if v6 {
				return netip.AddrFrom16([16]byte(append([]byte{0xfd}, rapid.SliceOfN(rapid.Byte(), 15, 15).Draw(t, name)...)))
			}
			return netip.AddrFrom4([4]byte(append([]byte{10}, rapid.SliceOfN(rapid.Byte(), 3, 3).Draw(t, name)...)))
		}
		p := rocev2.Path{Src: addr("src"), Dst: addr("dst"), Tagged: tags > 0, TCI: 5}
		b := make([]byte, 512)
		pkt := rocev2.Packet{
			Op:       rapid.SampledFrom([]rocev2.Opcode{rocev2.SendOnly, rocev2.Acknowledge, rocev2.CNP}).Draw(t, "op"),
			Syndrome: rapid.SampledFrom([]rocev2.Syndrome{rocev2.SyndromeACK, rocev2.SyndromeNAKSequence, 0x25}).Draw(t, "syndrome"),
		}
		var payload []byte
		if pkt.Op != rocev2.Acknowledge {
			payload = rocev2.CNPPayload
		}
		n := rocev2.BuildPacket(b, &p, &pkt, payload)
		k, l4, ok := peekIP(b[:n])
		if !ok || k != rocev2.KeyOf(p.Dst) {
			t.Fatalf("%x (%v), want %x", k, ok, rocev2.KeyOf(p.Dst))
		}
		if want := isNegative(pkt.Op, pkt.Syndrome); peekNegative(l4) != want {
			t.Fatalf("%v %v: negative %v, want %v", pkt.Op, pkt.Syndrome, !want, want)
		}
		l4[3]++ // another UDP port
		if peekNegative(l4) {
			t.Fatal("what is not RoCEv2 is negative")
		}
		l4[3]--
		short := b[:rapid.IntRange(0, n).Draw(t, "short")]
		var f rocev2.Frame
		if _, _, ok := peekIP(short); !ok && rocev2.Decode(short, &f) == rocev2.OK && f.Kind == rocev2.KindRoCE {
			t.Fatal("decoded, but without an address")
		}
		_, l4, _ = peekIP(rapid.SliceOfN(rapid.Byte(), 0, 80).Draw(t, "junk"))
		peekNegative(l4)
	})
}
