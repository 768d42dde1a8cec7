// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package neighbours

import (
	"fmt"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/envelope/hello"
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// upWith is the state of a port's link to a switch.
func upWith(port int, id hello.SwitchID, session uint64) Link {
	n := hello.Neighbour{Speaker: hello.Speaker{ID: id, Incarnation: 1}, Interval: 100 * time.Millisecond, Version: 1, Session: session}
	n.MAC, n.MTU = rocev2.MAC{2, 0, 0, 0, 0, byte(id)}, 1500
	return Link{Port: port, State: hello.Up, Neighbour: n}
}

func downFor(port int, why hello.Reason) Link {
	return Link{Port: port, State: hello.Down, Reason: why, Lost: why}
}

// text is a change as the tests write it.
func text(c Change) string {
	s := fmt.Sprintf("%d: ", c.Is.Number)
	if c.Ended() {
		s += fmt.Sprintf("session %d ended, %v; ", c.Was.Session, c.Lost)
	}
	if c.Began() {
		s += fmt.Sprintf("session %d", c.Is.Session)
	}
	return s
}

// TestTable: numbers stay with port and ID, and every session that has ended or begun since
// the last look is reported, in whatever state the link was in between.
func TestTable(t *testing.T) {
	var tab Table
	now := time.Duration(0)
	for i, step := range []struct {
		links []Link
		want  []string
	}{
		{[]Link{downFor(0, hello.Silent), downFor(1, hello.Silent)}, nil},
		{[]Link{upWith(0, 7, 100), downFor(1, hello.Silent)}, []string{"1: session 100"}},
		{[]Link{upWith(0, 7, 100), upWith(1, 8, 200)}, []string{"2: session 200"}},
		{[]Link{upWith(0, 7, 100), upWith(1, 8, 200)}, nil},
		{[]Link{downFor(0, hello.Silent), upWith(1, 8, 200)}, []string{"1: session 100 ended, no neighbour is heard; "}},
		{[]Link{downFor(0, hello.LinkDown), upWith(1, 8, 200)}, nil},
		{[]Link{upWith(0, 7, 101), upWith(1, 8, 200)}, []string{"1: session 101"}},
		{[]Link{upWith(0, 9, 102), upWith(1, 8, 200)}, []string{"1: session 101 ended, ; ", "3: session 102"}},
		{[]Link{upWith(0, 7, 103), upWith(1, 8, 200)}, []string{"3: session 102 ended, ; ", "1: session 103"}},
		{[]Link{upWith(0, 7, 104), upWith(1, 8, 200)}, []string{"1: session 103 ended, ; session 104"}},
		{[]Link{upWith(0, 7, 104), upWith(1, 7, 300)}, []string{"2: session 200 ended, ; ", "4: session 300"}}, // one switch at two ports
	} {
		now += time.Second
		changes := tab.Update(now, step.links)
		var got []string
		for _, c := range changes {
			got = append(got, text(c))
			if c.Is.Since != now {
				t.Errorf("step %d: %+v", i, c.Is)
			}
		}
		if fmt.Sprintf("%q", got) != fmt.Sprintf("%q", step.want) {
			t.Errorf("step %d: %q, want %q", i, got, step.want)
		}
	}
	if a, ok := tab.At(1); !ok || a.Number != 4 || a.ID != 7 || a.Hold != 300*time.Millisecond || a.MAC[5] != 7 || a.MTU != 1500 {
		t.Errorf("at port 1: %+v", a)
	}
	if a, ok := tab.Find(3); !ok || a.Up || a.ID != 9 {
		t.Errorf("number 3: %+v", a)
	}
	if _, ok := tab.Find(5); ok {
		t.Error("number 5 is there")
	}
	if _, ok := tab.At(7); ok {
		t.Error("a neighbour at a port without one")
	}
}

// TestNewMAC: what a neighbour says of its end is a change, and no new session.
func TestNewMAC(t *testing.T) {
	var tab Table
	l := upWith(0, 7, 100)
	tab.Update(time.Second, []Link{l})
	l.Neighbour.MAC[1] = 9
	changes := tab.Update(2*time.Second, []Link{l})
	if len(changes) != 1 || changes[0].Began() || changes[0].Ended() || changes[0].Is.MAC[1] != 9 || changes[0].Is.Since != time.Second {
		t.Errorf("%+v", changes)
	}
}

// TestManyNeighbours: a port with ever new switches does not fill the memory, and no number
// comes twice.
func TestManyNeighbours(t *testing.T) {
	var tab Table
	seen := make(map[mcast.Neighbor]bool)
	for i := range 1000 {
		for _, c := range tab.Update(time.Duration(i)*time.Second, []Link{upWith(0, hello.SwitchID(i+1), uint64(i+1))}) {
			if c.Began() && seen[c.Is.Number] {
				t.Fatalf("number %d twice", c.Is.Number)
			}
			seen[c.Is.Number] = true
		}
	}
	if n := len(tab.All()); n > maxDown+1 {
		t.Errorf("%d neighbours are remembered", n)
	}
	if a, ok := tab.At(0); !ok || a.ID != 1000 {
		t.Errorf("up: %+v", a)
	}
}

// A neighbour of before the restart has its number before it is heard, and keeps it.
func TestRecall(t *testing.T) {
	var tab Table
	n := tab.Recall(time.Second, 1, 8)
	if a, ok := tab.Find(n); !ok || a.Up || a.Port != 1 || a.ID != 8 || a.Reason != hello.Silent || a.Since != time.Second || n != 1 {
		t.Errorf("number %d: %+v", n, a)
	}
	if m := tab.Recall(time.Second, 1, 7); m == n {
		t.Error("two switches have one number")
	}
	changes := tab.Update(2*time.Second, []Link{upWith(1, 8, 5)})
	if len(changes) != 1 || changes[0].Is.Number != n || !changes[0].Began() || changes[0].Ended() {
		t.Errorf("%+v", changes)
	}
	if m := tab.Recall(3*time.Second, 1, 8); m != n {
		t.Errorf("number %d, and then %d", n, m)
	} else if a, _ := tab.Find(n); !a.Up || a.Since != 2*time.Second {
		t.Errorf("%+v", a)
	}
}
