// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package xsk

// loop is a socket with rings in plain memory, and the kernel's side of them:
// what is given to the fill ring is received, and what is sent is completed.
type loop struct {
	*Socket
	kfill, kcomp *ring[uint64]
	krx, ktx     *ring[Desc]
}

func newLoop(u *Umem, size int) *loop {
	l := &loop{Socket: &Socket{umem: u, id: u.nextID}}
	u.nextID++
	fill, kfill := ends[uint64](size, 0)
	comp, kcomp := ends[uint64](size, 0)
	rx, krx := ends[Desc](size, 0)
	tx, ktx := ends[Desc](size, 0)
	l.fill, l.completion, l.rx, l.tx = *fill, *comp, *rx, *tx
	l.kfill, l.kcomp, l.krx, l.ktx = kfill, kcomp, krx, ktx
	return l
}

// arrive makes the kernel receive packets of the given number of buffers.
func (l *loop) arrive(packets, buffers int) {
	n := packets * buffers
	l.kfill.available(n)
	l.krx.room(n)
	for i := range n {
		d := Desc{Addr: l.kfill.get(i) + headroom, Len: 1000}
		if i%buffers < buffers-1 {
			d.Options = PktContd
		}
		l.krx.put(i, d)
	}
	l.kfill.release(n)
	l.krx.publish(n)
}

// transmit makes the kernel send and complete everything in the TX ring.
func (l *loop) transmit() {
	n := l.ktx.available(len(l.ktx.entries))
	l.kcomp.room(n)
	for i := range n {
		l.kcomp.put(i, l.ktx.get(i).Addr)
	}
	l.ktx.release(n)
	l.kcomp.publish(n)
}
