// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

// ErrorMeaning is what an error that programs see means with a group. The fields have
// Markdown's backquotes: the table of docs/APPLICATIONS.md is made of them.
type ErrorMeaning struct {
	Code     int      `json:"code"` // ibv_wc.status; a negative errno of libgleam
	Name     string   `json:"name"`
	Cause    string   `json:"cause"`
	LookAt   string   `json:"look_at"`
	Counters []string `json:"counters,omitempty"` // counters of gleam stats and gleam group show
	Try      string   `json:"try"`
	Common   bool     `json:"-"` // true: it has a row in docs/APPLICATIONS.md
}

const tryAgainAll = "leave, reset the queue pairs and join again, all members: a reset queue pair has new PSNs, which the switch has to be told"

// localFault is what statuses mean that a group does not differ in.
const localFault = "the queue pair, memory region or work request is at fault: the group does not matter, and the switch has not seen the request"

const tryLocal = "as without a group: libibverbs and the kernel log of the host say more; then reset the queue pair and join again"

// Statuses are the statuses of verbs' completions, in the order of their codes.
var Statuses = []ErrorMeaning{
	{Code: 0, Name: "IBV_WC_SUCCESS", Cause: "no error: the receivers that the policy demands have the message", LookAt: "nothing", Try: "nothing"},
	{Code: 1, Name: "IBV_WC_LOC_LEN_ERR", Cause: "at a receiver: a message longer than the receive that was posted for it. At the sender: " + localFault, LookAt: "the receiver's completion; the sender gets status 9 or 11", Try: "post receives as long as the longest message of any sender of the group"},
	{Code: 2, Name: "IBV_WC_LOC_QP_OP_ERR", Cause: localFault, LookAt: "the attributes of the queue pair", Try: tryLocal},
	{Code: 3, Name: "IBV_WC_LOC_EEC_OP_ERR", Cause: "of reliable datagrams, which no group has", LookAt: "the type of the queue pair: groups need RC", Try: "an RC queue pair"},
	{Code: 4, Name: "IBV_WC_LOC_PROT_ERR", Cause: "the sender's own memory region does not have the bytes, or not this L_Key", LookAt: "the memory region of the work request", Try: tryLocal},
	{Code: 5, Name: "IBV_WC_WR_FLUSH_ERR", Cause: "follows another error on this queue pair", LookAt: "the first completion that failed", Try: "gleam explain status with the status of that first completion", Common: true},
	{Code: 6, Name: "IBV_WC_MW_BIND_ERR", Cause: localFault, LookAt: "the memory window", Try: tryLocal},
	{Code: 7, Name: "IBV_WC_BAD_RESP_ERR", Cause: "a response that fits no request: the switch answers with acknowledgements alone, so something else speaks in the name of GroupIP", LookAt: "a capture at the host: who sends from GroupIP, and whether two queue pairs have one QPN", Try: "a group address that nothing else uses"},
	{Code: 8, Name: "IBV_WC_LOC_ACCESS_ERR", Cause: "at a receiver: a WRITE that its memory region does not allow", LookAt: "the receiver's `qp_access_flags` and MR: REMOTE_WRITE", Try: tryLocal},
	{Code: 9, Name: "IBV_WC_REM_INV_REQ_ERR", Cause: "path MTUs differ; a SEND longer than a member's receive (soft-RoCE answers that by NAK 0x63, status 11); READ or ATOMIC to a group",
		LookAt: "the failed member, or none if the switch refused", Counters: []string{"not_multicastable", "bad_length", "bad_target_message"}, Try: "the same `path_mtu` at all members, longer receives, no READ or ATOMIC; then " + tryAgainAll, Common: true},
	{Code: 10, Name: "IBV_WC_REM_ACCESS_ERR", Cause: "address or R_Key outside of the window; a member's region is gone, or lacks REMOTE_WRITE (MR and `qp_access_flags`)",
		LookAt: "likewise", Counters: []string{"window_violation", "not_sender"}, Try: "WRITEs within the window that `gleam_wait` names, by its R_Key; then " + tryAgainAll, Common: true},
	{Code: 11, Name: "IBV_WC_REM_OP_ERR", Cause: "under `strict`, the switch took a member for dead (silent for `dead_after`, 10 s by default), under the other policies all of them (10 s, or `dead_after` if that is longer); too few members are left for the quorum; the group was deleted, or its lease or a switch of its tree was lost, with data in flight; a member's RNIC failed by itself, or, if it is soft-RoCE, had a receive that was too short. The switch sends NAK 0x63 in the first three cases",
		LookAt: "`gleam events` and `gleam group show` say which member, and which case; its kernel log", Counters: []string{"quorum_lost", "group_failed"}, Try: "repair or leave out the member that the event names; then " + tryAgainAll, Common: true},
	{Code: 12, Name: "IBV_WC_RETRY_EXC_ERR", Cause: "a member is silent (dead, QP destroyed, link down); gleamd is not running; the group is not registered any more; another sender is not done; `timeout` too short; by hand, a wrong sq-psn, rq-psn, QPN or `--qpn`",
		LookAt:   "`AWAITED`; the group's last event; `LIKELY WRONG` under the members: packets seen at PSN x, expected y, or for QPN x in place of y (an event `mismatch` says the same)",
		Counters: []string{"unknown_group", "wrong_qpn", "psn_out_of_range", "not_source", "feedback_ahead", "source_guard", "port_down", "no_location"},
		Try:      "`gleam explain ack GroupIP` while the sender retries names the member and what it lacks; then " + tryAgainAll, Common: true},
	{Code: 13, Name: "IBV_WC_RNR_RETRY_EXC_ERR", Cause: "a member posts no receives, and `rnr_retry` was not 7", LookAt: "`PENDING` rnr", Counters: []string{"turn_over", "no_token"}, Try: "`rnr_retry` 7, and receives at every member before the message comes; then " + tryAgainAll, Common: true},
	{Code: 14, Name: "IBV_WC_LOC_RDD_VIOL_ERR", Cause: "of reliable datagrams, which no group has", LookAt: "the type of the queue pair: groups need RC", Try: "an RC queue pair"},
	{Code: 15, Name: "IBV_WC_REM_INV_RD_REQ_ERR", Cause: "of reliable datagrams, which no group has", LookAt: "the type of the queue pair: groups need RC", Try: "an RC queue pair"},
	{Code: 16, Name: "IBV_WC_REM_ABORT_ERR", Cause: "the responder has aborted: the switch never answers so", LookAt: "a capture at the host: who sends from GroupIP", Try: tryLocal},
	{Code: 17, Name: "IBV_WC_INV_EECN_ERR", Cause: "of reliable datagrams, which no group has", LookAt: "the type of the queue pair: groups need RC", Try: "an RC queue pair"},
	{Code: 18, Name: "IBV_WC_INV_EEC_STATE_ERR", Cause: "of reliable datagrams, which no group has", LookAt: "the type of the queue pair: groups need RC", Try: "an RC queue pair"},
	{Code: 19, Name: "IBV_WC_FATAL_ERR", Cause: "the host's RNIC or its driver has failed", LookAt: "the kernel log of the host", Try: "restart the device; then " + tryAgainAll},
	{Code: 20, Name: "IBV_WC_RESP_TIMEOUT_ERR", Cause: "the host's RNIC or its driver has not answered", LookAt: "the kernel log of the host", Try: tryLocal},
	{Code: 21, Name: "IBV_WC_GENERAL_ERR", Cause: "an error that the driver does not name: the group does not matter", LookAt: "the field `vendor_err`, and the kernel log of the host", Try: tryLocal},
	{Code: 22, Name: "IBV_WC_TM_ERR", Cause: "of tag matching in the RNIC, which groups do not use", LookAt: "the receive queue's type", Try: "a receive queue without tag matching"},
	{Code: 23, Name: "IBV_WC_TM_RNDV_INCOMPLETE", Cause: "of tag matching in the RNIC, which groups do not use: its rendezvous is a READ", LookAt: "the receive queue's type", Try: "a receive queue without tag matching"},
}

// LibraryErrors are what libgleam's functions return, and the ends that its events tell, which have
// no codes.
var LibraryErrors = []ErrorMeaning{
	{Code: -22, Name: "EINVAL", Cause: "an argument, or the state, is not fit for the call", LookAt: "`gleam_error()` names the argument", Try: "gleam(3) has each call's arguments, and docs/APPLICATIONS.md the order of calls"},
	{Code: -110, Name: "ETIMEDOUT", Cause: "the time given is over: members that have not come, or a switch that does not answer", LookAt: "`gleam_error()` says what was missing", Counters: []string{"envelope_in", "unknown_group"},
		Try: "`gleamd --check` at the switch, `ip route get GroupIP` at the host; UDP port 4797 and the master's TCP port must be open"},
	{Code: -61, Name: "ENODATA", Cause: "`gleam_next_event`: the group is over and all events are read", LookAt: "the last event: it has the reason", Try: "`gleam_leave`, and join again if the group shall go on"},
	{Code: -5, Name: "EIO", Cause: "everything else, such as a switch or a member that says no", LookAt: "`gleam_error()` has the reason; `gleam events` at the switch has it too, as `rejected`", Try: "docs/APPLICATIONS.md has the reasons and what to do for each"},
	{Name: "GLEAM_EVICTED", Cause: "the switch has cut a member off: silent, in error, too far behind, or with other numbers than registered", LookAt: "the event's PSN: the member had everything up to there; `gleam events` has the reason", Counters: []string{"feedback_ahead", "source_guard"}, Try: "the member leaves, resets its queue pair and joins again; from Go also by `Group.Update`"},
	{Name: "GLEAM_FAILED", Cause: "a fatal NAK, or a member that cannot be removed under the policy: nothing is acknowledged any more", LookAt: "the event names the member and the PSN; `gleam group show GroupIP --ended`", Counters: []string{"group_failed", "quorum_lost"}, Try: tryAgainAll},
	{Name: "GLEAM_ENDED", Cause: "the group was deleted or replaced, its lease ran out, or this member has left", LookAt: "`gleam events` has who did it", Try: "join again, if that was not meant"},
}

func explainStatusCommand(env *Env) *cobra.Command {
	var out output
	c := &cobra.Command{
		Use:   "status CODE|NAME",
		Short: "What an error of verbs or libgleam means with a group",
		Long: `Says what an error means with a group, which counters to look at, and what to
try: a status of a work completion (12, or IBV_WC_RETRY_EXC_ERR), what a function
of libgleam returns (ETIMEDOUT, or 110), or an event of libgleam (GLEAM_EVICTED).
It asks no daemon.`,
		Example: `  gleam explain status 12
  gleam explain status IBV_WC_REM_ACCESS_ERR
  gleam explain status ETIMEDOUT`,
		Args: oneArg("the status: its number, or its name"),
		ValidArgsFunction: func(*cobra.Command, []string, string) (names []string, _ cobra.ShellCompDirective) {
			for _, m := range allMeanings() {
				names = append(names, m.Name)
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			m, err := meaningOf(args[0])
			if err != nil {
				return err
			}
			return out.print(env.Stdout, m, func(w io.Writer) { writeMeaning(w, m) })
		},
	}
	out.addTo(c)
	return c
}

// oneArg wants exactly one argument.
func oneArg(what string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) != 1 {
			return UsageErrorf("%s takes one argument, %s; %d are given", c.CommandPath(), what, len(args))
		}
		return nil
	}
}

func allMeanings() []ErrorMeaning {
	return append(append([]ErrorMeaning{}, Statuses...), LibraryErrors...)
}

// meaningOf finds an error by its code or name. Names may lack their prefix.
func meaningOf(text string) (*ErrorMeaning, error) {
	if n, err := strconv.ParseInt(text, 0, 32); err == nil {
		for _, m := range allMeanings() {
			if (int(n) == m.Code || int(n) == -m.Code) && (m.Code != 0 || m.Name == "IBV_WC_SUCCESS") {
				return &m, nil
			}
		}
		return nil, fmt.Errorf("no status or error has the number %d: statuses of completions are 0 to %d, errors of libgleam those of errno that docs/APPLICATIONS.md has", n, len(Statuses)-1)
	}
	want := strings.ToUpper(strings.TrimPrefix(text, "-"))
	for _, m := range allMeanings() {
		for _, prefix := range []string{"", "IBV_WC_", "GLEAM_"} {
			if m.Name == prefix+want {
				return &m, nil
			}
		}
	}
	var near []string
	for _, m := range allMeanings() {
		if strings.Contains(m.Name, want) {
			near = append(near, m.Name)
		}
	}
	if len(near) != 0 {
		return nil, fmt.Errorf("no status has the name %s: is it %s?", text, strings.Join(near, " or "))
	}
	return nil, fmt.Errorf("no status has the name %s: want a name such as IBV_WC_RETRY_EXC_ERR or ETIMEDOUT, or a number", text)
}

// plain returns a text without Markdown's backquotes.
func plain(s string) string { return strings.ReplaceAll(s, "`", "") }

func writeMeaning(w io.Writer, m *ErrorMeaning) {
	title := m.Name
	if m.Code != 0 || m.Name == "IBV_WC_SUCCESS" {
		title = fmt.Sprintf("%d %s", m.Code, m.Name)
	}
	wrap(w, "error", 10, title)
	wrap(w, "cause", 10, plain(m.Cause))
	wrap(w, "look at", 10, plain(m.LookAt))
	if len(m.Counters) != 0 {
		wrap(w, "counters", 10, strings.Join(m.Counters, ", ")+" of gleam group show and gleam stats: gleam explain counter NAME")
	}
	wrap(w, "try", 10, plain(m.Try))
}
