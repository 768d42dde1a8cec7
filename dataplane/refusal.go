// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/rocev2"
)

// refusalInterval is the least time between two log lines about envelopes that were
// refused for one reason. Any host that reaches a port can send such envelopes at the
// rate of limits.envelopes_per_port.
const refusalInterval = 10 * time.Second

// refusal is an envelope that had no effect.
type refusal struct {
	reason envelope.Drop
	detail string
	group  netip.Addr // the destination address of the packet
	from   netip.AddrPort
	port   string // the port that it came by
	mac    rocev2.MAC
}

// serveEnvelope passes a datagram to the registrar and executes its output.
func (c *control) serveEnvelope(d *datagram) {
	c.reportPartial(d)
	c.dir.cameFrom = d.origin()
	c.registrar.Input(c.now(), d.src, d.payload(), &c.out)
	said := slices.ContainsFunc(c.out.Events, func(e envelope.Event) bool { return e.Kind == envelope.RegistrationFailed })
	x := refusal{reason: c.out.Drop, detail: c.out.Detail, group: d.dst.Addr(), from: d.src, port: c.firstWorker.ports[d.port].name, mac: d.mac}
	if x.reason == envelope.WrongPlace {
		x.detail += ", who is at " + c.dir.locationText(c.dir.memberAt)
	}
	for i := range c.out.Events {
		if e := &c.out.Events[i]; e.Kind == envelope.MemberHere {
			c.handleHere(d, e)
		}
	}
	from := sighting{d.origin(), d.src.Addr()}
	c.answersPort = d.port
	d.release()
	c.sendOutput()
	c.answersPort = -1
	c.handleSighting(from)
	switch {
	case x.reason == envelope.NoDrop || said:
	case x.reason == envelope.WrongInstance || x.reason == envelope.DuplicateMsg:
		// Refusals in normal operation are counted and not logged: a master learns the
		// instance by being refused once, and repeats a message until it is answered.
	default:
		if suppressed, report := c.refusals.add(c.now(), int(x.reason), x); report {
			c.logRefusal(x, suppressed)
		}
	}
}

// logRefusal writes one log line. If the sender gets no authentic answer, the reason is
// added to the journal too.
func (c *control) logRefusal(x refusal, suppressed uint64) {
	c.notify(x.reason == envelope.WrongPlace, "envelope refused", "reason", x.reason.String(), "detail", x.detail,
		"group", x.group, "from", x.from, "port", x.port, "mac", x.mac, "suppressed", suppressed)
	if !x.reason.Unanswered() {
		return
	}
	c.journal.add(api.Event{
		Kind: api.EventRejected, Group: x.group, Member: x.from.Addr(),
		Reason: fmt.Sprintf("%s: %s (from %s at port %s, without an answer)", x.reason, x.detail, x.from, x.port),
	})
}

// rejection is a registration that was understood and rejected.
type rejection struct {
	group netip.Addr
	err   error
}

// sayRejected logs a rejection, once in refusalInterval for each reason. Any host with a
// key can have registrations rejected at the rate of limits.envelopes_per_address.
func (c *control) sayRejected(e *envelope.Event) {
	reason := envelope.Reason(0) // for errors that are no Problem
	var p *envelope.Problem
	if errors.As(e.Err, &p) && p.Reason < envelope.NumReasons {
		reason = p.Reason
	}
	if suppressed, report := c.rejected.add(c.now(), int(reason), rejection{e.Group, e.Err}); report {
		c.tellRejected(rejection{e.Group, e.Err}, suppressed)
	}
}

func (c *control) tellRejected(x rejection, suppressed uint64) {
	c.notify(true, "group rejected", "group", x.group, "error", x.err, "suppressed", suppressed)
}
