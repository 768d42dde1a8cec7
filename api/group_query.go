// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
)

// GroupQuery selects groups. The zero value selects all.
type GroupQuery struct {
	After  netip.Addr // the address before the first group, in the order of addresses
	Limit  int        // the most groups, the first ones; 0: all
	Member netip.Addr // a host that is a member of them
	Key    uint16     // the id of the key that they belong to; 0: any, or none
	State  string     // their state; "": any
}

// groupStates are the values of Group.State.
var groupStates = []string{"idle", "running", "failed"}

// groupParams are the parameters of a request for groups.
var groupParams = []param{
	{"after", "ip", "the address before the first group, in the order of addresses"},
	{"limit", "uint64", "the most groups in the answer, the first ones; 0: all"},
	{"member", "ip", "groups of this member"},
	{"key", "uint64", "groups that belong to the key with this id"},
	{"state", "list", "groups in this state: idle, running or failed"},
}

// Selects reports whether q selects g, but for Limit.
func (q *GroupQuery) Selects(g *Group) bool {
	return q.After.Less(g.IP) && (q.Key == 0 || q.Key == g.Key) && (q.State == "" || q.State == g.State) &&
		(!q.Member.IsValid() || slices.ContainsFunc(g.Members, func(m Member) bool { return m.IP == q.Member }))
}

// values are q as the parameters of a request.
func (q *GroupQuery) values() url.Values {
	v := url.Values{}
	for name, ip := range map[string]netip.Addr{"after": q.After, "member": q.Member} {
		if ip.IsValid() {
			v.Set(name, ip.String())
		}
	}
	for name, n := range map[string]int{"limit": q.Limit, "key": int(q.Key)} {
		if n != 0 {
			v.Set(name, strconv.Itoa(n))
		}
	}
	if q.State != "" {
		v.Set("state", q.State)
	}
	return v
}

// parseGroupQuery reads the parameters of a request for groups.
func parseGroupQuery(r *http.Request) (q GroupQuery, err error) {
	for name, values := range r.URL.Query() {
		if len(values) > 1 {
			return q, refuse(http.StatusBadRequest, "%s is given %d times: want it once", name, len(values))
		}
		var n uint64
		switch v := values[0]; name {
		case "after":
			q.After, err = parseIP(v)
		case "member":
			q.Member, err = parseIP(v)
		case "limit":
			if n, err = strconv.ParseUint(v, 10, 31); err != nil {
				return q, refuse(http.StatusBadRequest, "limit=%.40q: not a number of groups", v)
			}
			q.Limit = int(n)
		case "key":
			if n, err = strconv.ParseUint(v, 10, 16); err != nil || n == 0 {
				return q, refuse(http.StatusBadRequest, "key=%.40q: not the id of a key, 1 to 65535", v)
			}
			q.Key = uint16(n)
		case "state":
			if q.State = v; !slices.Contains(groupStates, v) {
				return q, refuse(http.StatusBadRequest, "state=%.40q: want idle, running or failed", v)
			}
		default:
			return q, refuse(http.StatusBadRequest, "%.40q: no such parameter; there are after, limit, member, key and state", name)
		}
		if err != nil {
			return q, err
		}
	}
	return q, nil
}
