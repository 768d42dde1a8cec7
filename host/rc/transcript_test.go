// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package rc

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/gleam-rdma/gleam/rocev2"
)

var opcodeNames = map[string]rocev2.Opcode{
	"SEND_FIRST": rocev2.SendFirst, "SEND_MIDDLE": rocev2.SendMiddle, "SEND_LAST": rocev2.SendLast,
	"SEND_LAST_IMM": rocev2.SendLastImm, "SEND_ONLY": rocev2.SendOnly, "SEND_ONLY_IMM": rocev2.SendOnlyImm,
	"SEND_LAST_INV": rocev2.SendLastInv, "SEND_ONLY_INV": rocev2.SendOnlyInv,
	"WRITE_FIRST": rocev2.WriteFirst, "WRITE_MIDDLE": rocev2.WriteMiddle, "WRITE_LAST": rocev2.WriteLast,
	"WRITE_LAST_IMM": rocev2.WriteLastImm, "WRITE_ONLY": rocev2.WriteOnly, "WRITE_ONLY_IMM": rocev2.WriteOnlyImm,
	"READ_REQUEST": rocev2.ReadRequest, "COMPARE_SWAP": rocev2.CompareSwap, "FETCH_ADD": rocev2.FetchAdd,
	"FLUSH": rocev2.Flush, "ATOMIC_WRITE": rocev2.AtomicWrite,
	"ACKNOWLEDGE": rocev2.Acknowledge, "READ_RESP_ONLY": rocev2.ReadRespOnly, "CNP": rocev2.CNP, "RESERVED_15": 0x15,
}

func opcodeName(o rocev2.Opcode) string {
	for name, op := range opcodeNames {
		if op == o {
			return name
		}
	}
	return fmt.Sprintf("%#x", uint8(o))
}

// show prints what a QP put out, one line each.
func show(out *Output) string {
	var s strings.Builder
	for i := range out.Packets {
		p := &out.Packets[i]
		if p.Op == rocev2.Acknowledge {
			switch kind := p.Syndrome.Kind(); kind {
			case rocev2.KindACK:
				fmt.Fprintf(&s, "> ACK psn=%06x msn=%d syndrome=%02x\n", p.PSN, p.MSN, uint8(p.Syndrome))
			case rocev2.KindRNR:
				fmt.Fprintf(&s, "> RNR psn=%06x msn=%d timer=%v\n", p.PSN, p.MSN, p.Syndrome.RNRCode().Duration())
			default:
				fmt.Fprintf(&s, "> NAK psn=%06x msn=%d syndrome=%02x\n", p.PSN, p.MSN, uint8(p.Syndrome))
			}
			continue
		}
		fmt.Fprintf(&s, "> %s psn=%06x len=%d", opcodeName(p.Op), p.PSN, len(p.Payload))
		if p.Op.Is(rocev2.OpRETH) {
			fmt.Fprintf(&s, " va=%#x dmalen=%d", p.VA, p.DMALen)
		}
		if p.Op.Is(rocev2.OpImm) {
			fmt.Fprintf(&s, " imm=%d", p.Imm)
		}
		if p.Op.Is(rocev2.OpIETH) {
			fmt.Fprintf(&s, " inv=%#x", p.InvKey)
		}
		if p.AckReq {
			s.WriteString(" ackreq")
		}
		if p.Solicited {
			s.WriteString(" solicited")
		}
		s.WriteByte('\n')
	}
	for _, c := range out.Completions {
		fmt.Fprintf(&s, "= %v id=%d %v", c.Op, c.ID, c.Status)
		if c.Status == Success {
			fmt.Fprintf(&s, " bytes=%d", c.Bytes)
		}
		if c.HasImm {
			fmt.Fprintf(&s, " imm=%d", c.Imm)
		}
		if c.HasInv {
			s.WriteString(" invalidated")
		}
		if c.Solicited {
			s.WriteString(" solicited")
		}
		s.WriteByte('\n')
	}
	if s.Len() == 0 {
		return "-\n"
	}
	return s.String()
}

// script is one QP under a transcript. Times are in microseconds.
type script struct {
	qp     *QP
	out    Output
	now    time.Duration
	mr     *MR
	region []byte
}

func num[T ~int | ~uint8 | ~uint32 | ~uint64 | ~int64](t *testing.T, d *datadriven.TestData, key string, def T) T {
	t.Helper()
	if !d.HasArg(key) {
		return def
	}
	var text string
	d.ScanArgs(t, key, &text)
	var v uint64
	if _, err := fmt.Sscan(text, &v); err != nil {
		d.Fatalf(t, "%s=%s: %v", key, text, err)
	}
	return T(v)
}

func (s *script) run(t *testing.T, d *datadriven.TestData) string {
	defer s.out.Reset()
	switch d.Cmd {
	case "new":
		s.create(t, d)
		return ""
	case "send":
		op := WROp(0)
		for o, name := range wrOpNames {
			if d.HasArg(name) {
				op = WROp(o)
			}
		}
		data := bytes.Repeat([]byte{'d'}, num(t, d, "size", 0))
		wr := WR{ID: num[uint64](t, d, "id", 0), Op: op, Data: data, VA: num[uint64](t, d, "va", 0), RKey: num[uint32](t, d, "rkey", 0), Imm: num[uint32](t, d, "imm", 0), Signaled: !d.HasArg("unsignaled"), Solicited: d.HasArg("solicited")}
		if err := s.qp.PostSend(wr); err != nil {
			return err.Error() + "\n"
		}
		return ""
	case "recv":
		if err := s.qp.PostRecv(RecvWR{ID: num[uint64](t, d, "id", 0), Buf: make([]byte, num(t, d, "size", 0))}); err != nil {
			return err.Error() + "\n"
		}
		return ""
	case "transmit":
		s.qp.Transmit(s.now, &s.out, num(t, d, "budget", 1000))
	case "in":
		s.input(t, d)
	case "advance":
		s.now += time.Duration(num(t, d, "us", 0)) * time.Microsecond
		s.qp.Advance(s.now, &s.out)
	case "deadline":
		at, ok := s.qp.NextDeadline()
		if !ok {
			return "none\n"
		}
		return fmt.Sprintf("in %v\n", at-s.now)
	case "fail":
		s.qp.Fail(&s.out)
	case "deregister":
		if err := s.qp.cfg.Memory.Deregister(s.mr.RKey); err != nil {
			return err.Error() + "\n"
		}
		return ""
	case "state":
		return fmt.Sprintf("%v epsn=%06x next=%06x\n", s.qp.State(), s.qp.ExpectedPSN(), s.qp.nextSendPSN())
	case "stats":
		return fmt.Sprintf("%+v\n", s.qp.Stats())
	case "memory":
		return fmt.Sprintf("%q\n", s.region)
	default:
		d.Fatalf(t, "unknown command %s", d.Cmd)
	}
	return show(&s.out)
}

func (s *script) create(t *testing.T, d *datadriven.TestData) {
	mem := NewMemory(1)
	s.region = bytes.Repeat([]byte{'.'}, num(t, d, "region", 16))
	var err error
	if s.mr, err = mem.RegisterMR(s.region, 0x1000, RemoteWrite); err != nil {
		d.Fatalf(t, "%v", err)
	}
	cfg := Config{
		PMTU: 256, LocalQPN: 0x11, DestQPN: 0x12, Memory: mem,
		SQPSN: num[rocev2.PSN](t, d, "sq-psn", 0), RQPSN: num[rocev2.PSN](t, d, "rq-psn", 0),
		Timeout:  time.Duration(num(t, d, "timeout", 1000)) * time.Microsecond,
		RetryCnt: num[uint8](t, d, "retry", 3), RNRRetry: num[uint8](t, d, "rnr-retry", 3), MinRNRTimer: 12,
		MaxUnacked: num(t, d, "window", 0), Credits: d.HasArg("credits"),
	}
	if d.HasArg("strict") {
		cfg.Personality = Strict
	}
	if s.qp, err = New(cfg); err != nil {
		d.Fatalf(t, "%v", err)
	}
	s.now = 0
}

// input gives one packet. rkey defaults to the region's; syndrome to 0x1f.
func (s *script) input(t *testing.T, d *datadriven.TestData) {
	op, ok := opcodeNames[d.CmdArgs[0].Key]
	if !ok {
		d.Fatalf(t, "unknown opcode %s", d.CmdArgs[0].Key)
	}
	p := Packet{
		Op: op, PSN: num[rocev2.PSN](t, d, "psn", 0), DestQP: num[rocev2.QPN](t, d, "qpn", 0x11),
		AckReq: d.HasArg("ackreq"), Solicited: d.HasArg("solicited"), Imm: num[uint32](t, d, "imm", 0), InvKey: num[uint32](t, d, "inv", 0),
		Payload: bytes.Repeat([]byte{'x'}, num(t, d, "len", 0)),
	}
	if d.HasArg("inv-region") {
		p.InvKey = s.mr.RKey
	}
	if op.Is(rocev2.OpRETH) {
		p.VA, p.RKey, p.DMALen = num[uint64](t, d, "va", 0x1000), num(t, d, "rkey", s.mr.RKey), num(t, d, "dmalen", uint32(len(p.Payload)))
	}
	if op.Is(rocev2.OpAETH) {
		p.Syndrome = num[rocev2.Syndrome](t, d, "syndrome", rocev2.SyndromeACK)
	}
	s.qp.Input(s.now, &p, &s.out)
}

func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata/transcripts", func(t *testing.T, path string) {
		var s script
		datadriven.RunTest(t, path, s.run)
	})
}
