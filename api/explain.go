// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// ExplainPacket is a packet that is put to a copy of a group's state. Fields that are nil or
// empty follow from that state: the PSN is the sender's next one, the address the window's.
type ExplainPacket struct {
	From     netip.Addr // the member that sends it
	Op       string     // the operation, such as write-middle or acknowledge
	Port     string     // the port by which the packet comes; empty: where its sender is
	AckReq   bool
	BECN     bool
	BadICRC  bool    // true: the packet was damaged
	PSN      *uint32 // 24 bits
	QPN      *uint32 // 24 bits: the destination
	Payload  *uint16 // bytes
	VA       *uint64
	RKey     *uint32 // only callers who may change may give one
	DMALen   *uint32
	Syndrome *uint8 // the syndrome of an acknowledgement; nil: 0x1f, an ACK
	MSN      *uint32
}

// numbers are the parameters that are numbers, in the order of the documentation.
func (p *ExplainPacket) numbers() []explainNumber {
	return []explainNumber{
		{"psn", 24, func(v uint64) { p.PSN = new(uint32(v)) }, number(p.PSN)},
		{"qpn", 24, func(v uint64) { p.QPN = new(uint32(v)) }, number(p.QPN)},
		{"payload", 16, func(v uint64) { p.Payload = new(uint16(v)) }, number(p.Payload)},
		{"va", 64, func(v uint64) { p.VA = new(v) }, number(p.VA)},
		{"rkey", 32, func(v uint64) { p.RKey = new(uint32(v)) }, number(p.RKey)},
		{"dma_len", 32, func(v uint64) { p.DMALen = new(uint32(v)) }, number(p.DMALen)},
		{"syndrome", 8, func(v uint64) { p.Syndrome = new(uint8(v)) }, number(p.Syndrome)},
		{"msn", 24, func(v uint64) { p.MSN = new(uint32(v)) }, number(p.MSN)},
	}
}

// explainNumber is a parameter that is a number.
type explainNumber struct {
	name string
	bits int
	set  func(uint64)
	is   *uint64 // nil: it is not set
}

func number[T uint8 | uint16 | uint32 | uint64](p *T) *uint64 {
	if p == nil {
		return nil
	}
	return new(uint64(*p))
}

// flags are the parameters that are true or false.
func (p *ExplainPacket) flags() map[string]*bool {
	return map[string]*bool{"ack_req": &p.AckReq, "becn": &p.BECN, "bad_icrc": &p.BadICRC}
}

// Query returns p as the parameters of a request.
func (p *ExplainPacket) Query() url.Values {
	q := url.Values{"from": {p.From.String()}, "op": {p.Op}}
	if p.Port != "" {
		q.Set("port", p.Port)
	}
	for name, set := range p.flags() {
		if *set {
			q.Set(name, "true")
		}
	}
	for _, n := range p.numbers() {
		if n.is != nil {
			q.Set(n.name, fmt.Sprintf("0x%x", *n.is))
		}
	}
	return q
}

// ParseExplainPacket reads the parameters of a request: numbers are decimal, or hexadecimal
// after 0x. It is as strict as DecodeRegister.
func ParseExplainPacket(q url.Values) (*ExplainPacket, error) {
	p := new(ExplainPacket)
	numbers, flags := p.numbers(), p.flags()
	for name, values := range q {
		if len(values) != 1 {
			return nil, fmt.Errorf("%s is given %d times", name, len(values))
		}
		v := values[0]
		if i := slices.IndexFunc(numbers, func(n explainNumber) bool { return n.name == name }); i >= 0 {
			x, err := strconv.ParseUint(v, 0, numbers[i].bits)
			if err != nil {
				return nil, fmt.Errorf("%s=%q: want a number of at most %d bits, such as 16 or 0x10", name, v, numbers[i].bits)
			}
			numbers[i].set(x)
			continue
		}
		var err error
		switch set := flags[name]; {
		case set != nil:
			if *set, err = strconv.ParseBool(v); err != nil {
				return nil, fmt.Errorf("%s=%q: want true or false", name, v)
			}
		case name == "from":
			if p.From, err = netip.ParseAddr(v); err != nil {
				return nil, fmt.Errorf("from=%q: want the IP address of a member", v)
			}
			p.From = p.From.Unmap()
		case name == "op":
			p.Op = v
		case name == "port":
			p.Port = v
		default:
			return nil, fmt.Errorf("there is no parameter %.40q", name)
		}
	}
	if !p.From.IsValid() || p.Op == "" {
		return nil, fmt.Errorf("from, the address of the packet's sender, and op, its opcode, are needed")
	}
	if _, err := rocev2.ParseOpcode(p.Op); err != nil {
		return nil, err
	}
	if p.Payload != nil && *p.Payload > maxPathMTU {
		return nil, fmt.Errorf("payload=%d: a packet has %d bytes at most", *p.Payload, maxPathMTU)
	}
	return p, nil
}

// maxPathMTU is the largest path MTU of RDMA, in bytes.
const maxPathMTU = 4096

// explainParams are the parameters that ParseExplainPacket reads. Numbers are decimal, or
// hexadecimal after 0x.
var explainParams = []param{
	{"from", "ip", "address of the member that sends the packet"},
	{"op", "opcode", "such as write-middle, send-only, acknowledge or cnp"},
	{"port", "name", "port by which it comes; where its sender is, if it is not given"},
	{"psn", "number", "24 bits; the sender's next one, if it is not given"},
	{"qpn", "number", "destination, 24 bits; the group's, if it is not given"},
	{"payload", "number", "bytes of payload, 4096 at most"},
	{"va", "number", "address of a WRITE, 64 bits; the window's, if it is not given"},
	{"rkey", "number", "R_Key, 32 bits; the window's, if it is not given. Only callers who may change may give one"},
	{"dma_len", "number", "length of a WRITE in bytes, 32 bits"},
	{"syndrome", "number", "of an acknowledgement, 8 bits; 0x1f, if it is not given"},
	{"msn", "number", "of an acknowledgement, 24 bits"},
	{"ack_req", "boolean", "the packet asks for an acknowledgement"},
	{"becn", "boolean", "it has BECN"},
	{"bad_icrc", "boolean", "it was damaged"},
}

// ExplainStep is one fact, with the rules of docs/AGGREGATION.md that it follows from.
type ExplainStep struct {
	Rules []string `json:"rules"`
	Text  string   `json:"text"`
}

// Explanation is what the switch would do to a packet. Nothing has happened.
type Explanation struct {
	Group   netip.Addr      `json:"group"`
	Packet  ExplainedPacket `json:"packet"`
	Verdict string          `json:"verdict"`          // forwarded, answered, held, recorded or dropped
	Reason  string          `json:"reason,omitempty"` // the reason for which the packet is not served, as in Stats; empty: it is served
	Steps   []ExplainStep   `json:"steps"`
	Sent    []ExplainedSend `json:"sent"` // what would leave
	Before  ExplainedState  `json:"before"`
	After   ExplainedState  `json:"after"`
}

// ExplainedPacket is an explained packet with the fields that were not given.
type ExplainedPacket struct {
	From     netip.Addr `json:"from"`
	Port     string     `json:"port,omitempty"`
	Op       string     `json:"op"`
	QPN      QPN        `json:"qpn"`
	PSN      PSN        `json:"psn"`
	AckReq   bool       `json:"ack_req"`
	BECN     bool       `json:"becn"`
	BadICRC  bool       `json:"bad_icrc"`
	Payload  int        `json:"payload"`
	VA       uint64     `json:"va,omitempty"`
	DMALen   uint32     `json:"dma_len,omitempty"`
	Syndrome uint8      `json:"syndrome,omitempty"`
	MSN      uint32     `json:"msn,omitempty"`
}

// ExplainedSend is a packet that would leave the switch, with the fields that it would have.
type ExplainedSend struct {
	Kind     string     `json:"kind"`             // copy, resend (from the store) or feedback
	Member   netip.Addr `json:"member,omitzero"`  // the member that the packet is for
	Switch   string     `json:"switch,omitempty"` // ID of the neighbour that it goes to
	Port     string     `json:"port,omitempty"`
	Lost     string     `json:"lost,omitempty"`      // why it would not leave, as in Stats
	FastPath bool       `json:"fast_path,omitempty"` // XDP would make it
	PSN      PSN        `json:"psn"`
	// The fields below are of what does not come from the store.
	Op       string     `json:"op,omitempty"`
	SrcMAC   string     `json:"src_mac,omitempty"`
	DstMAC   string     `json:"dst_mac,omitempty"`
	VLAN     uint16     `json:"vlan,omitempty"`
	Src      netip.Addr `json:"src,omitzero"`
	Dst      netip.Addr `json:"dst,omitzero"`
	QPN      QPN        `json:"qpn,omitempty"`
	AckReq   bool       `json:"ack_req,omitempty"`
	BECN     bool       `json:"becn,omitempty"`
	VA       uint64     `json:"va,omitempty"`
	Syndrome *uint8     `json:"syndrome,omitempty"`
	MSN      uint32     `json:"msn,omitempty"`
	Bytes    int        `json:"bytes,omitempty"` // bytes of the frame
}

// ExplainedState is what a packet may change, in the source's PSNs.
type ExplainedState struct {
	State   string     `json:"state"` // the state, as in Group
	Source  netip.Addr `json:"source,omitzero"`
	AckPSN  PSN        `json:"ack_psn"`
	NextPSN PSN        `json:"next_psn"`
}

// ACKExplanation is what the next acknowledgement to the source of a group waits for.
type ACKExplanation struct {
	Group netip.Addr     `json:"group"`
	Time  time.Time      `json:"time"`
	Now   ExplainedState `json:"now"`
	Steps []ExplainStep  `json:"steps"`
	Waits []ACKWait      `json:"waits"` // the members that hold the acknowledgement back, one entry each
}

// ACKWait is a member, or the members behind another switch, that the acknowledgement waits for.
type ACKWait struct {
	Members []netip.Addr  `json:"members"`
	Switch  string        `json:"switch,omitempty"` // ID of the neighbour that they are behind
	API     string        `json:"api,omitempty"`    // address and port of its API, if it says that
	Port    string        `json:"port,omitempty"`
	PSN     PSN           `json:"psn"`             // the first one that is not acknowledged
	Lag     int           `json:"lag"`             // packets
	Since   *time.Time    `json:"since,omitempty"` // the time since which the group's ACK stands still, as in Group.StallSeconds; absent: not known
	Seconds float64       `json:"seconds"`         // the time passed since then
	Why     []ExplainStep `json:"reasons"`         // the reasons why the members have not acknowledged
	Ends    []ACKWaitEnd  `json:"ended_by"`        // what ends the wait, or brings its end nearer
}

// ACKWaitEnd is something that ends a wait.
type ACKWaitEnd struct {
	Seconds *float64 `json:"in_seconds,omitempty"` // the time from now; absent: at no certain time
	ExplainStep
}

// Explain puts a packet to a copy of the group's state.
func (c *Client) Explain(ctx context.Context, group netip.Addr, p *ExplainPacket) (*Explanation, error) {
	x := new(Explanation)
	if err := c.call(ctx, "GET", "/v1/groups/"+group.String()+"/explain?"+p.Query().Encode(), nil, x); err != nil {
		return nil, err
	}
	return x, nil
}

// ExplainACK says what the next acknowledgement of a group waits for.
func (c *Client) ExplainACK(ctx context.Context, group netip.Addr) (*ACKExplanation, error) {
	x := new(ACKExplanation)
	if err := c.call(ctx, "GET", "/v1/groups/"+group.String()+"/ack", nil, x); err != nil {
		return nil, err
	}
	return x, nil
}

// Each explanation has a worker copy a group's state. There are at most explainRate in a second,
// after explainBurst at once, for the callers of each role together.
const (
	explainRate  = 10
	explainBurst = 20
)

// explainLimit is the limit of explanations of one role.
type explainLimit struct {
	mu   sync.Mutex
	full time.Time // the time when explainBurst are allowed again
}

func (l *explainLimit) allow(now time.Time) bool {
	const each = time.Second / explainRate
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.full.Before(now) {
		l.full = now
	}
	if l.full.Sub(now) > (explainBurst-1)*each {
		return false
	}
	l.full = l.full.Add(each)
	return true
}

// mayExplain returns an error if the caller has asked for too many explanations, or names an
// R_Key and may not: the answer would say whether it is the right one.
func (h *handler) mayExplain(r *http.Request, rkey bool) error {
	as := owner
	if c := callerOf(r); c != nil {
		as = c.role
	}
	if rkey && as < operator {
		return &statusError{http.StatusForbidden, Error{Reason: ReasonForbidden, Message: "naming an R_Key needs the right to change groups; without one the group's own is used"}}
	}
	if !h.explains[as].allow(time.Now()) {
		return &statusError{http.StatusServiceUnavailable, Error{Reason: ReasonBusy, Message: fmt.Sprintf("more than %d explanations in a second: try again", explainRate)}}
	}
	return nil
}

func (h *handler) explain(r *http.Request, arg string) (any, error) {
	ip, err := parseIP(arg)
	if err != nil {
		return nil, err
	}
	p, err := ParseExplainPacket(r.URL.Query())
	if err != nil {
		return nil, refuse(http.StatusBadRequest, "%s", err)
	}
	if err := h.mayExplain(r, p.RKey != nil); err != nil {
		return nil, err
	}
	return h.backend.Explain(ip, p)
}

func (h *handler) explainACK(r *http.Request, arg string) (any, error) {
	ip, err := parseIP(arg)
	if err != nil {
		return nil, err
	}
	if q := r.URL.Query(); len(q) != 0 {
		return nil, refuse(http.StatusBadRequest, "the path takes no parameters, and %.40q is one", strings.SplitN(q.Encode(), "=", 2)[0])
	}
	if err := h.mayExplain(r, false); err != nil {
		return nil, err
	}
	return h.backend.ExplainACK(ip)
}
