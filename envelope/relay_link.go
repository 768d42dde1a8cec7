// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package envelope

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"net/netip"
	"time"

	"github.com/gleam-rdma/gleam/mcast"
)

// SwitchID identifies a switch among all of a fabric. It is not 0.
type SwitchID uint64

// String returns 16 hexadecimal digits.
func (id SwitchID) String() string { return fmt.Sprintf("%016x", uint64(id)) }

// Adjacency is a neighbour switch whose hellos are proved.
type Adjacency struct {
	ID SwitchID
	// Session is a number that both ends have agreed upon, and that was never used between
	// them before: a relay of another session is void.
	Session uint64
	MTU     int    // the MTU of the link, in bytes of IP packets
	Port    string // the name of this switch's port
}

// Relay is a relay to send to a neighbour switch. Data belongs to the receiver of the
// Output.
type Relay struct {
	To       mcast.Neighbor
	Group    netip.Addr
	Data     []byte
	Promises bool // true: the relay leaves when what it says is durable
	Lasts    bool // true: the relay waits for that however long it takes
}

// relayLabel is covered by the MAC of a relay, before its own bytes.
const relayLabel = "gleam: registration between switches\x00"

func relayMAC(key, b []byte) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(relayLabel))
	h.Write(b)
	return h.Sum(nil)
}

// IsRelay reports whether a datagram is a relay, by its first bytes.
func IsRelay(b []byte) bool { return len(b) >= 4 && binary.BigEndian.Uint32(b) == relayMagic }

// neighbour is the state of an adjacency.
type neighbour struct {
	Adjacency
	sent uint64 // the sequence number of the last relay to it
	// newest is the highest sequence number received, seen has a bit for each of the 64
	// up to it: bit 0 is newest.
	newest, seen uint64
}

// fresh reports whether seq was not received before, and records it. A number that is
// more than 63 below the highest counts as received.
func (n *neighbour) fresh(seq uint64) bool {
	switch {
	case seq > n.newest:
		if d := seq - n.newest; d < 64 {
			n.seen = n.seen<<d | 1
		} else {
			n.seen = 1
		}
		n.newest = seq
		return true
	case n.newest-seq >= 64 || n.seen&(1<<(n.newest-seq)) != 0 || seq == 0:
		return false
	}
	n.seen |= 1 << (n.newest - seq)
	return true
}

// seal returns b, made by relay.append, as a datagram to n.
func (r *Registrar) seal(n *neighbour, b []byte) []byte {
	n.sent++
	be := binary.BigEndian
	d := append(make([]byte, 0, len(b)+2*MACLen), b...)
	length := len(b) + MACLen
	secret := r.secretOf(KeyID(be.Uint16(b[relayGroupKey:])))
	if secret == nil { // the neighbour takes no more than a Refused
		d[relayFlagsOffset] &^= relayProof
	}
	proved := d[relayFlagsOffset]&relayProof != 0
	if proved {
		length += MACLen
	}
	be.PutUint16(d[relayKeyOffset:], uint16(r.cfg.Switch.Auth.Send))
	be.PutUint16(d[relayLengthOffset:], uint16(length))
	be.PutUint64(d[relaySenderOffset:], uint64(r.cfg.Switch.ID))
	be.PutUint64(d[relaySessionOffset:], n.Session)
	be.PutUint64(d[relaySeqOffset:], n.sent)
	if proved {
		d = append(d, proofOf(secret, d)...)
	}
	return append(d, relayMAC(r.cfg.Switch.Auth.Keys[r.cfg.Switch.Auth.Send], d)...)
}

// openRelay checks a relay from n, and decodes it. Before the MAC has been verified, only
// the fixed layout is read. If the proof of the group's key is wrong, the relay is returned
// with the error.
func (r *Registrar) openRelay(n *neighbour, b []byte) (m relay, perr *ParseError) {
	be := binary.BigEndian
	switch {
	case len(b) < relayFixedLen+MACLen:
		return m, defect(Truncated, "%d bytes", len(b))
	case !IsRelay(b):
		return m, defect(BadMagic, "%#08x", be.Uint32(b))
	case b[4] != relayVersion:
		return m, defect(BadVersion, "version %d, we speak %d", b[4], relayVersion)
	case int(be.Uint16(b[relayLengthOffset:])) != len(b):
		return m, defect(Truncated, "says %d bytes, has %d", be.Uint16(b[relayLengthOffset:]), len(b))
	}
	id := KeyID(be.Uint16(b[relayKeyOffset:]))
	key, ok := r.cfg.Switch.Auth.Keys[id]
	end := len(b) - MACLen
	switch {
	case !ok:
		return m, defect(UnknownKey, "no switch key of id %d is configured here", id)
	case !hmac.Equal(relayMAC(key, b[:end]), b[end:]):
		return m, defect(BadMAC, "the switch key of id %d is another one here", id)
	case SwitchID(be.Uint64(b[relaySenderOffset:])) != n.ID:
		return m, defect(WrongSource, "from switch %016x, where %v is", be.Uint64(b[relaySenderOffset:]), n.ID)
	case be.Uint64(b[relaySessionOffset:]) != n.Session:
		return m, defect(WrongInstance, "of another session with switch %v", n.ID)
	case !n.fresh(be.Uint64(b[relaySeqOffset:])):
		return m, defect(DuplicateMsg, "sequence number %d again", be.Uint64(b[relaySeqOffset:]))
	}
	b, proof := cutProof(b[:end])
	if m, perr = parseRelay(b); perr != nil {
		return relay{}, perr
	}
	return m, r.checkProof(&m, b, proof)
}

// SetSwitch has the registrar register groups over several switches, or replaces the
// keys of switches.
func (r *Registrar) SetSwitch(c SwitchConfig) error {
	if err := c.setDefaults(); err != nil {
		return err
	}
	r.cfg.Switch = c
	return nil
}

// SetStorageFails says whether the state file cannot be written, so that what promises something waits (Relay.Promises).
// Meanwhile no other switch's group is prepared here, and no neighbour is lost for what this switch could not tell it.
func (r *Registrar) SetStorageFails(fails bool) { r.storageFails = fails }

// sendRelay sends m once, if the neighbour is there.
func (r *Registrar) sendRelay(to mcast.Neighbor, m *relay, out *Output) {
	r.sendSealed(to, m.group, encodeRelay(m), out)
}

func (r *Registrar) sendSealed(to mcast.Neighbor, ip netip.Addr, b []byte, out *Output) {
	if n := r.neighbours[to]; n != nil {
		kind := relayKind(b[relayKindOffset])
		out.Relays = append(out.Relays, Relay{to, ip, r.seal(n, b), kind.promises(), kind.lasts()})
	}
}

// Reseal gives a relay that has waited the number that is the next one now: its neighbour takes the
// number that it has for an old one if 64 others have left meanwhile. It returns false if the relay is
// void: the neighbour is not there any more, or was not all the time and the relay does not last.
func (r *Registrar) Reseal(x *Relay) bool {
	n := r.neighbours[x.To]
	if n == nil || !x.Lasts && binary.BigEndian.Uint64(x.Data[relaySessionOffset:]) != n.Session {
		return false
	}
	b, _ := cutProof(x.Data[:len(x.Data)-MACLen])
	x.Data = r.seal(n, b)
	return true
}

// encodeRelay encodes m. Its contents were checked: failure is a bug of this package.
func encodeRelay(m *relay) []byte {
	if m.total == 0 {
		m.total = 1
	}
	b, err := m.append(nil)
	if err != nil {
		panic("envelope: a message to a switch of our own making: " + err.Error())
	}
	return b
}

// requestID identifies a request to a neighbour that waits for its answer.
type requestID struct {
	to     mcast.Neighbor
	kind   relayKind
	id     attemptID
	serial uint32 // the serial of Gone
}

// relayRequest is a relay that is repeated until it is answered, or until its time is over.
type relayRequest struct {
	requestID
	ip    netip.Addr
	group *group // nil for an End
	data  [][]byte
	retry backoff
	until time.Duration
	timer timer[*relayRequest]
	order uint64 // the order in which requests were made
}

// ask sends the relays of a request about the group at ip, and repeats them until the
// given time. It replaces an earlier request of the same kind.
func (r *Registrar) ask(now, until time.Duration, id requestID, ip netip.Addr, g *group, data [][]byte, out *Output) {
	r.answered(id)
	r.requestCount++
	q := &relayRequest{requestID: id, ip: ip, group: g, data: data, until: until, order: r.requestCount}
	q.timer.owner = q
	q.retry.start(now, r.cfg.Switch.Retry, &r.random)
	r.requests[id] = q
	r.requestTimers.set(&q.timer, min(q.retry.next, q.until))
	for _, b := range data {
		r.sendSealed(q.to, q.ip, b, out)
	}
}

// answered ends a request, and reports whether it was under way.
func (r *Registrar) answered(id requestID) bool {
	q := r.requests[id]
	if q == nil {
		return false
	}
	delete(r.requests, id)
	r.requestTimers.stop(&q.timer)
	return true
}

// advanceRequests repeats the requests that are due.
func (r *Registrar) advanceRequests(now time.Duration, out *Output) {
	due := r.requestTimers.fired(now)
	sortRequests(due)
	for _, q := range due {
		if r.requests[q.requestID] != q {
			continue // ended by the one before
		}
		if now >= q.until {
			delete(r.requests, q.requestID)
			if q.kind == relayRenew {
				r.childSilent(now, q, out)
			}
			continue
		}
		q.retry.retry(now, 16*r.cfg.Switch.Retry, &r.random)
		r.requestTimers.set(&q.timer, min(q.retry.next, q.until))
		for _, b := range q.data {
			r.sendSealed(q.to, q.ip, b, out)
		}
	}
}
