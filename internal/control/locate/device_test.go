// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package locate

import (
	"testing"

	"golang.org/x/sys/unix"
)

// The kernel's counters of an interface are read as they are, and count what it receives and
// drops; an interface that is gone is an error.
func TestDeviceCounters(t *testing.T) {
	_, port, _ := bridged(t)
	d, err := OpenDevices()
	must(t, err)
	t.Cleanup(d.Close)
	before, err := d.Counters(port.Attrs().Index)
	must(t, err)
	const frames, size = 5, 100
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW, 0)
	must(t, err)
	defer unix.Close(fd)
	for range frames { // no protocol has this EtherType: the kernel drops what it receives
		frame := make([]byte, size)
		frame[12], frame[13] = 0x88, 0xB5
		must(t, unix.Sendto(fd, frame, 0, &unix.SockaddrLinklayer{Ifindex: port.Attrs().Index}))
	}
	after, err := d.Counters(port.Attrs().Index)
	must(t, err)
	if n, b := after.TXPackets-before.TXPackets, after.TXBytes-before.TXBytes; n < frames || b < frames*size {
		t.Errorf("%d packets of %d bytes were counted, %d of %d were sent", n, b, frames, frames*size)
	}
	if _, err := d.Counters(1 << 30); err == nil {
		t.Error("an interface that does not exist has counters")
	}
}
