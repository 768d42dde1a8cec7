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

	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/host/endpoint/oob"
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// DefaultVirtualQPN is the virtual QPN of groups that set none.
const DefaultVirtualQPN = mcast.DefaultQPN

// EventKind is the kind of an Event.
type EventKind uint8

// Events of a group.
const (
	Joined       EventKind = iota + 1 // master: all members have confirmed; member: the switch has registered this member
	MemberLeft                        // master: Member left, or was removed
	Evicted                           // the switch evicted Member; at a member: itself
	Failed                            // the group has failed: a fatal NAK, a switch was lost, or the registration was; Err has details
	Ended                             // the group was deleted, replaced, or its lease ended; or this host left
	MemberJoined                      // master: a member joined later, by Add or Update, or returned
	Stalled                           // source and master: nothing has been acknowledged for a second; Member is waited for, and lacks PSN
	Resumed                           // source and master: completions come again; Member was waited for
)

var eventNames = map[EventKind]string{Joined: "joined", MemberLeft: "member left", Evicted: "evicted", Failed: "failed", Ended: "ended", MemberJoined: "member joined", Stalled: "stalled", Resumed: "resumed"}

// String returns the kind in words.
func (k EventKind) String() string { return eventNames[k] }

// Event is a change of a group.
type Event struct {
	Kind   EventKind
	Member netip.Addr         // MemberLeft, MemberJoined, Evicted, Stalled, Resumed: the member; Failed: the member that caused it
	QPN    rocev2.QPN         // the number of Member's queue pair
	PSN    rocev2.PSN         // Evicted: the member acknowledged all data up to this PSN, in the source's numbering; Failed: the PSN of the fatal NAK to the source
	Code   rocev2.Syndrome    // Evicted, Failed: the syndrome of a fatal NAK, or another cause; see Cause
	Reason envelope.EndReason // MemberLeft, Evicted, Failed, Ended
	Err    error              // Failed, if there are details
}

// Cause returns in words the meaning of Code: the cause of an eviction or failure.
func (e Event) Cause() string { return envelope.Cause(e.Code) }

// eventSlots is the number of events that may wait for a reader.
const eventSlots = 256

// GroupInfo describes a group as its members see it.
type GroupInfo struct {
	IP      netip.Addr // GroupIP
	QPN     rocev2.QPN // the virtual QPN
	PathMTU int        // bytes
	Members int        // members when it was registered, the master included
	// Window is the address range of WRITEs to the group: from Base on, under RKey. The
	// switch translates it to every member's own memory. Zero if the group has none.
	Window mcast.Window
	// TargetKey, if not 0, is the R_Key of WRITEs to the targets of the last target
	// message: see Group.TargetMessageWR.
	TargetKey uint32
	App       json.RawMessage // data from the master, for the application
}

// String describes the group without its R_Keys.
func (i GroupInfo) String() string {
	return fmt.Sprintf("group %s QPN 0x%x, path MTU %d, %d members, window %v", i.IP, uint32(i.QPN), i.PathMTU, i.Members, i.Window)
}

// GoString is String: %#v must not print an R_Key either.
func (i GroupInfo) GoString() string { return i.String() }

// Group is this host's membership in a group. Its methods may be called from any
// goroutine.
type Group struct {
	info    GroupInfo
	qp      QP
	ownQP   bool // made by the join: Close closes it
	host    *Host
	ownHost bool
	peers   []oob.ConnInfo // master: the other members; with mu held

	updating     chan struct{} // master: holds one token; its holder may change the members
	updated      chan error    // master: the outcome of an update
	readyTimeout time.Duration // master
	otherNetwork bool          // master: the exchange has a network of its own

	driver *driver          // master only
	master *envelope.Master // guarded by driver

	events    chan Event
	endedCh   chan struct{} // closed by the first event that ends the group
	once      sync.Once
	lastEvent Event // the event that ended the group; valid after endedCh is closed

	registered chan struct{} // master: closed when all have confirmed
	failed     chan error    // master: the registration's failure
	left       chan error    // member: outcome of Leave

	mu      sync.Mutex
	closed  bool
	removed map[netip.Addr]chan error // master: outcomes of Remove, by address
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

// Peers returns, at the master, the other members' descriptions of themselves, in the
// order of their arrival, without members that have left; nil at a member.
func (g *Group) Peers() []oob.ConnInfo {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.peers)
}

// Events returns a channel of the group's events. If no reader takes them, new events
// replace the oldest. The channel is never closed: Ended, Failed, and Evicted at a
// member, are last.
func (g *Group) Events() <-chan Event { return g.events }

// Over returns a channel that is closed when the group has ended, whatever the cause.
func (g *Group) Over() <-chan struct{} { return g.endedCh }

// report queues an event. Callers hold a driver's mutex, so calls do not overlap.
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

// endCause returns the cause of the group's end, after it.
func (g *Group) endCause() error {
	e := g.lastEvent
	s := e.Reason.String()
	if e.Reason == envelope.NotEnded {
		s = e.Kind.String()
	}
	if e.Reason == envelope.Evicted || e.Reason == envelope.Failed {
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

// memberEvent handles events of this host's membership.
func (g *Group) memberEvent(e envelope.Event) {
	switch e.Kind {
	case envelope.Registered:
		if g.master == nil {
			g.report(Event{Kind: Joined}, false)
		}
	case envelope.Stalled, envelope.Resumed:
		if g.master == nil { // the master machine hears it too
			g.delayed(e)
		}
	case envelope.LeaveFailed:
		g.outcome(e.Err)
	case envelope.GroupGone:
		if e.EndReason == envelope.Left {
			g.outcome(nil)
		}
		if g.master == nil { // the master machine reports more
			g.ended(e)
		}
	}
}

// delayed reports that the group stalls, or goes on.
func (g *Group) delayed(e envelope.Event) {
	kind := Stalled
	if e.Kind == envelope.Resumed {
		kind = Resumed
	}
	g.report(Event{Kind: kind, Member: e.Member.IP, QPN: e.Member.QPN, PSN: e.PSN}, false)
}

func (g *Group) outcome(err error) {
	select {
	case g.left <- err:
	default:
	}
}

// ended reports the end of the group, or of this host's membership.
func (g *Group) ended(e envelope.Event) {
	kind := Ended
	switch e.EndReason {
	case envelope.Failed:
		kind = Failed
	case envelope.SwitchLost:
		kind, e.Member = Failed, envelope.MemberKey{}
	case envelope.Evicted:
		kind = Evicted
	}
	g.report(Event{Kind: kind, Member: e.Member.IP, QPN: e.Member.QPN, PSN: e.PSN, Code: e.Code, Reason: e.EndReason, Err: e.Err}, true)
}

// masterEvent handles events of the registration.
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
		g.memberGone(e.Member)
		g.report(Event{Kind: kind, Member: e.Member.IP, QPN: e.Member.QPN, PSN: e.PSN, Code: e.Code, Reason: e.EndReason}, false)
	case envelope.Stalled, envelope.Resumed:
		g.delayed(e)
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

// Leave removes this host from the group and waits until the switch has confirmed it; at
// the master it deletes the group. After the end of the group it does nothing.
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
		err := g.giveUpCause(ctx)
		if f := (*envelope.Failure)(nil); errors.As(err, &f) {
			return err // the request and the group are in it
		}
		return fmt.Errorf("delete group %s: %w", g.info.IP, err)
	}
}

// giveUpCause returns the reason why ctx ended, with what the registration, or the
// request about it, was waiting for.
func (g *Group) giveUpCause(ctx context.Context) error {
	err := context.Cause(ctx)
	g.driver.call(func(now time.Duration, _ *envelope.Output) {
		select { // the machine's own error may just have come
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

// closeTimeout bounds Close's wait for the switch's confirmation. Without it, the lease
// ends the group.
const closeTimeout = 2 * time.Second

// Close leaves the group if it has not ended (see Leave), and then destroys the queue
// pair and host that were made for it. Calling it again does nothing.
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

// release frees all resources of the group.
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
