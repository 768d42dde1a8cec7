// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/envelope"
)

// AuditMark is the message of the log lines of the audit trail. Notify is called with it
// and with the keys by, action, result and, for a change of one group, group.
const AuditMark = "audit"

// Audit implements api.Backend: it writes a change by the API to log and journal.
func (e *Engine) Audit(c *api.Change) {
	result := "ok"
	if c.Err != nil {
		result = c.Err.Error()
	}
	kv := []any{"by", c.By, "action", c.Action, "result", result}
	if c.Group.IsValid() {
		kv = append(kv, "group", c.Group)
	}
	e.notify(false, AuditMark, kv...)
	e.control.journal.Add(api.Event{Kind: api.EventAudit, Group: c.Group, By: c.By, Reason: c.Action + ": " + result})
}

// audit logs a change by an authenticated envelope. It returns the key and address for
// the journal's event. Registrations that change nothing are not logged
// by it: logRejection and logUnchanged do so.
func (c *control) audit(e *envelope.Event) (by string) {
	if !e.By.IsValid() {
		return ""
	}
	by = e.By.String()
	kv := []any{"by", by, "group", e.Group, "epoch", e.Epoch}
	action := ""
	switch e.Kind {
	case envelope.Registered:
		action = "register group"
		if g := c.dir.groups[e.Group]; g != nil && g.reg.Base != 0 {
			action = "update group"
		}
		kv = append(kv, "members", e.Total)
	case envelope.MemberJoined:
		action = "add member"
		kv = append(kv, "member", e.Member)
	case envelope.MemberGone:
		action = "remove member"
		if e.EndReason == envelope.Left {
			action = "leave"
		}
		kv = append(kv, "member", e.Member)
	case envelope.GroupGone:
		action = "delete group"
		if e.EndReason != envelope.Deleted {
			action = "end group: " + e.EndReason.String()
		}
	default:
		return by
	}
	c.notify(false, AuditMark, append(kv, "action", action, "result", "ok")...)
	return by
}
