// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package cm

import "github.com/gleam-rdma/gleam/test/mutation/mutant"

// Wrong ways to go on after a restart.
var _ = []mutant.Mutant{
	mutant.New("members of a registered group get a DREQ after a restart", "CM", mutant.In((*Manager).Restore,
		"x == nil || reg == nil", "x == nil || reg != nil")),
	mutant.New("sessions that a restart has ended hear nothing", "CM", mutant.In((*Manager).Restore,
		"c.listener == over && c.state != leaving", "c.listener == over && c.state == leaving")),
	mutant.New("a member that was leaving before a restart stays", "CM", mutant.In((*Manager).Restore,
		"case c.state == lingering:", "case c.state == 8:")),
	mutant.New("a REP of before a restart is not repeated", "CM", mutant.In((*Manager).Restore,
		"c.state == replied || c.state == leaving", "c.state == leaving")),
	mutant.New("diallers that wait are not kept", "CM", mutant.In((*Manager).Connections,
		"list = append(list, Kept{State: c.state.String(), Record: c.record, Dialled: c.dialled, ID: c.id, Peer: c.peer.id, GUID: c.guid, PeerGUID: c.peer.guid})",
		"if c.state != 0 {\nlist = append(list, Kept{State: c.state.String(), Record: c.record, Dialled: c.dialled, ID: c.id, Peer: c.peer.id, GUID: c.guid, PeerGUID: c.peer.guid})\n}")),
	mutant.New("no message waits for the file", "CM", mutant.In((*Manager).sendTo,
		"Promises: x.Attribute != MsgReceived && x.Attribute != ConnectReject", "Promises: false")),
	mutant.New("a REQ to a listener does not wait for the file", "CM", mutant.In((*Manager).sendTo,
		"Promises: x.Attribute != MsgReceived && x.Attribute != ConnectReject", "Promises: x.Attribute != MsgReceived && x.Attribute != ConnectReject && x.Attribute != $1", ConnectRequest)),
	mutant.New("a DREP does not wait for the file", "CM", mutant.In((*Manager).sendTo,
		"Promises: x.Attribute != MsgReceived && x.Attribute != ConnectReject", "Promises: x.Attribute != MsgReceived && x.Attribute != ConnectReject && x.Attribute != $1", DisconnectReply)),
	mutant.New("a REP is sent after a restart to a member that is not registered", "CM", mutant.In((*Manager).restored,
		"if i < 0 {", "if i < -1 {")),
	mutant.New("another connection of the same queue pair has its registration", "CM", mutant.In((*Manager).restored,
		"return r.IP == k.Record.IP && r.QPN == k.Record.QPN && r.SQPSN == k.Record.SQPSN && r.RQPSN == k.Record.RQPSN",
		"return r.IP == k.Record.IP && r.QPN == k.Record.QPN")),
	mutant.New("a REQ that is repeated after a restart waits for the end of the last one", "CM", mutant.In((*Manager).restored,
		"!c.dialled && !(waited && x == over)", "!c.dialled")),
}
