// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dcqcn

import (
	"bytes"
	"reflect"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/internal/statecode"
	"pgregory.net/rapid"
)

// coded is a part of a QP that has an encoding.
type coded interface{ CodeState(*statecode.Code) }

func encode(x coded, now time.Duration) []byte {
	c := statecode.Code{Now: now}
	x.CodeState(&c)
	return c.Bytes
}

// decode returns what follows the encoding, and whether that was one.
func decode(x coded, b []byte, now time.Duration) ([]byte, bool) {
	c := statecode.Code{Bytes: b, Now: now, Reading: true}
	x.CodeState(&c)
	return c.Rest(), !c.Malformed
}

// TestStateGoesOn: a reaction point restored at another time goes on like the
// original.
func TestStateGoesOn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, _ := NewReactionPoint(Config{LineRate: 1e9})
		b, now := a, time.Hour
		play := func(r *ReactionPoint, at time.Duration, events []int) (rates []int64) {
			for _, e := range events {
				at += time.Duration(e>>2) * time.Microsecond
				switch e & 3 {
				case 0:
					r.OnCNP(at)
				case 1:
					r.OnSent(at, e)
				case 2:
					rates = append(rates, int64(r.NextSend(at)-at))
				}
				rates = append(rates, r.Rate(at))
			}
			return rates
		}
		events := rapid.SliceOfN(rapid.IntRange(0, 40000), 1, 50)
		play(&a, now, events.Draw(t, "before"))
		now += 10 * time.Second
		if rapid.Bool().Draw(t, "slowed") {
			a.OnCNP(now)
			a.OnCNP(now + 2*ms)
			now += 3 * ms
		}
		enc := encode(&a, now)
		rest, ok := decode(&b, append(bytes.Clone(enc), 7), 5)
		if !ok || len(rest) != 1 {
			t.Fatalf("decode: %v, %d bytes left", ok, len(rest))
		}
		if again := encode(&b, 5); !bytes.Equal(enc, again) {
			t.Fatalf("encoded %x, then %x", enc, again)
		}
		after := events.Draw(t, "after")
		if x, y := play(&a, now, after), play(&b, 5, after); !reflect.DeepEqual(x, y) {
			t.Fatalf("the original %v\nrestored %v", x, y)
		}
		for n := range enc {
			if _, ok := decode(&b, enc[:n], 5); ok {
				t.Fatalf("%d were taken of %d bytes", n, len(enc))
			}
		}
	})
	n := NewNotificationPoint(time.Second)
	n.OnCE(time.Hour)
	m := NewNotificationPoint(time.Second)
	if rest, ok := decode(&m, append(encode(&n, time.Hour+time.Millisecond), 7), 5); !ok || len(rest) != 1 || m.due != 5+999*time.Millisecond {
		t.Errorf("%v %+v", ok, m)
	}
	if _, ok := decode(&m, nil, 0); ok {
		t.Error("no bytes are taken for an encoding")
	}
	late := newRP(t, plain)
	late.OnCNP(0)
	late.OnSent(0, 100_000)
	inTime := *late
	inTime.Rate(20 * ms)
	if x, y := encode(late, 20*ms), encode(&inTime, 20*ms); !bytes.Equal(x, y) {
		t.Errorf("encoded %x; asked for its rate before that, %x", x, y)
	}
}
