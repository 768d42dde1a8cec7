// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package oob

import (
	"crypto/ed25519"
	"crypto/tls"
	"sync/atomic"

	"github.com/gleam-rdma/gleam/test/mutation/mutant"
)

// Wrong ways to exchange connection states between hosts.
var _ = []mutant.Mutant{
	mutant.New("any certificate will do", "oob", mutant.In(config,
		"if len(s.PeerCertificates) == 0 || !own.Equal(s.PeerCertificates[0].PublicKey) {",
		"if len(s.PeerCertificates) == 0 || own == nil {")),
	mutant.New("a connecting side needs no certificate", "oob", mutant.In(config,
		"ClientAuth: tls.RequireAnyClientCert, SessionTicketsDisabled: true,",
		"ClientAuth: tls.$1, SessionTicketsDisabled: true,", tls.RequestClientCert), mutant.In(config,
		"if len(s.PeerCertificates) == 0 || !own.Equal(",
		"if len(s.PeerCertificates) != 0 && !own.Equal(")),
	mutant.New("the key of another use is the same", "oob", mutant.In(certificate,
		"private := ed25519.NewKeyFromSeed(seed)",
		`private := ed25519.NewKeyFromSeed($arg1[:ed25519.$1])
	_ = seed`, ed25519.SeedSize)),
	mutant.New("a connection of another use is taken", "oob", mutant.In(config,
		"NextProtos: []string{use}",
		"NextProtos: []string{$1}", Exchange), mutant.In(config,
		"if s.NegotiatedProtocol != use {",
		"if s.NegotiatedProtocol != $1 {", Exchange)),
	mutant.New("only the first key is taken", "oob", mutant.In((*Identity).server,
		"if cert := id.certs[key]; cert != nil {",
		"if cert := id.certs[key]; cert != nil && key == id.$1 {", Identity{}.send)),
	mutant.New("a key with a short secret is taken", "oob", mutant.In(NewIdentity,
		"if len(key) < envelope.MinKeyLen {",
		"if false {")),
	mutant.New("without a key connections are plain", "oob", mutant.In(NewIdentity,
		"if !auth.Insecure {",
		"if false {")),
	mutant.New("a silent peer of before is not told why", "oob", mutant.In((*Identity).server,
		", errors.Is(err, os.ErrDeadlineExceeded) && !greeted && waiting.Err() == nil:",
		":")),
	mutant.New("another release is not told why", "oob", mutant.In((*Identity).server,
		"header.RecordHeader[0] == '{', errors",
		"header.RecordHeader[0] == '}', errors")),
	mutant.New("the first wrong answer ends a join", "oob", mutant.In((*Identity).Dial,
		"giveUp = time.After(authTimeout)",
		"giveUp = time.After(0)")),
	mutant.New("another host's address is taken", "oob", mutant.In((*Admission).check,
		"from != p.Info.IP && !a.OtherNetwork",
		"from != p.Info.IP && !a.OtherNetwork && false")),
	mutant.New("failing costs an address nothing", "oob", mutant.In((*refusals).tooMany,
		"f.listed >= failuresRate &&",
		"f.listed > 1<<30 &&")),
	mutant.New("all addresses are remembered", "oob", mutant.In((*refusals).add,
		"case len(r.byAddress) == maxRefusers:",
		"case false:")),
	mutant.New("lines of refusals are logged at the same time", "oob", mutant.In((*Identity).log,
		`id.logging.Lock()
	defer id.logging.Unlock()`,
		"")),
	mutant.New("every refusal is a line", "oob", mutant.In((*Identity).log,
		"now.Sub(id.logged) < time.Second",
		"false")),
	mutant.New("refusals are not counted", "oob", mutant.In((*refusals).add,
		"total := r.id.refused.Add(1)",
		"total := r.id.refused.$1()", (*atomic.Uint64).Load)),
	mutant.New("an insecure host does not know TLS", "oob", mutant.In((*conn).line,
		"b[0] == 0x16 {",
		"b[0] == 0x17 {")),
	mutant.New("a group prints the R_Key of its targets", "oob", mutant.In(Group.String,
		"uint32(g.QPN), g.PathMTU, g.Members",
		"uint32(g.QPN), g.$1, g.Members", Group{}.TargetKey)),
}
