// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/dataplane"
	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/rocev2"
)

// refusalInterval is the least time between two log lines about envelopes that were
// refused for one reason. Any host that reaches a port can send such envelopes at the
// rate of limits.envelopes_per_port.
const refusalInterval = 10 * time.Second

// refusals thins out the reports of what was refused, or changed nothing.
type refusals struct {
	envelopes  *sampler[refusal]   // refusals by envelope.Drop
	rejected   *sampler[rejection] // rejections by envelope.Reason
	unchanged  *sampler[unchanged] // unchanged registrations by envelopes, and by hand
	unsendable *sampler[unsendable]
}

func newRefusals() refusals {
	return refusals{
		envelopes: newSampler[refusal](int(envelope.NumDrops), refusalInterval), rejected: newSampler[rejection](int(envelope.NumReasons), refusalInterval),
		unchanged: newSampler[unchanged](2, refusalInterval), unsendable: newSampler[unsendable](1, refusalInterval),
	}
}

// refusal is an envelope that had no effect.
type refusal struct {
	reason envelope.Drop
	detail string
	group  netip.Addr // the destination address of the packet
	from   netip.AddrPort
	port   string // the port that it came by
	mac    rocev2.MAC
}

// serveEnvelope passes a datagram to the registrar and executes its output. A management
// datagram, which comes the same way, goes to the connections.
func (c *control) serveEnvelope(d *dataplane.Datagram) {
	if d.IsMAD() {
		c.serveMAD(d)
		return
	}
	c.reportPartial(d)
	c.dir.cameFrom = d.From
	c.registrar.Input(c.now(), d.Src, d.Payload(), &c.out)
	rejected := slices.ContainsFunc(c.out.Events, func(e envelope.Event) bool { return e.Kind == envelope.RegistrationFailed })
	x := refusal{reason: c.out.Drop, detail: c.out.Detail, group: d.Dst.Addr(), from: d.Src, port: c.ports[d.From.Port].Name, mac: d.From.MAC}
	if x.reason == envelope.WrongLocation {
		x.detail += ", who is at " + c.dir.hosts.Text(c.dir.memberAt)
	}
	for i := range c.out.Events {
		if e := &c.out.Events[i]; e.Kind == envelope.MemberHere {
			c.dir.inquirer.Here(d.From, e)
		}
	}
	from := dataplane.Sighting{Origin: d.From, IP: d.Src.Addr()}
	c.departures.asker = requester{ip: d.Src.Addr().Unmap(), from: d.From, ifindex: c.ports[d.From.Port].Ifindex, proved: c.out.Proved}
	d.Release()
	c.sendOutput()
	c.departures.asker = nobody
	c.dir.inquirer.Sighting(from)
	switch {
	case x.reason == envelope.NoDrop || rejected:
	case x.reason == envelope.WrongInstance || x.reason == envelope.DuplicateMsg:
		// Refusals in normal operation are counted and not logged: a master learns the
		// instance by being refused once, and repeats a message until it is answered.
	default:
		if suppressed, report := c.refused.envelopes.add(c.now(), int(x.reason), x); report {
			c.logRefusal(x, suppressed)
		}
	}
}

// logRefusal writes one log line. If the sender gets no authentic answer, the reason is
// added to the journal too.
func (c *control) logRefusal(x refusal, suppressed uint64) {
	c.notify(x.reason == envelope.WrongLocation, "envelope refused", "reason", x.reason.String(), "detail", x.detail,
		"group", x.group, "from", x.from, "port", x.port, "mac", x.mac, "suppressed", suppressed)
	if !x.reason.Unanswered() {
		return
	}
	c.journal.Add(api.Event{
		Kind: api.EventRejected, Group: x.group, Member: x.from.Addr(),
		Reason: fmt.Sprintf("%s: %s (from %s at port %s, without an answer)", x.reason, x.detail, x.from, x.port),
	})
}

// rejection is a registration that was understood and rejected.
type rejection struct {
	group  netip.Addr
	member envelope.MemberKey // the member that is the reason, if one is
	by     envelope.Actor
	why    string // all reasons
	more   string // port and cause, inquiries at the member's location
}

// noteRejection reports a rejection to audit trail, log and journal, once in refusalInterval
// for each reason. Any host with a key can have registrations rejected at the rate of
// limits.envelopes_per_address. Each rejection is counted, and answered.
func (c *control) noteRejection(e *envelope.Event) {
	reason := envelope.Reason(0) // for errors that are no Problem
	var p *envelope.Problem
	if errors.As(e.Err, &p) && p.Reason < envelope.NumReasons {
		reason = p.Reason
	}
	c.count.rejected[reason]++
	x := rejection{group: e.Group, member: e.Member, by: e.By, why: e.Err.Error() + moreText(e), more: c.refusedText(e.Err) + c.unprovenText(e)}
	if suppressed, report := c.refused.rejected.add(c.now(), int(reason), x); report {
		c.logRejection(x, suppressed)
	}
}

func (c *control) logRejection(x rejection, suppressed uint64) {
	j := api.Event{Kind: api.EventRejected, Group: x.group, Member: x.member.IP, QPN: api.QPN(x.member.QPN), Reason: x.why + x.more}
	if x.by.IsValid() {
		j.By = x.by.String()
		c.notify(false, AuditMark, "by", j.By, "group", x.group, "action", "register group", "result", x.why, "suppressed", suppressed)
	}
	c.notify(true, "group rejected", "group", x.group, "error", x.why+x.more, "suppressed", suppressed)
	if suppressed > 0 {
		j.Reason += fmt.Sprintf(" (and %d others for the same reason since the last report)", suppressed)
	}
	c.journal.AddBy(x.by, j)
}

// unchanged is a registration that is identical to the live one.
type unchanged struct {
	group netip.Addr
	epoch uint64
	by    envelope.Actor
}

// noteUnchanged reports a registration that is identical to the live one to audit trail and log,
// once in refusalInterval. Any host with a key can have the switch take such ones at the rate of
// limits.envelopes_per_address. Each one is counted, and answered.
func (c *control) noteUnchanged(e *envelope.Event) {
	c.count.unchanged++
	kind := 0
	if e.By.IsValid() {
		kind = 1 // those of key holders do not hide those of the operator
	}
	x := unchanged{group: e.Group, epoch: e.Epoch, by: e.By}
	if suppressed, report := c.refused.unchanged.add(c.now(), kind, x); report {
		c.logUnchanged(x, suppressed)
	}
}

func (c *control) logUnchanged(x unchanged, suppressed uint64) {
	if x.by.IsValid() {
		c.notify(false, AuditMark, "by", x.by.String(), "group", x.group, "epoch", x.epoch, "action", "register group", "result", "ok, it goes on as it was", "suppressed", suppressed)
	}
	c.notify(false, "group registered again as it is: it goes on", "group", x.group, "epoch", x.epoch, "suppressed", suppressed)
}

// reportPartial tells the operator once per port that hosts behind it leave UDP checksums
// to their device. Such envelopes are accepted: their HMAC covers more than the checksum
// does. Other programs that read raw frames here see wrong checksums.
func (c *control) reportPartial(d *dataplane.Datagram) {
	if p := c.ports[d.From.Port]; d.Partial && !p.partialReported {
		p.partialReported = true
		c.notify(false, "a host behind this port leaves UDP checksums to its interface (checksum offload): its envelopes are accepted and counted as envelope_partial",
			"port", p.Name, "host", d.Src.Addr(), "remedy", "none is needed; ethtool -K INTERFACE tx off at the host makes them complete")
	}
}
