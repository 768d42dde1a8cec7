// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// Cases of the programs in examples, as processes of their own at the hosts.

const examplePort = "7200"

// example starts a program at a host, under the lab's key or another one. It stands beside this one.
func example(ctx context.Context, in *os.File, h *host, key []byte, words ...string) (*joiner, error) {
	own, err := os.Executable()
	if err != nil {
		return nil, err
	}
	dir := filepath.Dir(own)
	for i, w := range words {
		if w == "weights.py" || w == "log-leader" || w == "log-follower" {
			words[i] = filepath.Join(dir, w)
		}
	}
	// On one machine the exchange does not leave from the members' addresses.
	env := []string{"env", fmt.Sprintf("GLEAM_KEY=%x", key), "OTHER_NETWORK=1", "LD_LIBRARY_PATH=" + dir + ":" + os.Getenv("LD_LIBRARY_PATH")}
	words = append(env[1:], words...)
	if in == nil {
		return start(ctx, h, env[0], words...)
	}
	return startWith(ctx, in, h, env[0], words...)
}

var otherKey = []byte("another key than the lab's one..")

// model is a file of safetensors.
func model() []byte {
	header := `{"embedding":{"dtype":"F32","shape":[1000,500],"data_offsets":[0,2000000]},` +
		`"head.bias":{"dtype":"BF16","shape":[333],"data_offsets":[2000000,2000666]},"__metadata__":{"format":"np"}}`
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	b = append(b, header...)
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000666 {
		b = append(b, byte(r.Uint32()))
	}
	return b
}

// exampleWeights sends a model from one host to three. A host with another key does not join.
func exampleWeights(ctx context.Context, b *bench) error {
	return b.asHosts(5, func(hosts []*host) (err error) {
		file, want := filepath.Join(b.state, "model"), model()
		if err := os.WriteFile(file, want, 0o600); err != nil {
			return err
		}
		var all peers
		defer func() { all.kill() }()
		at := hosts[0].addr4.String()
		add := func(h *host, key []byte, words ...string) {
			j, e := example(ctx, nil, h, key, append([]string{"python3", "weights.py"}, words...)...)
			if err = errors.Join(err, e); e == nil {
				all = append(all, j)
			}
		}
		add(hosts[0], auth.Keys[1], "send", at, examplePort, groupAddr(3, false).String(), "3", file)
		add(hosts[4], otherKey, "receive", hosts[4].addr4.String(), at, examplePort)
		if err != nil {
			return err
		}
		stranger := all[1]
		if err := stranger.ended(); err == nil || !strings.Contains(stranger.out.String(), "has another key than this host under id 1") {
			return fmt.Errorf("a host with another key: %v\n%s\nsender: %s", err, stranger.out.String(), all[0].out.String())
		}
		b.note("another key: %s", strings.TrimSpace(stranger.out.String()))
		all = all[:1]
		for _, h := range hosts[1:4] {
			add(h, auth.Keys[1], "receive", h.addr4.String(), at, examplePort, fmt.Sprintf("%s-%d", file, h.index))
		}
		if err != nil {
			return err
		}
		for i, j := range all {
			if err := j.ended(); err != nil {
				return fmt.Errorf("host %d: %w\n%s\nsender: %s", j.h.index, err, j.out.String(), all[0].out.String())
			}
			b.note("%s", strings.ReplaceAll(strings.TrimSpace(j.out.String()), "\n", "; "))
			if i == 0 {
				continue
			}
			got, err := os.ReadFile(fmt.Sprintf("%s-%d", file, j.h.index))
			if err != nil || !bytes.Equal(got, want) {
				return wrongBytes{fmt.Errorf("host %d has %d bytes, other ones than the sender's %d: %v", j.h.index, len(got), len(want), err)}
			}
			if out := j.out.String(); !strings.Contains(out, "embedding float32 (1000, 500)\nhead.bias uint16 (333,)\n") {
				return fmt.Errorf("host %d has other tensors:\n%s", j.h.index, out)
			}
		}
		return nil
	})
}

// replicated is a log with its leader and followers.
type replicated struct {
	b         *bench
	leader    *joiner
	followers peers
	in        *os.File // the input of the leader
	entries   int
}

func (r *replicated) close() {
	r.in.Close()
	r.followers.kill()
	peers{r.leader}.kill()
}

func (b *bench) leadLog(ctx context.Context, h *host, followers, quorum int) (*replicated, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer read.Close()
	r := &replicated{b: b, in: write}
	r.leader, err = example(ctx, read, h, auth.Keys[1], "log-leader", h.addr4.String(), examplePort, groupAddr(3, false).String(), fmt.Sprint(followers), fmt.Sprint(quorum))
	if err != nil {
		return nil, errors.Join(err, write.Close())
	}
	return r, nil
}

func (r *replicated) follow(ctx context.Context, h *host, key []byte) (*joiner, error) {
	return example(ctx, nil, h, key, "log-follower", h.addr4.String(), r.leader.h.addr4.String(), examplePort)
}

// append appends n entries, and waits until the leader has committed them.
func (r *replicated) append(ctx context.Context, n int) error {
	for range n {
		r.entries++
		if _, err := fmt.Fprintf(r.in, "entry of number %d\n", r.entries); err != nil {
			return err
		}
	}
	return r.leader.prints(ctx, fmt.Sprintf("committed %d\n", r.entries))
}

// applied waits until a follower has printed all entries, and compares them.
func (r *replicated) applied(ctx context.Context, j *joiner) error {
	if err := j.prints(ctx, fmt.Sprintf("\n%d entry of number %d\n", r.entries, r.entries)); err != nil {
		return fmt.Errorf("%w\nleader:\n%s", err, r.leader.out.String())
	}
	got, want := "", ""
	for line := range strings.Lines(j.out.String()) {
		if !strings.HasPrefix(line, "event: ") {
			got += line
		}
	}
	for i := range r.entries {
		want += fmt.Sprintf("%d entry of number %d\n", i+1, i+1)
	}
	if got != want {
		return fmt.Errorf("the log of host %d is not the leader's %d entries:\n%s", j.h.index, r.entries, got)
	}
	return nil
}

// exampleLog replicates a log to three followers with a quorum of two. One is killed and comes
// back without its memory, and one is stopped for a time: entries are committed without them,
// and in the end all have them.
func exampleLog(ctx context.Context, b *bench) error {
	return b.asHosts(5, func(hosts []*host) error {
		r, err := b.leadLog(ctx, hosts[0], 3, 2)
		if err != nil {
			return err
		}
		defer r.close()
		stranger, err := r.follow(ctx, hosts[4], otherKey)
		if err != nil {
			return err
		}
		if err := stranger.ended(); err == nil || !strings.Contains(stranger.out.String(), "the leader refuses this host: ") || !strings.Contains(stranger.out.String(), "another key under this id") {
			return fmt.Errorf("a follower with another key: %v\n%s", err, stranger.out.String())
		}
		b.note("another key: %s", strings.TrimSpace(stranger.out.String()))
		for _, h := range hosts[1:4] {
			j, err := r.follow(ctx, h, auth.Keys[1])
			if err != nil {
				return err
			}
			r.followers = append(r.followers, j)
		}
		all := func(js ...*joiner) (err error) {
			for _, j := range js {
				err = errors.Join(err, r.applied(ctx, j))
			}
			return err
		}
		if err := errors.Join(r.append(ctx, 20), all(r.followers...)); err != nil {
			return err
		}

		// Killed: two of three have the next entries.
		dead := r.followers[2]
		if err := errors.Join(dead.Process.Kill(), dead.ended()); err == nil {
			return errors.New("a process that is killed has ended well")
		}
		if err := errors.Join(r.append(ctx, 20), all(r.followers[:2]...), r.leader.prints(ctx, "event: "), r.leader.prints(ctx, hosts[3].addr4.String())); err != nil {
			return err
		}
		if r.followers[2], err = r.follow(ctx, hosts[3], auth.Keys[1]); err != nil {
			return err
		}
		if err := r.leader.prints(ctx, hosts[3].addr4.String()+", which had 0 entries, has joined"); err != nil {
			return err
		}
		if err := errors.Join(r.append(ctx, 20), all(r.followers...)); err != nil {
			return err
		}

		// Stopped: its receives are used up, and the other two go on.
		slow, before := r.followers[1], r.entries
		if err := slow.Process.Signal(syscall.SIGSTOP); err != nil {
			return err
		}
		err = errors.Join(r.append(ctx, 80), all(r.followers[0], r.followers[2]))
		if strings.Contains(slow.out.String(), fmt.Sprintf("\n%d ", before+1)) {
			err = errors.Join(err, errors.New("a process that is stopped has printed an entry"))
		}
		if err := errors.Join(err, slow.Process.Signal(syscall.SIGCONT), all(slow)); err != nil {
			return err
		}
		b.note("%d entries, 80 of them while a follower of three was stopped; it joined again: %v", r.entries, strings.Contains(r.leader.out.String(), slow.h.addr4.String()+", which had "))
		if err := r.in.Close(); err != nil {
			return err
		}
		for _, j := range append(peers{r.leader}, r.followers...) {
			if err := j.ended(); err != nil {
				return fmt.Errorf("host %d: %w\n%s", j.h.index, err, j.out.String())
			}
		}
		return nil
	})
}

// exampleLogFails has fewer followers left than the quorum: what is not committed is not
// called so.
func exampleLogFails(ctx context.Context, b *bench) error {
	return b.asHosts(3, func(hosts []*host) error {
		r, err := b.leadLog(ctx, hosts[0], 2, 2)
		if err != nil {
			return err
		}
		defer r.close()
		for _, h := range hosts[1:3] {
			j, err := r.follow(ctx, h, auth.Keys[1])
			if err != nil {
				return err
			}
			r.followers = append(r.followers, j)
		}
		if err := errors.Join(r.append(ctx, 5), r.applied(ctx, r.followers[1])); err != nil {
			return err
		}
		dead := r.followers[0]
		if err := errors.Join(dead.Process.Kill(), dead.ended()); err == nil {
			return errors.New("a process that is killed has ended well")
		}
		if _, err := fmt.Fprintln(r.in, "one more"); err != nil {
			return err
		}
		err = r.leader.ended()
		out := r.leader.out.String()
		if err == nil || !strings.Contains(out, "not committed: ") || !strings.Contains(out, hosts[1].addr4.String()) || strings.Contains(out, "committed 6") {
			return fmt.Errorf("the leader, with one follower for a quorum of two: %v\n%s", err, out)
		}
		b.note("%s", strings.ReplaceAll(strings.TrimSpace(out[strings.Index(out, "event: "):]), "\n", "; "))
		return nil
	})
}
