// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package statefile

import (
	"encoding/binary"
	"errors"
	"maps"
	"slices"
)

// table is what the file holds: nodes by name, as appendParts encodes them. It is the state after the edits of all
// frames, in their order.
type table map[string][]byte

// node returns a node of t.
func (t table) node(name string) node {
	n := node{}
	r := reader{b: t[name]}
	if len(r.b) > 0 {
		r.parts(n)
	}
	return n
}

// node is one thing that is kept, as parts by name. The parts of a group are its
// description, its turn and the members that have gone since.
type node map[string][]byte

// edit is a change of one node. A part with nil as value is removed. An edit of a node
// that was there is complete by itself with reset: the node has its parts and no others.
type edit struct {
	name  string
	reset bool
	parts node
}

// batch is a sequence of edits, at most one for each node: a later edit of a node is
// merged into the earlier one.
type batch struct {
	edits  []*edit
	byName map[string]*edit
}

func (b *batch) of(name string) *edit {
	e := b.byName[name]
	if e == nil {
		e = &edit{name: name, parts: node{}}
		if b.byName == nil {
			b.byName = make(map[string]*edit)
		}
		b.byName[name] = e
		b.edits = append(b.edits, e)
	}
	return e
}

// set gives part of node name the value v. nil removes the part.
func (b *batch) set(name, part string, v []byte) { b.of(name).parts[part] = v }

// drop removes a node with all its parts.
func (b *batch) drop(name string) {
	e := b.of(name)
	e.reset, e.parts = true, node{}
}

// merge appends the edits of later.
func (b *batch) merge(later *batch) {
	for _, e := range later.edits {
		if e.reset {
			b.drop(e.name)
		}
		maps.Copy(b.of(e.name).parts, e.parts)
	}
}

func (b *batch) empty() bool { return len(b.edits) == 0 }

// removesNothing reports whether e removes a node, or parts of one, that t does not have.
func (t table) removesNothing(e *edit) bool {
	if t[e.name] != nil {
		return false
	}
	for _, v := range e.parts {
		if v != nil {
			return false
		}
	}
	return true
}

// apply changes t as b says. It returns by how many bytes the encoding of t grows.
func (t table) apply(b *batch) (growth int) {
	for _, e := range b.edits {
		growth -= encodedLen(e.name, t[e.name])
		n := node{}
		if !e.reset {
			n = t.node(e.name)
		}
		for part, v := range e.parts {
			if v == nil {
				delete(n, part)
			} else {
				n[part] = v
			}
		}
		if len(n) == 0 {
			delete(t, e.name)
			continue
		}
		t[e.name] = slices.Clone(appendParts(nil, n)) // as long as it is
		growth += encodedLen(e.name, t[e.name])
	}
	return growth
}

func (t table) encodedLen() (size int) {
	for name, n := range t {
		size += encodedLen(name, n)
	}
	return size
}

// encodedLen is the length of an edit that makes a node with these parts, or 0 if there are none.
func encodedLen(name string, parts []byte) int {
	if len(parts) == 0 {
		return 0
	}
	return 2 + len(name) + len(parts)
}

// Bits of an edit's first byte.
const editResets = 1 << 0

// appendEdit appends the encoding of e: a byte of flags, the name, the number of parts,
// and each part's name and value. A value's length is written plus one; 0 stands for a part
// that is removed. Equal edits have equal encodings.
func appendEdit(b []byte, e *edit) []byte {
	flags := byte(0)
	if e.reset {
		flags = editResets
	}
	return appendParts(appendString(append(b, flags), e.name), e.parts)
}

// appendParts appends the number of parts, and each one.
func appendParts(b []byte, n node) []byte {
	b = binary.AppendUvarint(b, uint64(len(n)))
	for _, part := range sortedParts(n) {
		b = appendString(b, part)
		if v := n[part]; v == nil {
			b = append(b, 0)
		} else {
			b = append(binary.AppendUvarint(b, uint64(len(v))+1), v...)
		}
	}
	return b
}

func sortedParts(n node) []string { return slices.Sorted(maps.Keys(n)) }

func appendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

var errEdit = errors.New("a change that cannot be read")

// parseEdits reads the edits of a frame. The values are parts of b.
func parseEdits(b []byte) (*batch, error) {
	r := reader{b: b}
	all := new(batch)
	for len(r.b) > 0 {
		flags := r.u8()
		if flags&^editResets != 0 {
			return nil, errEdit
		}
		name := string(r.bytes(r.uvarint()))
		if flags&editResets != 0 {
			all.drop(name)
		}
		r.parts(all.of(name).parts)
	}
	if !r.ok() {
		return nil, errEdit
	}
	return all, nil
}

// parts reads what appendParts has written into n. The values are parts of r.b.
func (r *reader) parts(n node) {
	for left := r.uvarint(); left > 0 && r.ok(); left-- {
		part := string(r.bytes(r.uvarint()))
		if l := r.uvarint(); l == 0 {
			n[part] = nil
		} else {
			n[part] = slices.Clip(r.bytes(l - 1))
		}
	}
}
