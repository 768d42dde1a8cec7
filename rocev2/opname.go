// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package rocev2

import (
	"fmt"
	"slices"
	"strings"
)

// opcodeNames has the opcodes' names in capital letters, as in IBTA §9.2; "WRITE" is short for
// "RDMA WRITE".
var opcodeNames = map[Opcode]string{
	SendFirst: "SEND_FIRST", SendMiddle: "SEND_MIDDLE", SendLast: "SEND_LAST", SendLastImm: "SEND_LAST_IMM",
	SendOnly: "SEND_ONLY", SendOnlyImm: "SEND_ONLY_IMM", SendLastInv: "SEND_LAST_INV", SendOnlyInv: "SEND_ONLY_INV",
	WriteFirst: "WRITE_FIRST", WriteMiddle: "WRITE_MIDDLE", WriteLast: "WRITE_LAST", WriteLastImm: "WRITE_LAST_IMM",
	WriteOnly: "WRITE_ONLY", WriteOnlyImm: "WRITE_ONLY_IMM",
	ReadRequest: "READ_REQUEST", ReadRespFirst: "READ_RESPONSE_FIRST", ReadRespMiddle: "READ_RESPONSE_MIDDLE",
	ReadRespLast: "READ_RESPONSE_LAST", ReadRespOnly: "READ_RESPONSE_ONLY",
	Acknowledge: "ACKNOWLEDGE", AtomicAck: "ATOMIC_ACKNOWLEDGE", CompareSwap: "COMPARE_SWAP", FetchAdd: "FETCH_ADD",
	Flush: "FLUSH", AtomicWrite: "ATOMIC_WRITE", CNP: "CNP",
}

// Name returns the name of o; "opcode 0x15" for one without a name.
func (o Opcode) Name() string {
	if n := opcodeNames[o]; n != "" {
		return n
	}
	return fmt.Sprintf("opcode 0x%02x", uint8(o))
}

// ParseOpcode returns the opcode with a name, in any case, with hyphens or underscores, such as
// write-middle.
func ParseOpcode(name string) (Opcode, error) {
	want := strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
	for o, n := range opcodeNames {
		if n == want {
			return o, nil
		}
	}
	return 0, fmt.Errorf("no opcode has the name %q: there are %s", name, strings.Join(OpcodeNames(), ", "))
}

// OpcodeNames returns the names that ParseOpcode knows, in lower case with hyphens, sorted.
func OpcodeNames() (names []string) {
	for _, n := range opcodeNames {
		names = append(names, strings.ToLower(strings.ReplaceAll(n, "_", "-")))
	}
	slices.Sort(names)
	return names
}

// opcodeClasses are names that stand for several opcodes each.
var opcodeClasses = map[string]OpFlags{"send": OpSend, "write": OpWrite, "data": OpRequest}

// ParseOpcodes returns the opcodes that a name stands for: one as for ParseOpcode, ack, or send,
// write or data for several.
func ParseOpcodes(name string) (ops []Opcode, err error) {
	if flags, ok := opcodeClasses[name]; ok {
		for o := range Opcode(0xFF) {
			if o.Is(flags) {
				ops = append(ops, o)
			}
		}
		return ops, nil
	}
	if name == "ack" {
		return []Opcode{Acknowledge}, nil
	}
	o, err := ParseOpcode(name)
	return []Opcode{o}, err
}
