// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dcqcn

import (
	"bytes"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestStateKnowsEveryField fails when a field was added that AppendState was not
// told about: encode it there and in SetState, or list here why it need not be.
func TestStateKnowsEveryField(t *testing.T) {
	for typ, fields := range map[reflect.Type]string{
		// cfg is constant, stats influence nothing, creditUntil is now after catchUp.
		reflect.TypeFor[ReactionPoint]():     "cfg stats current target alpha belowLineRate cutUntil next sent timerRises byteRises credit creditUntil",
		reflect.TypeFor[NotificationPoint](): "interval due",
	} {
		var got string
		for i := range typ.NumField() {
			got += typ.Field(i).Name + " "
		}
		if got != fields+" " {
			t.Errorf("%v has the fields %s: state.go knows %s", typ, got, fields)
		}
	}
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
		enc := a.AppendState(nil, now)
		rest, ok := b.SetState(append(bytes.Clone(enc), 7), 5)
		if !ok || len(rest) != 1 {
			t.Fatalf("SetState: %v, %d bytes left", ok, len(rest))
		}
		if again := b.AppendState(nil, 5); !bytes.Equal(enc, again) {
			t.Fatalf("encoded %x, then %x", enc, again)
		}
		after := events.Draw(t, "after")
		if x, y := play(&a, now, after), play(&b, 5, after); !reflect.DeepEqual(x, y) {
			t.Fatalf("the original %v\nrestored %v", x, y)
		}
		for n := range enc {
			if _, ok := b.SetState(enc[:n], 5); ok {
				t.Fatalf("SetState took %d of %d bytes", n, len(enc))
			}
		}
	})
	n := NewNotificationPoint(time.Second)
	n.OnCE(time.Hour)
	m := NewNotificationPoint(time.Second)
	if _, ok := m.SetState(n.AppendState(nil, time.Hour+time.Millisecond), 5); !ok || m.due != 5+999*time.Millisecond {
		t.Errorf("%v %+v", ok, m)
	}
	if _, ok := m.SetState(make([]byte, 7), 0); ok {
		t.Error("SetState took 7 bytes")
	}
}
