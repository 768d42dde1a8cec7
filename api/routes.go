// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
)

// endpoint answers one method of one path. arg is the path from its first variable to its
// last one: "10.77.254.1/members/10.77.0.2".
type endpoint func(h *handler, r *http.Request, arg string) (any, error)

// route is one method of one path. openapi.json is made of this table.
type route struct {
	method  string
	path    string // the path with {variables}, of one segment each
	summary string
	query   []param
	body    any  // value of the type that is expected; nil: none
	answer  any  // value of the type of the answer; nil: 204 without a body
	lines   bool // a client that accepts Lines gets the elements of the list, a line each
	follow  bool // a client that accepts Lines gets answers as they come, a line each
	stream  bool // the answer is lines, each of that type, whatever the client accepts
	do      endpoint
}

// param is a parameter of a query.
type param struct{ name, format, summary string }

// eventParams are the parameters of a request for events.
var eventParams = []param{
	{"since", "uint64", "number of the last event that is known; 0 for all that are stored"},
	{"wait", "duration", "how long to wait for an event, such as 30s; one minute at most"},
	{"group", "ip", "events of this group alone"},
	{"kind", "list", "kinds of events, with commas between them"},
	{"from", "date-time", "no events from before this time"},
}

var routes = []route{
	{method: "GET", path: "/v1/groups", summary: "Groups, in the order of their addresses: all, or those that the parameters select", query: groupParams, answer: []Group{}, lines: true, do: (*handler).groups},
	{method: "POST", path: "/v1/groups", summary: "Register a group by the numbers of its queue pairs", body: Register{}, do: (*handler).register},
	{method: "PUT", path: "/v1/groups", summary: "As POST", body: Register{}, do: (*handler).register},
	{method: "GET", path: "/v1/groups/{group}", summary: "One group", answer: Group{}, do: (*handler).group},
	{method: "DELETE", path: "/v1/groups/{group}", summary: "Delete a group", do: (*handler).remove},
	{method: "GET", path: "/v1/groups/{group}/explain", summary: "What the switch would do to a packet: it is put to a copy of the group's state", query: explainParams, answer: Explanation{}, do: (*handler).explain},
	{method: "GET", path: "/v1/groups/{group}/ack", summary: "What the next acknowledgement to the group's source waits for", answer: ACKExplanation{}, do: (*handler).explainACK},
	{method: "POST", path: "/v1/groups/{group}/members", summary: "Add a member to a group that was registered by hand", body: AddMember{}, do: (*handler).addMember},
	{method: "PATCH", path: "/v1/groups/{group}/members/{member}", summary: "Confirm that a member has moved, in all its groups", body: MoveMember{}, do: (*handler).moveMember},
	{method: "DELETE", path: "/v1/groups/{group}/members/{member}", summary: "Remove a member from a group that was registered by hand", do: (*handler).removeMember},
	{method: "POST", path: "/v1/created", summary: "Let programs join a group by RDMA-CM", body: CreateGroup{}, do: (*handler).create},
	{method: "GET", path: "/v1/ended", summary: "The last states of groups that are no more, oldest first", answer: []Group{}, lines: true, do: (*handler).gone},
	{method: "GET", path: "/v1/events", summary: "Events after a number. As lines: one Events at once, one for each time that some have occurred, and one each minute without any, without end",
		query: eventParams, answer: Events{}, follow: true, do: (*handler).events},
	{method: "GET", path: "/v1/ports", summary: "All ports", answer: []Port{}, lines: true, do: (*handler).ports},
	{method: "PATCH", path: "/v1/ports/{name}", summary: "Change a port until the daemon ends", body: SetPort{}, do: (*handler).setPort},
	{method: "GET", path: "/v1/topology", summary: "Neighbour switches, and the next hops of members", answer: Topology{}, do: (*handler).topology},
	{method: "GET", path: "/v1/stats", summary: "Totals of the switch", answer: Stats{}, do: (*handler).stats},
	{method: "POST", path: "/v1/reload", summary: "Read the configuration again", body: Reload{}, answer: Reloaded{}, do: (*handler).reload},
	{method: "POST", path: "/v1/trace", summary: "Record packets: the answer is one TraceLine a line for as long as the trace runs", body: Trace{}, answer: TraceLine{}, stream: true, do: (*handler).trace},
	{method: "DELETE", path: "/v1/trace", summary: "End the trace that runs", do: (*handler).stopTrace},
	{method: "GET", path: "/v1/version", summary: "The daemon's version", answer: Version{}, do: (*handler).version},
	{method: "GET", path: "/v1/kernel", summary: "What the kernel has of what gleamd uses, and what gleamd does without", answer: Kernel{}, do: (*handler).kernel},
	{method: "GET", path: "/v1/openapi.json", summary: "This description", answer: json.RawMessage{}, do: (*handler).openapi},
}

// match returns what path has in place of the variables of the route, as an endpoint's arg.
func (x *route) match(path string) (arg string, ok bool) {
	want, got := strings.Split(x.path, "/"), strings.Split(path, "/")
	if len(want) != len(got) {
		return "", false
	}
	first, last := -1, -1
	for i := range want {
		if strings.HasPrefix(want[i], "{") {
			if first < 0 {
				first = i
			}
			last = i
		} else if want[i] != got[i] {
			return "", false
		}
	}
	if first < 0 {
		return "", true
	}
	return strings.Join(got[first:last+1], "/"), true
}

// find returns the route of a request. http.ServeMux is not used, as its answers to
// unknown paths and methods are plain text.
func find(method, path string) (x *route, arg string, err error) {
	if metricsRoute.path == path && metricsRoute.method == method {
		return &metricsRoute, "", nil
	}
	for i := range routes {
		if x = &routes[i]; x.method == method {
			if arg, ok := x.match(path); ok {
				return x, arg, nil
			}
		}
	}
	if allow := methodsOf(path); allow != "" {
		return nil, "", refuse(http.StatusMethodNotAllowed, "%s is not possible on %s; %s is", method, path, allow)
	}
	return nil, "", refuse(http.StatusNotFound, "no such path: %s", path)
}

// methodsOf returns the methods of a path, separated by commas; "" if there is no such path.
func methodsOf(path string) string {
	var methods []string
	for _, m := range []string{"GET", "POST", "PUT", "PATCH", "DELETE"} {
		if slices.ContainsFunc(routes, func(x route) bool { _, ok := x.match(path); return ok && x.method == m }) {
			methods = append(methods, m)
		}
	}
	return strings.Join(methods, ", ")
}
