// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

// #include "gleam.h"
import "C"

import (
	"math"
	"net/netip"
	"time"
	"unsafe"

	"github.com/gleam-rdma/gleam/endpoint"
	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/libgleam/join"
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// maxKeyLen is the longest secret that gleamd takes.
const maxKeyLen = 256

// config translates and checks a gleam_attr.
func config(a *C.struct_gleam_attr) (join.Config, error) {
	switch {
	case a == nil:
		return join.Config{}, argument("attr is NULL")
	case uintptr(a.size) != unsafe.Sizeof(*a):
		return join.Config{}, argument("attr.size is %d, want %d: set it to sizeof(struct gleam_attr), and compile with the gleam.h of this library",
			a.size, unsafe.Sizeof(*a))
	case a.role != C.GLEAM_MASTER && a.role != C.GLEAM_MEMBER:
		return join.Config{}, argument("attr.role is %d: want GLEAM_MASTER or GLEAM_MEMBER", a.role)
	case a.exchange == nil:
		return join.Config{}, argument("attr.exchange is NULL: want the TCP host:port at which the master listens")
	case a.flags&^(C.GLEAM_INSECURE|C.GLEAM_NO_REPAIR|C.GLEAM_OTHER_NETWORK|C.GLEAM_RECEIVE_ONLY) != 0:
		return join.Config{}, argument("attr.flags 0x%x: only GLEAM_INSECURE, GLEAM_NO_REPAIR, GLEAM_OTHER_NETWORK and GLEAM_RECEIVE_ONLY are known", a.flags)
	}
	auth, err := auth(a)
	if err != nil {
		return join.Config{}, err
	}
	cfg := join.Config{
		Exchange: C.GoString(a.exchange), ReceiveOnly: a.flags&C.GLEAM_RECEIVE_ONLY != 0,
		Host: endpoint.HostConfig{Auth: auth, Port: uint16(a.port), Deadline: milliseconds(a.register_timeout_ms)},
	}
	if a.role == C.GLEAM_MASTER {
		cfg.Master, err = descriptor(a)
	}
	return cfg, err
}

func milliseconds(n C.uint32_t) time.Duration { return time.Duration(n) * time.Millisecond }

func auth(a *C.struct_gleam_attr) (envelope.Auth, error) {
	insecure := a.flags&C.GLEAM_INSECURE != 0
	switch {
	case insecure && (a.key != nil || a.key_len != 0):
		return envelope.Auth{}, argument("attr has a key and GLEAM_INSECURE: want one of them")
	case insecure:
		return envelope.Auth{Insecure: true}, nil
	case a.key == nil:
		return envelope.Auth{}, argument("attr.key is NULL: want the secret that gleamd has under envelope.keys, or GLEAM_INSECURE")
	case a.key_len < envelope.MinKeyLen || a.key_len > maxKeyLen:
		return envelope.Auth{}, argument("attr.key_len is %d: want %d to %d bytes (decode the hexadecimal digits that gleamd's configuration has)",
			a.key_len, envelope.MinKeyLen, maxKeyLen)
	case a.key_id == 0:
		return envelope.Auth{}, argument("attr.key_id is 0: want the id that gleamd has for the key")
	}
	id := envelope.KeyID(a.key_id)
	return envelope.Auth{Keys: envelope.Keys{id: C.GoBytes(a.key, C.int(a.key_len))}, Send: id}, nil
}

// descriptor translates what only a master says.
func descriptor(a *C.struct_gleam_attr) (*endpoint.MasterConfig, error) {
	if a.group_ip == nil {
		return nil, argument("attr.group_ip is NULL: a master names a free address in the switch's group_prefixes")
	}
	ip, err := netip.ParseAddr(C.GoString(a.group_ip))
	if err != nil {
		return nil, argument("attr.group_ip: %w", err)
	}
	cfg := &endpoint.MasterConfig{
		Members: int(a.members), GroupIP: ip, VirtualQPN: rocev2.QPN(a.virtual_qpn), PathMTU: int(a.path_mtu),
		Quorum: int(a.quorum), DeadAfter: milliseconds(a.dead_after_ms), LagPSNs: int(a.lag_psns), LagTime: milliseconds(a.lag_ms),
		SenderTimeout: uint8(min(a.sender_timeout, 255)), SenderRetries: uint8(min(a.sender_retries, 255)),
		Lease: milliseconds(a.lease_ms), ReadyTimeout: milliseconds(a.ready_timeout_ms),
		WindowBase: uint64(a.window_base), WindowLen: uint64(a.window_len), NoRepair: a.flags&C.GLEAM_NO_REPAIR != 0,
		OtherNetwork: a.flags&C.GLEAM_OTHER_NETWORK != 0,
	}
	switch a.policy {
	case C.GLEAM_STRICT:
	case C.GLEAM_EVICT:
		cfg.Policy = mcast.Evict
	case C.GLEAM_QUORUM:
		cfg.Policy = mcast.Quorum
	default:
		return nil, argument("attr.policy is %d: want GLEAM_STRICT, GLEAM_EVICT or GLEAM_QUORUM", a.policy)
	}
	if a.dead_after_ms == C.GLEAM_FOREVER {
		cfg.DeadAfter = -1
	}
	if a.members < 1 {
		return nil, argument("attr.members is 0: want at least 1")
	}
	params := cfg.Params()
	if e := params.Check(cfg.Members); e != nil {
		return nil, argument("attr.%s: %s", attrFields[e.Param], e.Problem)
	}
	return cfg, nil
}

// attrFields are the fields of gleam_attr for the parameters of a group.
var attrFields = map[mcast.Param]string{
	mcast.ParamQPN: "virtual_qpn", mcast.ParamPathMTU: "path_mtu", mcast.ParamPolicy: "policy", mcast.ParamQuorum: "quorum", mcast.ParamDeadAfter: "dead_after_ms",
	mcast.ParamLagPSNs: "lag_psns", mcast.ParamLagTime: "lag_ms", mcast.ParamSenderTimeout: "sender_timeout", mcast.ParamSenderRetries: "sender_retries",
}

// queuePair translates and checks a gleam_qp.
func queuePair(q *C.struct_gleam_qp) (endpoint.QPInfo, error) {
	if q == nil {
		return endpoint.QPInfo{}, argument("qp is NULL")
	}
	var gid [16]byte
	for i := range gid {
		gid[i] = byte(q.gid[i])
	}
	i := endpoint.QPInfo{
		IP: netip.AddrFrom16(gid).Unmap(), QPN: rocev2.QPN(q.qp_num), SQPSN: rocev2.PSN(q.sq_psn), RQPSN: rocev2.PSN(q.rq_psn),
	}
	switch {
	case i.IP.IsUnspecified() || i.IP.IsMulticast():
		return i, argument("qp.gid is %v: want the RoCE v2 GID that the queue pair will use (ibv_query_gid; ::ffff:a.b.c.d for IPv4)", i.IP)
	case i.IP.IsLinkLocalUnicast() || i.IP.IsLoopback():
		return i, argument("qp.gid is %v, link-local or loopback: want the GID of an address that the switch reaches, by another gid_index", i.IP)
	case !i.QPN.Valid():
		return i, argument("qp.qp_num is 0x%x: want that of a reliable connected queue pair, 0x10 to 0xfffffe", uint32(i.QPN))
	case i.SQPSN > rocev2.PSNMask || i.RQPSN > rocev2.PSNMask:
		return i, argument("qp.sq_psn is 0x%x, qp.rq_psn 0x%x: PSNs have 24 bits", uint32(i.SQPSN), uint32(i.RQPSN))
	}
	return i, nil
}

// memory translates and checks a gleam_mr.
func memory(m *C.struct_gleam_mr) (*join.Memory, error) {
	if m == nil {
		return nil, nil
	}
	r := join.Memory{Addr: uint64(m.addr), Len: uint64(m.length), RKey: uint32(m.rkey)}
	if r.Len == 0 || r.Len > math.MaxInt || r.Addr+(r.Len-1) < r.Addr {
		return nil, argument("mr of %d bytes at 0x%x is empty or passes the end of the address space: give NULL for no region", r.Len, r.Addr)
	}
	return &r, nil
}

// putPeer fills in a gleam_peer.
func putPeer(p *C.struct_gleam_peer, to endpoint.Remote) {
	*p = C.struct_gleam_peer{qp_num: C.uint32_t(to.QPN), path_mtu_bytes: C.uint32_t(to.PathMTU)}
	for i, b := range to.IP.As16() {
		p.gid[i] = C.uint8_t(b)
	}
	putText(&p.ip[0], len(p.ip), to.IP.String())
	p.path_mtu = C.uint32_t(rocev2.PathMTUCode(to.PathMTU))
}

// putWindow fills in a gleam_window.
func putWindow(w *C.struct_gleam_window, g endpoint.GroupInfo) {
	*w = C.struct_gleam_window{
		addr: C.uint64_t(g.Window.Base), length: C.uint64_t(g.Window.Len), rkey: C.uint32_t(g.Window.RKey), members: C.uint32_t(g.Members),
	}
}

// kinds are the numbers of gleam.h.
var kinds = map[endpoint.EventKind]C.uint32_t{
	endpoint.Joined: C.GLEAM_JOINED, endpoint.MemberLeft: C.GLEAM_LEFT, endpoint.Evicted: C.GLEAM_EVICTED,
	endpoint.Failed: C.GLEAM_FAILED, endpoint.Ended: C.GLEAM_ENDED,
}

// putEvent fills in a gleam_event.
func putEvent(p *C.struct_gleam_event, e endpoint.Event) {
	*p = C.struct_gleam_event{kind: kinds[e.Kind], psn: C.uint32_t(e.PSN)}
	if m := join.Concerned(e); m.IsValid() {
		putText(&p.member[0], len(p.member), m.String())
	}
	putText(&p.text[0], len(p.text), join.Text(e))
}
