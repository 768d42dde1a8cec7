// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

// Wrong ways to exchange connection states between hosts.
var exchangeMutants = []mutant{
	{"any certificate will do", "oob", "endpoint/oob/identity.go", []edit{{
		"if len(s.PeerCertificates) == 0 || !own.Equal(s.PeerCertificates[0].PublicKey) {",
		"if len(s.PeerCertificates) == 0 || own == nil {",
	}}},
	{"a connecting side needs no certificate", "oob", "endpoint/oob/identity.go", []edit{{
		"ClientAuth: tls.RequireAnyClientCert,", "ClientAuth: tls.RequestClientCert,",
	}, {
		"if len(s.PeerCertificates) == 0 || !own.Equal(", "if len(s.PeerCertificates) != 0 && !own.Equal(",
	}}},
	{"the key of another use is the same", "oob", "endpoint/oob/identity.go", []edit{{
		"private := ed25519.NewKeyFromSeed(seed)", "private := ed25519.NewKeyFromSeed(key[:ed25519.SeedSize])\n	_ = seed",
	}}},
	{"a connection of another use is taken", "oob", "endpoint/oob/identity.go", []edit{{
		"NextProtos: []string{use}", "NextProtos: []string{Exchange}",
	}, {
		"if s.NegotiatedProtocol != use {", "if s.NegotiatedProtocol != Exchange {",
	}}},
	{"only the first key is taken", "oob", "endpoint/oob/handshake.go", []edit{{
		"if cert := id.certs[key]; cert != nil {", "if cert := id.certs[key]; cert != nil && key == id.send {",
	}}},
	{"a key with a short secret is taken", "oob", "endpoint/oob/identity.go", []edit{{
		"if len(key) < envelope.MinKeyLen {", "if false {",
	}}},
	{"without a key connections are plain", "oob", "endpoint/oob/identity.go", []edit{{
		"		if !auth.Insecure {\n", "		if false {\n",
	}}},
	{"a silent peer of before is not told why", "oob", "endpoint/oob/handshake.go", []edit{{
		", errors.Is(err, os.ErrDeadlineExceeded) && !greeted && waiting.Err() == nil:", ":",
	}}},
	{"another release is not told why", "oob", "endpoint/oob/handshake.go", []edit{{
		"header.RecordHeader[0] == '{', errors", "header.RecordHeader[0] == '}', errors",
	}}},
	{"the first wrong answer ends a join", "oob", "endpoint/oob/meet.go", []edit{{
		"giveUp = time.After(authPatience)", "giveUp = time.After(0)",
	}}},
	{"another host's address is taken", "oob", "endpoint/oob/master.go", []edit{{
		"from != p.Info.IP && !a.OtherNetwork", "from != p.Info.IP && !a.OtherNetwork && false",
	}}},
	{"silent connections are without bound", "oob", "endpoint/oob/door.go", []edit{{
		"if len(d.visitors) > maxVisitors {", "if false {",
	}}},
	{"the newest connection gives way", "oob", "endpoint/oob/door.go", []edit{{
		"	for i, v := range d.visitors {\n		if count", "	for i, v := range slices.Backward(d.visitors) {\n		if count",
	}}},
	{"the oldest connection gives way, whoever's", "oob", "endpoint/oob/door.go", []edit{{
		"if count[v.from] == most {", "if most > 0 {",
	}}},
	{"an admitted connection gives way", "oob", "endpoint/oob/door.go", []edit{{
		"	d.visitors = slices.DeleteFunc(d.visitors, func(o *visitor) bool { return o == v })\n", "",
	}}},
	{"a displaced connection is admitted", "oob", "endpoint/oob/door.go", []edit{{
		"	if v.gone {\n", "	if false {\n",
	}}},
	{"failing costs an address nothing", "oob", "endpoint/oob/refusals.go", []edit{{
		"f.inIt >= failuresRate &&", "f.inIt > 1<<30 &&",
	}}},
	{"an address that failed is never taken again", "oob", "endpoint/oob/refusals.go", []edit{{
		" && now.Sub(f.second) < time.Second\n", "\n",
	}}},
	{"all addresses are remembered", "oob", "endpoint/oob/refusals.go", []edit{{
		"	case len(r.by) == maxRefusers:\n", "	case false:\n",
	}}},
	{"lines of refusals are logged at the same time", "oob", "endpoint/oob/identity.go", []edit{{
		"	id.logging.Lock()\n	defer id.logging.Unlock()\n", "",
	}}},
	{"every refusal is a line", "oob", "endpoint/oob/identity.go", []edit{{
		"now.Sub(id.logged) < time.Second", "false",
	}}},
	{"refusals are not counted", "oob", "endpoint/oob/refusals.go", []edit{{
		"total := r.id.refused.Add(1)", "total := r.id.refused.Load()",
	}}},
	{"an error of another version is not read", "oob", "endpoint/oob/message.go", []edit{{
		" && v.Type != typeError {", " {",
	}}},
	{"an insecure host does not know TLS", "oob", "endpoint/oob/conn.go", []edit{{
		"b[0] == 0x16 {", "b[0] == 0x17 {",
	}}},
	{"a group prints the R_Key of its targets", "oob", "endpoint/oob/message.go", []edit{{
		"func (g Group) GoString() string { return g.String() }\n", "",
	}}},
}
