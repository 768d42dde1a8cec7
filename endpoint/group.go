// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/gleam-rdma/gleam/endpoint/oob"
	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// DefaultVirtualQPN is the virtual QPN of groups that name none.
const DefaultVirtualQPN = mcast.DefaultQPN

// EventKind is the kind of an Event.
type EventKind uint8

// Events of a group.
const (
	Joined       EventKind = iota + 1 // all members have confirmed (master), or the switch knows us (member)
	MemberLeft                        // master: a member left by itself, or was removed; Member says which
	Evicted                           // a member was cut off by the switch; to a member: it itself
	Failed                            // the group is dead: a fatal NAK, or the registration was lost; Err says more
	Ended                             // the group was deleted, replaced, or its lease ran out; or we left
	MemberJoined                      // master: a member joined later, by Add or Update, or came back
)

var eventNames = map[EventKind]string{Joined: "joined", MemberLeft: "member left", Evicted: "evicted", Failed: "failed", Ended: "ended", MemberJoined: "member joined"}

// String returns the kind in words.
func (k EventKind) String() string { return eventNames[k] }

// Event is something that happened to a group.
type Event struct {
	Kind   EventKind
	Member netip.Addr         // MemberLeft, MemberJoined, Evicted: who; Failed: because of whom
	PSN    rocev2.PSN         // Evicted: the member had everything up to here, in the source's numbering; Failed: where the source got the fatal NAK
	Code   rocev2.Syndrome    // Evicted, Failed: a fatal NAK's syndrome, or another cause; see Cause
	Why    envelope.EndReason // MemberLeft, Evicted, Failed, Ended
	Err    error              // Failed, if there is more to say
}

// Cause says in words what Code is the number of: why a member was evicted, or
// how the group failed.
func (e Event) Cause() string { return envelope.Cause(e.Code) }

// eventSlots is how many events wait for a reader.
const eventSlots = 256

// GroupInfo describes a group as its members see it.
type GroupInfo struct {
	IP      netip.Addr // GroupIP
	QPN     rocev2.QPN // the virtual QPN
	PathMTU int        // bytes
	Members int        // when it was registered, with the master
	// Window is what WRITEs address: Base and up, under RKey. The switch
	// translates to every member's own memory. Zero if the group has none.
	Window mcast.Window
	// TargetKey, if not 0, is the R_Key under which WRITEs go where the last
	// update message said: see Group.TargetMessageWR.
	TargetKey uint32
	App       json.RawMessage // the master's, for the application
}

// String describes the group without its R_Keys.
func (i GroupInfo) String() string {
	return fmt.Sprintf("group %s QPN 0x%x, path MTU %d, %d members, window %v", i.IP, uint32(i.QPN), i.PathMTU, i.Members, i.Window)
}

// GoString is String: %#v must not print an R_Key either.
func (i GroupInfo) GoString() string { return i.String() }

// Group is a group that this host is in. Its methods may be called from any
// goroutine.
type Group struct {
	info    GroupInfo
	qp      QP
	ownQP   bool // made by us: Close closes it
	host    *Host
	ownHost bool
	peers   []oob.ConnInfo // master: the others; with mu held

	updating     chan struct{} // master: holds one token; whoever has it may update the members
	updated      chan error    // master: the outcome of an update
	readyTimeout time.Duration // master
	otherNetwork bool          // master: the exchange has a network of its own

	driver *driver          // master only
	master *envelope.Master // in drv's hands

	events    chan Event
	endedCh   chan struct{} // closed by the first event that ends the group
	once      sync.Once
	lastEvent Event // that event; read after over

	registered chan struct{} // master: closed when all have confirmed
	failed     chan error    // master: the registration's failure
	left       chan error    // member: outcome of Leave

	mu      sync.Mutex
	closed  bool
	removed map[netip.Addr]chan error // master: outcomes of Remove
}

func newGroup() *Group {
	return &Group{
		events: make(chan Event, eventSlots), endedCh: make(chan struct{}),
		registered: make(chan struct{}), failed: make(chan error, 1), left: make(chan error, 1),
		updating: make(chan struct{}, 1), updated: make(chan error, 1), removed: make(map[netip.Addr]chan error),
	}
}

// Info describes the group.
func (g *Group) Info() GroupInfo { return g.info }

// QP returns the queue pair that is connected to the group.
func (g *Group) QP() QP { return g.qp }

// Peers returns, at the master, the other members as they described
// themselves, in the order in which they came, without those that have gone; nil
// at a member.
func (g *Group) Peers() []oob.ConnInfo {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.peers)
}

// Events returns what happens to the group. If nobody reads, the oldest events
// give way to new ones. The channel is never closed: Ended, Failed, and Evicted
// at a member, are last.
func (g *Group) Events() <-chan Event { return g.events }

// Over returns a channel that is closed when the group has ended, for whatever
// reason.
func (g *Group) Over() <-chan struct{} { return g.endedCh }

// report queues an event. Callers hold a driver's mutex: one at a time.
func (g *Group) report(e Event, final bool) {
	for {
		select {
		case g.events <- e:
			if final {
				g.once.Do(func() { g.lastEvent = e; close(g.endedCh) })
			}
			return
		default:
		}
		select {
		case <-g.events:
		default:
		}
	}
}

// endCause says why the group has ended, once it has.
func (g *Group) endCause() error {
	e := g.lastEvent
	s := e.Why.String()
	if e.Why == envelope.NotEnded {
		s = e.Kind.String()
	}
	if e.Why == envelope.Evicted || e.Why == envelope.Failed {
		s += ", " + e.Cause()
	}
	if e.Member.IsValid() {
		s += ", " + e.Member.String()
	}
	if e.Err != nil {
		return fmt.Errorf("the group has ended: %s: %w", s, e.Err)
	}
	return errors.New("the group has ended: " + s)
}

// memberEvent takes events of our own membership.
func (g *Group) memberEvent(e envelope.Event) {
	switch e.Kind {
	case envelope.Registered:
		if g.master == nil {
			g.report(Event{Kind: Joined}, false)
		}
	case envelope.LeaveFailed:
		g.outcome(e.Err)
	case envelope.GroupGone:
		if e.EndReason == envelope.Left {
			g.outcome(nil)
		}
		if g.master == nil { // the master machine tells more
			g.ended(e)
		}
	}
}

func (g *Group) outcome(err error) {
	select {
	case g.left <- err:
	default:
	}
}

// ended reports the end of the group, or of our part in it.
func (g *Group) ended(e envelope.Event) {
	kind := Ended
	switch e.EndReason {
	case envelope.Failed:
		kind = Failed
	case envelope.Evicted:
		kind = Evicted
	}
	g.report(Event{Kind: kind, Member: e.Member.IP, PSN: e.PSN, Code: e.Code, Why: e.EndReason, Err: e.Err}, true)
}

// masterEvent takes events of the registration.
func (g *Group) masterEvent(e envelope.Event) {
	switch e.Kind {
	case envelope.Registered:
		g.report(Event{Kind: Joined}, false)
		close(g.registered)
	case envelope.RegistrationFailed:
		select {
		case g.failed <- e.Err:
		default:
		}
		g.report(Event{Kind: Failed, Err: e.Err}, true)
	case envelope.MemberGone:
		kind := MemberLeft
		if e.EndReason == envelope.Evicted {
			kind = Evicted
		}
		g.memberGone(e.Member.IP)
		g.report(Event{Kind: kind, Member: e.Member.IP, PSN: e.PSN, Code: e.Code, Why: e.EndReason}, false)
	case envelope.Updated:
		g.updateOutcome(nil)
	case envelope.UpdateFailed:
		g.updateOutcome(e.Err)
	case envelope.LeaveFailed:
		g.removeOutcome(e.Member.IP, e.Err)
	case envelope.GroupGone:
		g.ended(e)
	}
}

// Leave takes this host out of the group and waits until the switch has
// confirmed it; at the master it deletes the group. A group that is over needs
// no leaving.
func (g *Group) Leave(ctx context.Context) error {
	select {
	case <-g.endedCh:
		return nil
	default:
	}
	if g.master != nil {
		return g.delete(ctx)
	}
	if err := g.host.leave(g.info.IP); err != nil {
		return err
	}
	select {
	case err := <-g.left:
		return err
	case <-g.endedCh:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("leave group %s: no answer from the switch: %w", g.info.IP, context.Cause(ctx))
	}
}

func (g *Group) delete(ctx context.Context) error {
	g.driver.call(g.master.Delete)
	select {
	case <-g.endedCh:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("delete group %s: %w", g.info.IP, g.reportGivenUp(ctx))
	}
}

// reportGivenUp says why ctx ended, and what the registration, or the request about it,
// was waiting for: that tells what to do about it.
func (g *Group) reportGivenUp(ctx context.Context) error {
	err := context.Cause(ctx)
	g.driver.call(func(now time.Duration, _ *envelope.Output) {
		select { // the machine's own word may just have come
		case e := <-g.failed:
			err = fmt.Errorf("%w (%w)", e, err)
		default:
			if f := g.master.Unfinished(now); f != nil {
				err = fmt.Errorf("%w (%w)", f, err)
			}
		}
	})
	return err
}

// closeTimeout is how long Close waits for the switch to confirm. If it does
// not, the lease ends the group.
const closeTimeout = 2 * time.Second

// Close leaves the group if it is not over (see Leave), and then destroys the
// queue pair and host that were made for it. Calling it again does nothing.
func (g *Group) Close() error {
	g.mu.Lock()
	if g.closed {
		g.mu.Unlock()
		return nil
	}
	g.closed = true
	g.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	return errors.Join(g.Leave(ctx), g.release())
}

// release lets go of all that the group holds.
func (g *Group) release() error {
	var errs []error
	if g.driver != nil {
		errs = append(errs, g.driver.close())
	}
	if g.host != nil {
		g.host.forget(g.info.IP)
		if g.ownHost {
			errs = append(errs, g.host.Close())
		}
	}
	if g.ownQP && g.qp != nil {
		errs = append(errs, g.qp.Close())
	}
	return errors.Join(errs...)
}
