// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package envelope

import (
	"bytes"
	"testing"
	"time"
)

// TestKeysAreRotated: a new key beside the old one changes nothing for the old one's
// groups. When the old one is taken away nothing more is taken under it: its groups end
// with their leases, of which their members hear under the old secret.
func TestKeysAreRotated(t *testing.T) {
	one, two := Keys{7: testKeys[7]}, Keys{7: testKeys[7], 8: testKeys[8]}
	a := newAsker(t, RegistrarConfig{Auth: Auth{Keys: one, Send: 7}})
	reg := epoch(sample(1, 2), 5)
	reg.Lease = 10 * time.Second
	a.register(reg)
	other := sample(2, 2)
	register8 := func() Output {
		h := a.head(other.Group, 5)
		h.KeyID = 8
		return a.askUnder(h, &Register{other.groupBody(other.Members)})
	}
	if out := register8(); out.Drop != UnknownKey {
		t.Fatalf("before: %v", out.Drop)
	}
	set := func(k Keys, send KeyID, want int) {
		t.Helper()
		if orphans, err := a.w.sw.SetKeys(a.w.now, Auth{Keys: k, Send: send}, nil); err != nil || orphans[7] != want {
			t.Fatalf("%v, %v", orphans, err)
		}
	}
	set(two, 8, 0)
	if r := a.reason(register8()); r != NoReason {
		t.Errorf("the new key: %v", r)
	}
	h := a.head(reg.Group, 5)
	h.KeyID, h.Instance = 7, a.w.sw.cookie(a.from, 7)
	if r := a.reason(a.askUnder(h, &Renew{Lease: 10 * time.Second})); r != NoReason {
		t.Errorf("the old key's group: %v", r)
	}
	set(Keys{8: testKeys[8]}, 8, 1)
	h.Transaction++
	if out := a.askUnder(h, &Renew{}); out.Drop != UnknownKey {
		t.Errorf("the old key afterwards: %v", out.Drop)
	}
	var out Output
	a.w.sw.Advance(11*time.Second, &out)
	told := 0
	for _, p := range out.Packets {
		if m, err := Open(p.Data, one, false); err == nil && m.Type == TypeGone && m.Body.(*Gone).EndReason == Expired {
			told++
		}
	}
	if told != 3 || a.w.sw.groups[reg.Group] != nil || a.w.sw.groups[other.Group] == nil {
		t.Errorf("%d were told; %v", told, a.w.sw.Groups())
	}
	for name, bad := range map[string]Auth{
		"short":    {Keys: Keys{8: bytes.Repeat([]byte{1}, 31)}, Send: 8},
		"none":     {},
		"insecure": {Insecure: true},
	} {
		if _, err := a.w.sw.SetKeys(a.w.now, bad, nil); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
	if r := a.reason(register8()); r != NoReason {
		t.Errorf("after what was refused: %v", r)
	}
}
