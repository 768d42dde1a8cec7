// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/config"
	"github.com/gleam-rdma/gleam/dataplane"
	"github.com/gleam-rdma/gleam/envelope/hello"
	"github.com/gleam-rdma/gleam/internal/control/statefile"
)

// changes are the methods of Engine that change something, run it, or watch over it. Each other one reads.
var changes = []string{
	"AddMember", "Audit", "Close", "CreateGroup", "Delete", "MoveMember", "Progress", "Reconfigure", "Register", "RemoveMember",
	"Run", "SetLooks", "SetPort", "StopTrace", "Trace",
}

// A request that reads changes nothing: no field of the control plane, no record of the journal, no
// byte of the state file. What it shows is in the journal all the same: the control loop takes
// up the outcomes and the neighbours before.
func TestReadsChangeNothing(t *testing.T) {
	packet := &api.ExplainPacket{From: fakeHost(0), Op: "SEND_ONLY"}
	reads := map[string]func(*fakeSwitch) error{
		"Groups":        func(f *fakeSwitch) error { _, err := f.Groups(nil); return err },
		"Group":         func(f *fakeSwitch) error { _, err := f.Group(fakeGroup(0)); return err },
		"EndedGroups":   func(f *fakeSwitch) error { _, err := f.EndedGroups(); return err },
		"BusiestGroups": func(f *fakeSwitch) error { _, _, err := f.BusiestGroups(9); return err },
		"Events":        func(f *fakeSwitch) error { _, err := f.Events(ended(), 0); return err },
		"Ports":         func(f *fakeSwitch) error { _, err := f.Ports(); return err },
		"Topology":      func(f *fakeSwitch) error { _, err := f.Topology(); return err },
		"Explain":       func(f *fakeSwitch) error { _, err := f.Explain(fakeGroup(0), packet); return err },
		"ExplainACK":    func(f *fakeSwitch) error { _, err := f.ExplainACK(fakeGroup(1)); return err },
		"Stats":         func(f *fakeSwitch) error { _, err := f.Stats(); return err },
		"Kernel":        func(f *fakeSwitch) error { _, err := f.Kernel(); return err },
	}
	engine := reflect.TypeFor[*Engine]()
	for i := range engine.NumMethod() {
		if name := engine.Method(i).Name; (reads[name] == nil) != slices.Contains(changes, name) {
			t.Errorf("%s is a request that changes something, or one that reads: one of the lists of this test has it", name)
		}
	}
	f := newFakeSwitchWith(t, 4, 1, "psn_probe: 0s\nstate: "+t.TempDir()+"\n", func(f *fakeSwitch) { f.kernel = new(api.Kernel) })
	f.register(0, 3, 0x100, "evict")
	f.register(1, 3, 0x200, "strict")
	h, _ := f.addSwitches(3)
	file := f.control.keeper
	f.control.do(func() { // the test is the loop
		h.set(gatewayAt(3, 0x20, 8))
		f.feed(0, evicts(0)...)
		f.feed(1, evicts(0)...)
		for _, name := range slices.Sorted(maps.Keys(reads)) {
			read := func() error { return reads[name](f) }
			if err := errors.Join(f.serveReadings(read), file.Flush()); err != nil { // what is new has been taken up then
				t.Errorf("%s: %v", name, err)
			}
			writes, was := file.Status().Writes, snapshot(f.Engine)
			if err := f.serveReadings(read); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if d := difference(was, snapshot(f.Engine)); d != "" {
				t.Errorf("%s changes %s", name, d)
			}
			if err := file.Flush(); err != nil || file.Status().Writes != writes {
				t.Errorf("%s has the state file written: %v", name, err)
			}
		}
	})
}

// Nothing is shown of a group or of a neighbour that the journal does not have.
func TestWhatIsReadIsInTheJournal(t *testing.T) {
	f := newFakeSwitch(t, 4, 1)
	f.register(0, 3, 0x100, "evict")
	f.register(1, 3, 0x200, "strict")
	h, _ := f.addSwitches(3)
	f.control.do(func() {
		h.set(gatewayAt(3, 0x20, 8))
		f.feed(0, evicts(0)...)
		f.feed(1, evicts(0)...)
		if err := f.serveReadings(func() error {
			for n, kind := range []string{api.EventEvicted, api.EventFailed} {
				g, err := f.Group(fakeGroup(n))
				if err != nil || len(g.Former) != 1-n || g.State != []string{"running", "failed"}[n] || (g.Failure != "") != (n == 1) || len(f.events(n, kind)) != 1 {
					return fmt.Errorf("group %d: %+v, %v, events %+v", n, g, err, f.events(n, kind))
				}
			}
			top, err := f.Topology()
			told := slices.ContainsFunc(f.control.journal.After(ended(), 0).Events, func(e api.Event) bool { return e.Kind == api.EventNeighbour })
			if err != nil || len(top.Neighbours) != 1 || top.Neighbours[0].Switch != hello.SwitchID(0x20).String() || !told {
				return fmt.Errorf("%+v, %v, in the journal %v", top, err, told)
			}
			return nil
		}); err != nil {
			t.Error(err)
		}
	})
}

// serveReadings has the requests of call served, which all have to read. It runs in place of the
// control loop.
func (f *fakeSwitch) serveReadings(call func() error) error {
	result := make(chan error)
	go func() { result <- call() }()
	for {
		select {
		case r := <-f.control.reads:
			read := r.read
			r.read = func(list []groupStatus) {
				was := snapshot(f.control)
				if read(list); difference(was, snapshot(f.control)) != "" {
					f.t.Errorf("a read changes %s", difference(was, snapshot(f.control)))
				}
			}
			f.control.serveReading(r)
		case change := <-f.control.closures:
			f.t.Error("a request that reads is served as one that changes something: use read")
			change()
		case err := <-result:
			return err
		}
	}
}

// snapshot returns the fields that x leads to, by path. Left out are the data plane, what has
// goroutines of its own, locks, and the ranking, by which readers choose groups.
func snapshot(x any) map[string]string {
	fields, seen := make(map[string]string), make(map[any]bool)
	var walk func(path string, v reflect.Value)
	walk = func(path string, v reflect.Value) {
		switch v.Type() {
		case reflect.TypeFor[*dataplane.Plane](), reflect.TypeFor[dataplane.Group](), reflect.TypeFor[*statefile.File](), reflect.TypeFor[*config.Config](), reflect.TypeFor[ranking](), reflect.TypeFor[sync.Mutex]():
			return
		}
		switch v.Kind() {
		case reflect.Chan, reflect.Func, reflect.UnsafePointer:
		case reflect.Interface:
			if !v.IsNil() {
				walk(path, v.Elem())
			}
		case reflect.Pointer:
			at := [2]any{v.Type(), v.Pointer()}
			if fields[path] = fmt.Sprint(v.IsNil()); v.IsNil() || seen[at] {
				return
			}
			seen[at] = true
			walk(path, v.Elem())
		case reflect.Struct:
			for i := range v.NumField() {
				walk(path+"."+v.Type().Field(i).Name, v.Field(i))
			}
		case reflect.Slice, reflect.Array:
			if v.Type().Elem().Kind() <= reflect.Complex128 {
				fields[path] = fmt.Sprint(v)
				return
			}
			fields[path+".len"] = fmt.Sprint(v.Len())
			for i := range v.Len() {
				walk(fmt.Sprintf("%s[%d]", path, i), v.Index(i))
			}
		case reflect.Map:
			fields[path+".len"] = fmt.Sprint(v.Len())
			entries := make(map[string]reflect.Value)
			for i := v.MapRange(); i.Next(); {
				entries[fmt.Sprint(i.Key())] = i.Value()
			}
			for _, k := range slices.Sorted(maps.Keys(entries)) {
				walk(path+"["+k+"]", entries[k])
			}
		default:
			fields[path] = fmt.Sprint(v)
		}
	}
	walk("", reflect.ValueOf(x))
	return fields
}

// difference names the fields in which two snapshots differ; "" if they do not.
func difference(was, is map[string]string) string {
	var paths []string
	for path := range is {
		if v, ok := was[path]; !ok || v != is[path] {
			paths = append(paths, path)
		}
	}
	for path := range was {
		if _, ok := is[path]; !ok {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	return strings.Join(paths[:min(5, len(paths))], ", ")
}
