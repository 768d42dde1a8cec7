// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/ringbuf"
)

// Sighting is a frame whose sender's MAC address, or address in ARP or neighbour
// discovery, is a pinned host's, and which came from elsewhere. It is no proof of a
// move.
type Sighting struct {
	Ifindex int
	VLAN    uint16 // the VLAN of the outermost tag; 0: none
	MAC     [6]byte
	IP      netip.Addr // the zero Addr if it is the MAC address alone that is pinned
}

// Watchlist has the MAC and IP addresses that the programs of all ports look for. Its
// methods may be called from any goroutine, Close after all others.
type Watchlist struct {
	macs, addrs *ebpf.Map
	reader      *ringbuf.Reader
}

func newWatchlist(maps *steerMaps) (_ *Watchlist, err error) {
	w := &Watchlist{macs: maps.PinMacs, addrs: maps.PinAddrs}
	if w.reader, err = ringbuf.NewReader(maps.Sightings); err != nil {
		return nil, fmt.Errorf("read sightings: %w", err)
	}
	return w, nil
}

// SetMAC sets the interface of a MAC address; 0: it is at several.
func (w *Watchlist) SetMAC(mac [6]byte, ifindex int) error {
	return w.macs.Put(macKey(mac), uint32(ifindex))
}

// ClearMAC ends that.
func (w *Watchlist) ClearMAC(mac [6]byte) error { return clearedAddr(w.macs.Delete(macKey(mac))) }

// SetAddr sets the interface and the MAC address of an address.
func (w *Watchlist) SetAddr(ip netip.Addr, ifindex int, mac [6]byte) error {
	return w.addrs.Put(ip.As16(), struct {
		Ifindex uint32
		MAC     [8]byte
	}{uint32(ifindex), macKey(mac)})
}

// ClearAddr ends that.
func (w *Watchlist) ClearAddr(ip netip.Addr) error { return clearedAddr(w.addrs.Delete(ip.As16())) }

func clearedAddr(err error) error {
	if errors.Is(err, ebpf.ErrKeyNotExist) {
		return nil
	}
	return err
}

func macKey(mac [6]byte) (k [8]byte) {
	copy(k[:], mac[:])
	return k
}

// sightingLen is the size of struct sighting.
const sightingLen = 28

// Next waits for a sighting. After Stop it returns ringbuf.ErrClosed.
func (w *Watchlist) Next() (s Sighting, err error) {
	for {
		r, err := w.reader.Read()
		if err != nil {
			return s, err
		}
		if b := r.RawSample; len(b) >= sightingLen {
			s.Ifindex, s.VLAN = int(binary.NativeEndian.Uint32(b)), binary.NativeEndian.Uint16(b[4:])
			copy(s.MAC[:], b[6:])
			if ip := netip.AddrFrom16([16]byte(b[12:28])); !ip.IsUnspecified() {
				s.IP = ip.Unmap()
			}
			return s, nil
		}
	}
}

// Stop ends Next.
func (w *Watchlist) Stop() error { return w.reader.Close() }

// Close is Stop: the maps are the steering's.
func (w *Watchlist) Close() error { return w.Stop() }
