// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package cm

// state is the state of a connection (IBTA §12.9.7): at the passive side of one that a host
// has dialled, at the active side of one that the switch has dialled. docs/CM.md has the
// table of transitions.
type state uint8

const (
	requested   state = iota // passive: its REQ waits for the other members
	replied                  // passive: REP sent
	established              // passive: a member
	dialling                 // active: REQ sent
	answered                 // active: its REP waits for the other members and the dialler
	accepted                 // active: RTU sent; a member
	lingering                // its DREQ is answered; it is a member for lingerTime
	leaving                  // DREQ sent
	closed                   // forgotten
	numStates
)

var stateNames = [numStates]string{"requested", "replied", "established", "dialling", "answered", "accepted", "lingering", "leaving", "closed"}

// String returns the name of s, as the API shows it.
func (s state) String() string { return stateNames[s] }

// event is what happens to a connection.
type event uint8

const (
	gotREQ     event = iota // the REQ again
	gotREP                  //
	gotRTU                  //
	gotREJ                  //
	gotAbsence              // REJ 8 of a listener: no program listens there now
	gotMRA                  //
	gotDREQ                 //
	gotDREP                 //
	installed               // the registration with it is in force
	connected               // the dialler is established: listeners may be, too
	ended                   // the connection is no member, or cannot be one: rejected, replaced, evicted, or the group has ended
	expired                 // its timer
	exhausted               // its timer, and nothing may be repeated any more
	numEvents
)

var eventNames = [numEvents]string{"REQ again", "REP", "RTU", "REJ", "REJ 8", "MRA", "DREQ", "DREP", "registered", "dialler established", "membership ends", "timer", "timer, tries used up"}

// String returns the name of e in the table of docs/CM.md.
func (e event) String() string { return eventNames[e] }

// action is what is done at a transition.
type action uint8

const (
	nothing  action = iota
	refuse          // the event has no place in the state: it is counted
	sendMRA         //
	sendREP         // a REP, repeated
	sendREQ         // a REQ, repeated
	sendRTU         // an RTU, repeated, rtuTries times in all
	sendREJ         //
	sendDREP        //
	sendDREQ        // a DREQ, repeated
	postpone        // repeat for the first time after the time of the MRA
	redial          // repeat soon
	numActions
)

var actionNames = [numActions]string{"", "drop", "MRA", "REP", "REQ", "RTU", "REJ", "DREP", "DREQ", "wait", "redial"}

// String returns the name of a in the table of docs/CM.md.
func (a action) String() string { return actionNames[a] }

// step is a transition.
type step struct {
	to state
	do action
}

// next is the transition function.
func (s state) next(e event) step { return transitions[s][e] }

var transitions = [numStates][numEvents]step{
	requested: {
		gotREQ: {requested, sendMRA}, gotREP: {requested, refuse}, gotRTU: {requested, refuse}, gotREJ: {closed, nothing}, gotAbsence: {closed, nothing}, gotMRA: {requested, refuse},
		gotDREQ: {closed, sendDREP}, gotDREP: {requested, refuse},
		installed: {replied, sendREP}, connected: {requested, nothing}, ended: {closed, sendREJ}, expired: {closed, sendREJ}, exhausted: {closed, sendREJ},
	},
	replied: {
		gotREQ: {replied, sendREP}, gotREP: {replied, refuse}, gotRTU: {established, nothing}, gotREJ: {closed, nothing}, gotAbsence: {closed, nothing}, gotMRA: {replied, postpone},
		gotDREQ: {lingering, sendDREP}, gotDREP: {replied, refuse},
		installed: {replied, nothing}, connected: {replied, nothing}, ended: {leaving, sendDREQ}, expired: {replied, sendREP}, exhausted: {leaving, sendDREQ},
	},
	established: {
		gotREQ: {established, sendREP}, gotREP: {established, refuse}, gotRTU: {established, nothing}, gotREJ: {closed, nothing}, gotAbsence: {closed, nothing}, gotMRA: {established, nothing},
		gotDREQ: {lingering, sendDREP}, gotDREP: {established, refuse},
		installed: {established, nothing}, connected: {established, nothing}, ended: {leaving, sendDREQ}, expired: {established, nothing}, exhausted: {established, nothing},
	},
	dialling: {
		gotREQ: {dialling, refuse}, gotREP: {answered, nothing}, gotRTU: {dialling, refuse}, gotREJ: {closed, nothing}, gotAbsence: {dialling, redial}, gotMRA: {dialling, postpone},
		gotDREQ: {closed, sendDREP}, gotDREP: {dialling, refuse},
		installed: {dialling, nothing}, connected: {dialling, nothing}, ended: {closed, sendREJ}, expired: {dialling, sendREQ}, exhausted: {closed, sendREJ},
	},
	answered: {
		gotREQ: {answered, refuse}, gotREP: {answered, sendMRA}, gotRTU: {answered, refuse}, gotREJ: {closed, nothing}, gotAbsence: {closed, nothing}, gotMRA: {answered, nothing},
		gotDREQ: {closed, sendDREP}, gotDREP: {answered, refuse},
		installed: {answered, nothing}, connected: {accepted, sendRTU}, ended: {closed, sendREJ}, expired: {answered, nothing}, exhausted: {answered, nothing},
	},
	accepted: {
		gotREQ: {accepted, refuse}, gotREP: {accepted, sendRTU}, gotRTU: {accepted, refuse}, gotREJ: {closed, nothing}, gotAbsence: {closed, nothing}, gotMRA: {accepted, nothing},
		gotDREQ: {lingering, sendDREP}, gotDREP: {accepted, refuse},
		installed: {accepted, nothing}, connected: {accepted, nothing}, ended: {leaving, sendDREQ}, expired: {accepted, sendRTU}, exhausted: {accepted, nothing},
	},
	lingering: {
		gotREQ: {lingering, refuse}, gotREP: {lingering, refuse}, gotRTU: {lingering, nothing}, gotREJ: {lingering, nothing}, gotAbsence: {lingering, nothing}, gotMRA: {lingering, nothing},
		gotDREQ: {lingering, sendDREP}, gotDREP: {lingering, refuse},
		installed: {lingering, nothing}, connected: {lingering, nothing}, ended: {closed, nothing}, expired: {closed, nothing}, exhausted: {closed, nothing},
	},
	leaving: {
		gotREQ: {leaving, refuse}, gotREP: {leaving, nothing}, gotRTU: {leaving, nothing}, gotREJ: {closed, nothing}, gotAbsence: {closed, nothing}, gotMRA: {leaving, nothing},
		gotDREQ: {closed, sendDREP}, gotDREP: {closed, nothing},
		installed: {leaving, nothing}, connected: {leaving, nothing}, ended: {leaving, nothing}, expired: {leaving, sendDREQ}, exhausted: {closed, nothing},
	},
	closed: {
		gotREQ: {closed, refuse}, gotREP: {closed, refuse}, gotRTU: {closed, refuse}, gotREJ: {closed, refuse}, gotAbsence: {closed, refuse}, gotMRA: {closed, refuse},
		gotDREQ: {closed, sendDREP}, gotDREP: {closed, refuse},
		installed: {closed, nothing}, connected: {closed, nothing}, ended: {closed, nothing}, expired: {closed, nothing}, exhausted: {closed, nothing},
	},
}

// ending returns 1 if a connection in state s is on its way out.
func (s state) ending() int {
	if s == lingering || s == leaving {
		return 1
	}
	return 0
}

// active reports whether a connection in state s counts as a member, or is to be one.
func (s state) active() bool { return s <= lingering }
