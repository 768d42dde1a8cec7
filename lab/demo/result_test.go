// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/gleam-rdma/gleam/host/endpoint"
	"github.com/gleam-rdma/gleam/internal/cli"
	"github.com/gleam-rdma/gleam/lab/testbed"
)

func example() *Result {
	return &Result{
		OK: true, PayloadBytes: 1000, SHA256: strings.Repeat("ab", 32), Op: "write", MessageSize: 500, PathMTU: 1024,
		Members: 3, Group: "10.77.254.1", Seconds: 0.5, Messages: 2, SenderLinkBytes: 1080, UnicastSenderLinkBytes: 2160,
		Receivers: []Receiver{
			{Name: "h2", IP: "10.77.0.2", OK: true, Bytes: 1000, SHA256: strings.Repeat("ab", 32), Seconds: 0.5, Goodput: 2_000_000},
			{Name: "h3", IP: "10.77.0.3", OK: true, Bytes: 1000, SHA256: strings.Repeat("ab", 32), Seconds: 0.5, Goodput: 2_000_000},
		},
		Switch:  Switch{Rx: 2, Copies: 4, FeedbackIn: 4, FeedbackOut: 2, Drops: map[string]uint64{"feedback_stale": 3, "duplicate_data": 1}},
		Unicast: Unicast{OK: true, Seconds: 0.9},
	}
}

func TestTable(t *testing.T) {
	var b bytes.Buffer
	if err := example().writeTable(&b); err != nil {
		t.Fatal(err)
	}
	const want = `
RECEIVER  ADDRESS    BYTES  SHA-256            SAME  GOODPUT
h2        10.77.0.2  1000   abababababababab…  yes   2.0 MB/s
h3        10.77.0.3  1000   abababababababab…  yes   2.0 MB/s

switch         data in 2         copies out 4      feedback in 4  feedback out 2
not forwarded  duplicate_data 1  feedback_stale 3  

SENDER'S LINK  BYTES  OF PAYLOAD  SECONDS
one group      1080   1.08x       0.50
2 unicasts     2160   2.16x       0.90

ok: 2 receivers have the sender's bytes (2 messages, one completion each)
`
	if b.String() != want {
		t.Errorf("the table is\n%s\nwant\n%s", b.String(), want)
	}
}

// The names that scripts rely on.
func TestJSON(t *testing.T) {
	var b bytes.Buffer
	if err := cli.WriteJSON(&b, example()); err != nil {
		t.Fatal(err)
	}
	var got struct {
		OK        *bool `json:"ok"`
		Receivers []struct {
			Name    *string  `json:"name"`
			OK      *bool    `json:"ok"`
			Bytes   *int64   `json:"bytes"`
			Seconds *float64 `json:"seconds"`
		} `json:"receivers"`
		Sender  *int64 `json:"sender_link_bytes"`
		Unicast *int64 `json:"unicast_sender_link_bytes"`
		Payload *int64 `json:"payload_bytes"`
		Switch  *struct {
			Rx          *uint64           `json:"rx"`
			Copies      *uint64           `json:"copies"`
			FeedbackIn  *uint64           `json:"feedback_in"`
			FeedbackOut *uint64           `json:"feedback_out"`
			Drops       map[string]uint64 `json:"drops"`
		} `json:"switch"`
	}
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	switch {
	case got.OK == nil || !*got.OK, len(got.Receivers) != 2, got.Sender == nil || *got.Sender != 1080,
		got.Unicast == nil || *got.Unicast != 2160, got.Payload == nil || *got.Payload != 1000, got.Switch == nil:
		t.Fatalf("fields are missing in\n%s", b.String())
	}
	for _, v := range got.Receivers {
		if v.Name == nil || v.OK == nil || v.Bytes == nil || v.Seconds == nil {
			t.Errorf("a receiver's fields are missing in\n%s", b.String())
		}
	}
	s := got.Switch
	if s.Rx == nil || s.Copies == nil || s.FeedbackIn == nil || s.FeedbackOut == nil || s.Drops["feedback_stale"] != 3 {
		t.Errorf("the switch's fields are missing in\n%s", b.String())
	}
}

// A receiver with other bytes is shown, and makes the command fail, in any
// format.
func TestDifferingBytesAreAFailure(t *testing.T) {
	for _, format := range []string{"table", "json", "yaml"} {
		for _, ok := range []bool{true, false} {
			res := example()
			res.OK, res.Receivers[1].OK = ok, ok
			var out, say bytes.Buffer
			var o cli.Output
			o.AddTo(new(cobra.Command))
			if err := o.Set(format); err != nil {
				t.Fatal(err)
			}
			err := report(&cli.Env{Stdout: &out, Stderr: &say}, &progress{w: &say}, res, &o)
			if (err == nil) != ok {
				t.Errorf("%s, ok %v: %v", format, ok, err)
			}
			if format == "table" && strings.Contains(out.String(), "NO") == ok || format == "table" && strings.Contains(out.String(), "FAILED") == ok {
				t.Errorf("ok %v:\n%s", ok, out.String())
			}
		}
	}
}

// receiver judges by the bytes, not by reports of the switch or the sender.
func TestReceiverIsJudgedByItsBytes(t *testing.T) {
	source := []byte("what was sent")
	r := &run{plan: testbed.Messages{Op: endpoint.Write, Len: int64(len(source)), Message: 100}}
	for have, ok := range map[string]bool{"what was sent": true, "what was sett": false, "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00": false} {
		v := r.receiver(&host{Host: &testbed.Host{}, mem: []byte(have)}, &receiveQueue{}, 1, source, digest(source))
		if v.OK != ok || (v.Bytes == int64(len(source))) != ok {
			t.Errorf("%q: %+v", have, v)
		}
	}
}
