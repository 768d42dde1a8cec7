// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package oob

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/envelope"
)

func keys(send envelope.KeyID, bytesOf ...byte) *Identity {
	a := envelope.Auth{Keys: envelope.Keys{}, Send: send}
	for i, b := range bytesOf {
		a.Keys[envelope.KeyID(i+1)] = bytes.Repeat([]byte{b}, envelope.MinKeyLen)
	}
	return must(NewIdentity(a))
}

// TestKeysDiffer has the sides of an exchange disagree about the key: both say
// how, and the listening side's join goes on until its time is over.
func TestKeysDiffer(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		master, member     *Identity
		atMaster, atMember string
	}{
		"another key":        {keyed('k'), keyed('x'), "key 1 is another one there: give all hosts of a group the same", "has another key than this host under id 1"},
		"an id not there":    {keyed('k'), keys(2, 'k', 'l'), "wants to prove that it has key 2, which is not configured here", "key 2 is not configured there: give all hosts of a group the same"},
		"master insecure":    {plain, keyed('k'), "wants the exchange protected by a key, and this host is set insecure", "speaks plain text"},
		"the member has key": {keyed('k'), plain, "speaks plain text", "this host wants the exchange protected by the group's key"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ln := listen(t)
			told := make(chan error, 1)
			go func() { _, err := member1(within(t, 10*time.Second), c.member, ln.Addr().String()); told <- err }()
			_, err := group1(within(t, 3*time.Second), c.master, ln)
			if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), c.atMaster) || !strings.Contains(err.Error(), "refused: ") {
				t.Errorf("the master: %v", err)
			}
			if err := <-told; err == nil || !strings.Contains(err.Error(), c.atMember) {
				t.Errorf("the member: %v", err)
			}
		})
	}
}

// TestKeysOverlap has members under an old and a new key.
func TestKeysOverlap(t *testing.T) {
	master := keys(1, 'o', 'n')
	for send, member := range map[int]*Identity{1: keys(1, 'o'), 2: keys(2, 'o', 'n')} {
		ln := listen(t)
		ctx := within(t, 10*time.Second)
		done := make(chan error, 1)
		go func() { _, err := member1(ctx, member, ln.Addr().String()); done <- err }()
		if _, err := group1(ctx, master, ln); errors.Join(err, <-done) != nil {
			t.Errorf("a member under key %d: %v", send, err)
		}
	}
}

// TestOtherUse has one kind of connection come where another is wanted.
func TestOtherUse(t *testing.T) {
	ln := listen(t)
	go func() { _, _ = group1(within(t, 5*time.Second), keyed('k'), ln) }()
	_, err := keyed('k').Dial(within(t, 5*time.Second), ln.Addr().String(), "gleam-other/1")
	if err == nil || !strings.Contains(err.Error(), "it does not speak gleam-other/1: use the same release on all hosts") {
		t.Errorf("%v", err)
	}
}

// TestOldPeers has releases meet that spoke version 1 in plain text.
func TestOldPeers(t *testing.T) {
	oldHello := strings.Replace(hello, `"v":2`, `"v":1`, 1)
	const protected = `{"v":1,"type":"error","error":"this host wants the exchange protected by the group's key`
	t.Parallel()
	t.Run("old member calls", func(t *testing.T) {
		t.Parallel()
		ln := listen(t)
		go func() { _, _ = group1(within(t, 5*time.Second), keyed('k'), ln) }()
		c := must(net.Dial("tcp", ln.Addr().String()))
		defer c.Close()
		_, _ = io.WriteString(c, oldHello)
		if b, err := io.ReadAll(c); err != nil || !strings.HasPrefix(string(b), protected) {
			t.Errorf("it was told %q, %v", b, err)
		}
	})
	t.Run("old master calls", func(t *testing.T) {
		t.Parallel()
		ln := listen(t)
		go func() { _, _ = keyed('k').Accept(within(t, 8*time.Second), ln, Exchange) }()
		c := must(net.Dial("tcp", ln.Addr().String()))
		defer c.Close()
		if b, err := io.ReadAll(c); err != nil || !strings.HasPrefix(string(b), protected) {
			t.Errorf("it was told %q, %v", b, err)
		}
	})
	t.Run("old member listens", func(t *testing.T) {
		t.Parallel()
		ln := listen(t)
		go func() {
			for {
				c, err := ln.Accept()
				if err != nil {
					return
				}
				_, _ = io.WriteString(c, oldHello)
			}
		}()
		_, err := Call(within(t, 8*time.Second), []string{ln.Addr().String()}, anywhere(keyed('k')))
		var auth *AuthError
		if !errors.As(err, &auth) || !strings.Contains(err.Error(), "speaks plain text: it is of another release") {
			t.Errorf("%v", err)
		}
	})
}

// TestMomentaryImpostor has a host without the key answer at the address for a
// moment: the connection is made all the same.
func TestMomentaryImpostor(t *testing.T) {
	ln := listen(t)
	done := make(chan error, 1)
	go func() {
		for range 3 {
			c, err := ln.Accept()
			if err != nil {
				done <- err
				return
			}
			_, _ = keyed('x').server(context.Background(), c, Exchange, func() error { return nil })
		}
		_, err := group1(within(t, 5*time.Second), keyed('k'), ln)
		done <- err
	}()
	_, err := member1(within(t, 5*time.Second), keyed('k'), ln.Addr().String())
	if err := errors.Join(err, <-done); err != nil {
		t.Error(err)
	}
}

// TestSecondWaits has two masters of other groups, so to say, come at once: Accept
// takes one, and the other one's connection is made when it is called again.
func TestSecondWaits(t *testing.T) {
	ln := listen(t)
	id := keyed('k')
	ctx := within(t, 10*time.Second)
	dialled := make(chan error, 2)
	for range 2 {
		go func() {
			c, err := id.Dial(ctx, ln.Addr().String(), Exchange)
			if err == nil {
				_, err = io.WriteString(c, "x")
			}
			dialled <- err
		}()
	}
	for range 2 {
		c, err := id.Accept(ctx, ln, Exchange)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
			t.Error(err)
		}
	}
	if err := errors.Join(<-dialled, <-dialled); err != nil {
		t.Error(err)
	}
}

func TestNewIdentityRefuses(t *testing.T) {
	short := envelope.Keys{1: make([]byte, envelope.MinKeyLen-1)}
	for name, a := range map[string]envelope.Auth{
		"nothing": {}, "no such key": {Keys: envelope.Keys{1: make([]byte, 32)}, Send: 2}, "short": {Keys: short, Send: 1},
	} {
		if _, err := NewIdentity(a); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}

// TestIdentityIsDerived pins the derivation: every release has to derive the same, which
// docs/EXCHANGE.md has as its example.
func TestIdentityIsDerived(t *testing.T) {
	public := keyed('k').certs[1].PrivateKey.(ed25519.PrivateKey).Public().(ed25519.PublicKey)
	got := fmt.Sprintf("%x", []byte(public))
	if got != "50c29c0503c4c2ee7494d8992106368f24acf7c8056c046c303807142795c7ad" {
		t.Errorf("the public key of a known key is %s", got)
	}
	text, err := os.ReadFile("../../../docs/EXCHANGE.md")
	if err != nil {
		t.Fatal(err)
	}
	if want := "`" + got[:8] + "…" + got[len(got)-8:] + "`"; !strings.Contains(string(text), want) {
		t.Errorf("docs/EXCHANGE.md does not have the public key %s", want)
	}
}
