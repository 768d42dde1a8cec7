// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gleam-rdma/gleam/dataplane"
	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/internal/control/locate"
	"github.com/gleam-rdma/gleam/internal/control/location"
	"github.com/gleam-rdma/gleam/rocev2"
)

// Host 2 is a member under two keys. The holder of key 1 is behind port 0, answers in the member's name,
// and sends frames in it. TestModelOfPlaces plays every order of what the two, the kernel and gleamd
// do, with the switch that serves groups: each order begins with a restart.

// placesWorld is a switch, and what is around it.
type placesWorld struct {
	*fakeSwitch
	t       *testing.T
	dir     string
	learnt  string // what the kernel has learnt of host 2: "home", "stranger", "" for nothing
	missing bool   // the member's port
}

const homeOfMember = "f2 02:00:00:00:00:02"

var (
	memberOrigin   = dataplane.Origin{Port: 2, MAC: rocev2.MAC{2, 0, 0, 0, 0, 2}}
	strangerOrigin = dataplane.Origin{Port: 0, MAC: rocev2.MAC{2, 0, 0, 0, 0, 66}}
)

// placesSteps are what can happen next.
var placesSteps = []struct {
	name string
	do   func(*placesWorld)
}{
	{"stranger's frame", func(w *placesWorld) { w.learn("stranger") }},
	{"member's frame", func(w *placesWorld) { w.learn("home") }},
	{"kernel forgets", func(w *placesWorld) { w.learn("") }},
	{"restart", func(w *placesWorld) { w.missing = false; w.restart() }},
	{"restart without the port", func(w *placesWorld) { w.missing = true; w.restart() }},
	{"stranger answers", func(w *placesWorld) { w.answer(1, strangerOrigin) }},
	{"member answers", func(w *placesWorld) { w.answer(2, memberOrigin) }},
}

// start begins with the state file.
func (w *placesWorld) start() {
	w.fakeSwitch = newFakeSwitchWith(w.t, 4, 1, tenantsConfig()+"state: "+w.dir+"\n", bridgePorts(4), func(f *fakeSwitch) {
		w.fakeSwitch = f
		w.told()
		if w.missing {
			f.control.ports[2].Ifindex = 0
		}
	})
}

func (w *placesWorld) restart() {
	w.end()
	w.start()
}

// told has the kernel's tables say what they have learnt.
func (w *placesWorld) told() {
	switch w.learnt {
	case "home":
		w.spoof(2, 2, 2)
	case "stranger":
		w.spoof(2, 0, 66)
	}
	w.locator.mu.Lock()
	defer w.locator.mu.Unlock()
	if delete(w.locator.err, fakeHost(2)); w.learnt == "" {
		w.locator.err[fakeHost(2)] = errors.New("no neighbour entry")
		w.locator.at[fakeHost(2)] = locate.Location{Hop: fakeHost(2), Links: []int{bridgeIndex}}
	}
}

// learn changes the kernel's tables, of which the switch hears at once.
func (w *placesWorld) learn(what string) {
	w.learnt = what
	w.told()
	at, err := w.locator.Locate(fakeHost(2))
	w.control.do(func() {
		d := w.control.dir
		d.hosts.Answered(d.hosts.Of(fakeHost(2)), at, err, w.control.now())
	})
	w.control.do(func() {}) // what is due has been done
}

// answer has each question to host 2 under a key, if it was sent to where its holder is, answered from there.
func (w *placesWorld) answer(key envelope.KeyID, from dataplane.Origin) {
	w.control.do(func() {
		c := w.control
		var nonces []envelope.Nonce
		asked := c.dir.inquirer.ProofOf(fakeHost(2), key)
		for _, q := range append(c.dir.inquirer.InquiriesOf(fakeHost(2)), asked[:]...) {
			if q.Key == key && q.Origin == from {
				nonces = append(nonces, q.Nonce)
			}
		}
		for _, n := range nonces {
			c.dir.inquirer.Here(from, &envelope.Event{Group: fakeGroup(int(key) - 1), Member: envelope.MemberKey{IP: fakeHost(2)}, Nonce: n})
		}
	})
	w.control.do(func() {})
}

// TestModelOfPlaces: in the group of key 2 the member is at home, or nowhere while its port is missing, whatever
// the holder of key 1, the kernel's tables and restarts do, and it is at home when all is well again. The
// orders have two steps, with GLEAM_MODEL=quick three, with full four.
func TestModelOfPlaces(t *testing.T) {
	length := map[string]int{"quick": 3, "full": 4}[os.Getenv("GLEAM_MODEL")]
	if length == 0 {
		length = 2
	}
	file := stateOfTwoKeys(t)
	total := 1
	for range length {
		total *= len(placesSteps)
	}
	for n := range total {
		var order []int
		for k := n; len(order) < length; k /= len(placesSteps) {
			order = append(order, k%len(placesSteps))
		}
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel() // each waits for its disk
			w := &placesWorld{t: t, dir: t.TempDir(), learnt: "home"}
			if err := os.WriteFile(filepath.Join(w.dir, "groups"), file, 0o600); err != nil {
				t.Fatal(err)
			}
			w.play(order)
		})
	}
}

// play plays one order.
func (w *placesWorld) play(order []int) {
	w.t.Helper()
	w.start()
	var done []string
	for _, n := range order {
		s := &placesSteps[n]
		s.do(w)
		done = append(done, s.name)
		if at := w.placeIn(1, 1); at != homeOfMember && !(w.missing && at == " ") {
			w.t.Fatalf("after %s the member is at %q under key 2", strings.Join(done, ", "), at)
		}
	}
	w.missing, w.learnt = false, "home"
	w.restart()
	w.answer(2, memberOrigin)
	if at := w.placeIn(1, 1); at != homeOfMember {
		w.t.Errorf("after %s, and with all well again, the member is at %q", strings.Join(done, ", "), at)
	}
	w.end()
}

// stateOfTwoKeys returns the state file of a switch with a group of key 1, whose holder has claimed host 2,
// and one of key 2, in which host 2 has said where it is.
func stateOfTwoKeys(t *testing.T) []byte {
	t.Helper()
	dir := t.TempDir()
	f := newBridgedSwitch(t, 4, tenantsConfig()+"state: "+dir+"\n")
	f.claim(t)
	f.enrollUnder(2, 1, 1, 2)
	f.proves(1, 2, f.asked(2, 2, 0), memberOrigin)
	f.proves(1, 2, f.asked(2, 2, 1), memberOrigin)
	f.eventually("the group of the second tenant is there", func() bool {
		var r location.Request
		f.control.do(func() { r = f.control.dir.inquirer.ProofOf(fakeHost(1), 2)[0] })
		f.proves(1, 1, r, r.Origin)
		return f.installed(1)
	})
	f.eventually("the groups are in the file", func() bool { return !f.waits() })
	f.end()
	b, err := os.ReadFile(filepath.Join(dir, "groups"))
	if err != nil {
		t.Fatal(err)
	}
	return b
}
