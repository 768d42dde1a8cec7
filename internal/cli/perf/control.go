// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package perf

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gleam-rdma/gleam/host/endpoint"
	"github.com/gleam-rdma/gleam/rocev2"
)

// version is the version of the messages below, and use the use of the connections that
// carry them.
const (
	version = 2
	role    = "gleam-perf/2"
)

// Types of message, in the order in which they are sent.
const (
	typeSetup     = "setup"     // sender: description of the test
	typeReady     = "ready"     // receiver: its queue pairs and memory
	typeConnect   = "connect"   // sender: the peers of these queue pairs
	typeConnected = "connected" // receiver; with a group, endpoint.Member then sets up each lane
	typeJoined    = "joined"    // receiver: it is in all groups
	typeRun       = "run"       // sender: one size begins
	typeArmed     = "armed"     // receiver: receives are posted
	typeGo        = "go"        // sender, to the source of a turn: all others are armed
	typeResult    = "result"    // receiver: all messages have arrived
	typeBye       = "bye"       // sender: the test is over
	typePing      = "ping"      // sender, at any time
	typePong      = "pong"
	typeError     = "error" // either: the reason for giving up
)

// message is one line of JSON between sender and receiver, either way.
type message struct {
	Version int           `json:"v"`
	Type    string        `json:"type"`
	Error   string        `json:"error,omitempty"`
	Again   bool          `json:"again,omitempty"` // error: the sender will come again
	Setup   *setupMessage `json:"setup,omitempty"`
	Lanes   []laneState   `json:"lanes,omitempty"`   // ready
	Connect []laneLinks   `json:"connect,omitempty"` // one for each lane
	Run     *run          `json:"run,omitempty"`
	Result  *result       `json:"result,omitempty"`
}

// setupMessage describes the test, and the receiver's part in it.
type setupMessage struct {
	Params    Params `json:"params"`
	Session   string `json:"session"` // random; the App of each group repeats it
	Rank      int    `json:"rank"`    // 1 to Receivers
	Receivers int    `json:"receivers"`
	IPv6      bool   `json:"ipv6"` // the family of the addresses to use
}

// laneState are a receiver's queue pairs for one lane, and its memory.
type laneState struct {
	In     *qpState  `json:"in,omitempty"`     // the queue pair from the predecessor; none with a group
	Out    []qpState `json:"out,omitempty"`    // the queue pairs to the receivers that it forwards to, in order
	Answer *qpState  `json:"answer,omitempty"` // the queue pair to the sender
	Memory *memory   `json:"memory,omitempty"`
}

// qpState is endpoint.QPInfo.
type qpState struct {
	IP    netip.Addr `json:"ip"`
	QPN   rocev2.QPN `json:"qpn"`
	SQPSN rocev2.PSN `json:"sq_psn"`
}

func stateOf(q endpoint.QP) *qpState {
	i := q.Info()
	return &qpState{IP: i.IP, QPN: i.QPN, SQPSN: i.SQPSN}
}

// remote returns the peer for a queue pair at the other end.
func (s *qpState) remote(mtu int) (endpoint.Remote, error) {
	if s == nil || !s.IP.IsValid() || !s.QPN.Valid() || s.SQPSN > rocev2.PSNMask {
		return endpoint.Remote{}, fmt.Errorf("the other side's queue pair %+v makes no sense", s)
	}
	return endpoint.Remote{IP: s.IP, QPN: s.QPN, PathMTU: mtu, RQPSN: s.SQPSN}, nil
}

// memory is the target of WRITEs.
type memory struct {
	VA   uint64 `json:"va"`
	RKey uint32 `json:"rkey"`
}

// String leaves out the R_Key.
func (m memory) String() string { return fmt.Sprintf("0x%x", m.VA) }

// laneLinks are the peers of a receiver's queue pairs of one lane.
type laneLinks struct {
	In     *qpState  `json:"in,omitempty"`
	Out    []outLink `json:"out,omitempty"`
	Answer *qpState  `json:"answer,omitempty"`
}

type outLink struct {
	QP     qpState `json:"qp"`
	Memory *memory `json:"memory,omitempty"`
}

// run describes the messages of one size.
type run struct {
	Size       int `json:"size"`
	Iterations int `json:"iterations"`       // messages of each lane; 0: until the message marked as the last
	Turn       int `json:"turn,omitempty"`   // Rotate: the number of the turn, from 1
	Source     int `json:"source,omitempty"` // Rotate: the rank of its source
}

// result is a receiver's measurement of a run.
type result struct {
	Messages int     `json:"messages"` // messages of all lanes
	Counted  int     `json:"counted"`  // messages of these that arrived within Seconds
	Seconds  float64 `json:"seconds"`  // the time from the first message to the last
	Peak     float64 `json:"peak"`     // messages a second in the best stretch; 0: not known
}

// app is the App of a group's exchange.
type app struct {
	Session string `json:"session"`
	Lane    int    `json:"lane"`
	Rank    int    `json:"rank"`
}

// errClosed is the error for a connection that ended without a message.
var errClosed = errors.New("closed the connection: has it been stopped?")

// errAgain is the error of a test that begins anew, as the switch has started again and does not know its
// groups any more.
var errAgain = errors.New("the test begins anew")

// errEvicted is the error of a receiver that the switch has removed under --dead-after.
var errEvicted = errors.New("the test goes on without this receiver")

// maxLine bounds a message in bytes: 64 lanes with 64 queue pairs take less.
const maxLine = 1 << 20

// control is one end of the connection between sender and receiver. A goroutine of its
// own reads; any goroutine may send.
type control struct {
	peer string // the peer in messages: "receiver 10.77.0.2"
	conn net.Conn
	in   chan message
	err  error // the reason why in is closed

	end func(error) // called with err

	mu       sync.Mutex // one message at a time
	lastPong chan struct{}
}

// newControl takes ownership of conn. end gets the reason for the connection's end, also
// after close.
func newControl(conn net.Conn, role string, end func(error)) *control {
	c := &control{
		peer: role + " " + conn.RemoteAddr().String(), conn: conn, end: end,
		in: make(chan message, 16), lastPong: make(chan struct{}, 1),
	}
	go c.read()
	return c
}

// read passes on messages until the connection ends, or the peer gives up.
func (c *control) read() {
	defer func() {
		close(c.in)
		c.end(c.err)
	}()
	lines := bufio.NewScanner(c.conn)
	lines.Buffer(make([]byte, 0, 4096), maxLine)
	for lines.Scan() {
		var m message
		switch err := json.Unmarshal(lines.Bytes(), &m); {
		case err != nil:
			c.err = fmt.Errorf("%s sent something that is not gleam perf's: %.40q", c.peer, lines.Bytes())
		case m.Type == typeError && m.Again:
			c.err = fmt.Errorf("%s: %s: %w", c.peer, strings.TrimSuffix(m.Error, ": "+errAgain.Error()), errAgain)
		case m.Type == typeError: // the same in every version
			c.err = fmt.Errorf("%s gave up: %s", c.peer, m.Error)
		case m.Version != version:
			c.err = fmt.Errorf("%s speaks version %d of gleam perf, this is version %d: use the same release on all hosts", c.peer, m.Version, version)
		case m.Type == typePing:
			_ = c.send(message{Type: typePong}) // the next Scan reports a broken connection
			continue
		case m.Type == typePong:
			select {
			case c.lastPong <- struct{}{}:
			default:
			}
			continue
		}
		if c.err != nil {
			return
		}
		c.in <- m
	}
	if err := lines.Err(); err != nil {
		c.err = fmt.Errorf("%s %w (%w)", c.peer, errClosed, err)
	} else {
		c.err = fmt.Errorf("%s %w", c.peer, errClosed)
	}
}

// writeTimeout bounds a write: messages are short.
const writeTimeout = 5 * time.Second

func (c *control) send(m message) error {
	m.Version = version
	b, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("to %s: %w", c.peer, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	_ = c.conn.SetWriteDeadline(time.Now().Add(writeTimeout))
	if _, err := c.conn.Write(append(b, '\n')); err != nil {
		return fmt.Errorf("to %s: send %s: %w", c.peer, m.Type, err)
	}
	return nil
}

// receive waits for a message of one of the types wants.
func (c *control) receive(ctx context.Context, wants ...string) (message, error) {
	var m message
	ok := true
	select {
	case m, ok = <-c.in:
	default:
		select {
		case m, ok = <-c.in:
		case <-ctx.Done():
			select {
			case m, ok = <-c.in: // messages that came before the end count
			default:
				return m, fmt.Errorf("waiting for %s from %s: %w", strings.Join(wants, " or "), c.peer, context.Cause(ctx))
			}
		}
	}
	if !ok {
		return m, c.err
	}
	if !slices.Contains(wants, m.Type) {
		return m, fmt.Errorf("%s sent %.40q where %s was due", c.peer, m.Type, strings.Join(wants, " or "))
	}
	return m, nil
}

// alive reports whether the peer's process answers within the given time.
func (c *control) alive(patience time.Duration) bool {
	select {
	case <-c.lastPong:
	default:
	}
	if c.send(message{Type: typePing}) != nil {
		return false
	}
	t := time.NewTimer(patience)
	defer t.Stop()
	select {
	case <-c.lastPong:
		return true
	case <-t.C:
		return false
	}
}

// fail sends the peer the reason for giving up, and closes the connection.
func (c *control) fail(err error) {
	if errors.Is(err, errEvicted) { // the sender has heard of it from the switch, and goes on with the other receivers
		c.close()
		return
	}
	_ = c.send(message{Type: typeError, Error: err.Error(), Again: errors.Is(err, errAgain)}) // the peer may be gone: nothing is lost
	c.close()
}

// close ends the connection and its goroutine.
func (c *control) close() {
	_ = c.conn.Close()
	for range c.in { // until read has ended
	}
}
