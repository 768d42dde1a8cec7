// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	torchRanks   = 4
	torchLeast   = 2     // updates before the next thing happens
	torchTimeout = "17"  // the queue pairs': 537 ms
	torchDead    = 2000  // ms
	torchRoots   = 6     // updates from each rank in turn
	torchPort    = 29500 // port of torch's own Store
)

// torchJob is the ranks of rank.py, which stands beside this program with module gleam_torch. Each has
// a helper, gleam rank, with queue pairs of its host's RDMA device.
type torchJob struct {
	b     *bench
	hosts []*host
	env   []string
	in    *os.File  // the input of rank 0
	ranks []*joiner // the process that each rank has now
	all   peers     // all processes
}

// torchUpdates runs torch.distributed's backend with verbs: each rank is the source in turn, a receiver is killed with its
// helper and comes back while the others go on, and a source is killed, after which the group is made anew.
func torchUpdates(ctx context.Context, b *bench) error {
	return b.asHosts(torchRanks, func(hosts []*host) (err error) {
		j, err := b.startTorch(ctx, hosts)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, j.close()) }()
		err = j.run(ctx)
		if err != nil {
			for _, p := range j.all {
				err = fmt.Errorf("%w\nhost %d: %s", err, p.h.index, p.out.String())
			}
		}
		return err
	})
}

func (b *bench) startTorch(ctx context.Context, hosts []*host) (*torchJob, error) {
	j := &torchJob{b: b, hosts: hosts, ranks: make([]*joiner, len(hosts))}
	dir, err := os.MkdirTemp(b.state, "torch-")
	if err != nil {
		return nil, err
	}
	key := filepath.Join(dir, "key")
	if err := os.WriteFile(key, fmt.Appendf(nil, "%x\n", auth.Keys[1]), 0o600); err != nil {
		return nil, err
	}
	// On one machine the exchange does not leave from the members' addresses.
	j.env = []string{
		"GLEAM_BACKEND=verbs", "GLEAM_POLICY=evict", "GLEAM_KEY_FILE=" + key, "GLEAM_OTHER_NETWORK=1", "GLEAM_QP_TIMEOUT=" + torchTimeout,
		"GLEAM_DEAD_AFTER=" + strconv.Itoa(torchDead), "GLEAM_WINDOW=4", "GLEAM_SUMMARY=1", "STORE=" + filepath.Join(dir, "store"),
		"MASTER_ADDR=" + hosts[0].addr4.String(), "MASTER_PORT=" + strconv.Itoa(torchPort), "WORLD_SIZE=" + strconv.Itoa(len(hosts)),
	}
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer read.Close()
	j.in = write
	for r := range hosts {
		in := read
		if r > 0 {
			in = nil
		}
		if err := j.start(ctx, r, in); err != nil {
			return nil, errors.Join(err, j.close())
		}
	}
	return j, nil
}

// start starts a rank's process.
func (j *torchJob) start(ctx context.Context, r int, in *os.File, args ...string) error {
	own, err := os.Executable()
	if err != nil {
		return err
	}
	words := slices.Concat(j.env, []string{"RANK=" + strconv.Itoa(r), "GLEAM_ADDRESS=" + j.hosts[r].addr4.String(), "python3", filepath.Join(filepath.Dir(own), "rank.py")}, args)
	var p *joiner
	if in == nil {
		p, err = start(ctx, j.hosts[r], "env", words...)
	} else {
		p, err = startWith(ctx, in, j.hosts[r], "env", words...)
	}
	if err != nil {
		return err
	}
	j.ranks[r] = p
	j.all = append(j.all, p)
	return nil
}

// close ends all processes. A helper ends after its process, and has the host's answers until then.
func (j *torchJob) close() error {
	j.in.Close()
	j.all.kill()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	var errs []error
	for _, p := range j.all {
		for _, w := range said(p, "helper") {
			errs = append(errs, until(ctx, "helper "+string(w[0])+" ends", func() (bool, error) {
				_, err := os.Stat("/proc/" + string(w[0]))
				return err != nil, nil
			}))
		}
	}
	return errors.Join(errs...)
}

// torchUpdate is what a rank has printed about an update.
type torchUpdate struct {
	number  int
	digest  string
	members []int
}

// said returns a process's lines of a kind, without those of text.
func said(p *joiner, kind string) (lines [][]json.RawMessage) {
	for line := range strings.Lines(p.out.String()) {
		var words []json.RawMessage
		if json.Unmarshal([]byte(line), &words) == nil && len(words) > 0 && string(words[0]) == strconv.Quote(kind) {
			lines = append(lines, words[1:])
		}
	}
	return lines
}

func updates(p *joiner) (all []torchUpdate, err error) {
	for _, w := range said(p, "update") {
		var u torchUpdate
		if err := errors.Join(json.Unmarshal(w[0], &u.number), json.Unmarshal(w[1], &u.digest), json.Unmarshal(w[2], &u.members)); err != nil {
			return nil, err
		}
		all = append(all, u)
	}
	return all, nil
}

// more waits until the processes of ranks have more updates, the last ones with these members in the group.
func (j *torchJob) more(ctx context.Context, members []int, ranks ...int) error {
	before := make(map[int]int)
	for _, r := range ranks {
		all, err := updates(j.ranks[r])
		if err != nil {
			return err
		}
		before[r] = len(all)
	}
	for _, r := range ranks {
		p := j.ranks[r]
		err := until(ctx, fmt.Sprintf("rank %d has %d more updates, with ranks %v in the group", r, torchLeast, members), func() (bool, error) {
			select {
			case err := <-p.done:
				p.done <- err
				return false, fmt.Errorf("rank %d has ended: %w", r, err)
			default:
			}
			all, err := updates(p)
			return err == nil && len(all) >= before[r]+torchLeast && slices.Equal(all[len(all)-1].members, members), err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (j *torchJob) run(ctx context.Context) error {
	begin := time.Now()
	all := []int{0, 1, 2, 3}
	for r, p := range j.ranks {
		if err := p.prints(ctx, `["helper", `); err != nil {
			return fmt.Errorf("rank %d: %w", r, err)
		}
	}
	made := time.Since(begin)
	err := until(ctx, "each rank was the source", func() (bool, error) {
		all, err := updates(j.ranks[0])
		return len(all) > torchRoots, err
	})
	if err != nil {
		return err
	}
	if err := j.more(ctx, all, all...); err != nil {
		return err
	}
	killed := time.Now()
	if err := j.killRank(2); err != nil {
		return err
	}
	if err := j.more(ctx, []int{0, 1, 3}, 0, 1, 3); err != nil {
		return err
	}
	evicted := time.Since(killed)
	returned := time.Now()
	if err := j.start(ctx, 2, nil, "back"); err != nil {
		return err
	}
	if err := j.more(ctx, all, 2, 0); err != nil {
		return err
	}
	j.b.note("made after %.1f s; %d updates after a kill %.1f s; back with %d updates %.1f s after its process began", made.Seconds(), torchLeast, evicted.Seconds(), torchLeast, time.Since(returned).Seconds())
	rest := []int{0, 2, 3}
	if _, err := fmt.Fprintln(j.in, "source"); err != nil {
		return err
	}
	if err := j.ranks[1].ended(); err == nil || !strings.Contains(err.Error(), "killed") {
		return fmt.Errorf("rank 1, the source, is to die in its update: %v", err)
	}
	if err := j.more(ctx, rest, rest...); err != nil {
		return err
	}
	if _, err := fmt.Fprintln(j.in, "end"); err != nil {
		return err
	}
	for _, r := range rest {
		if err := j.ranks[r].ended(); err != nil {
			return fmt.Errorf("rank %d: %w", r, err)
		}
	}
	if err := j.compare(); err != nil {
		return err
	}
	return j.b.noGroups(ctx)
}

// killRank kills a rank's process and its helper.
func (j *torchJob) killRank(r int) error {
	p := j.ranks[r]
	pid, err := strconv.Atoi(string(said(p, "helper")[0][0]))
	if err != nil {
		return err
	}
	if err := errors.Join(syscall.Kill(pid, syscall.SIGKILL), p.Process.Kill()); err != nil {
		return err
	}
	if err := p.ended(); err == nil {
		return errors.New("a process that is killed has ended well")
	}
	return nil
}

// compare compares what the ranks have of each update, and what they have heard of each other.
func (j *torchJob) compare() error {
	digests := map[int]string{}
	count := 0
	for _, p := range j.all {
		all, err := updates(p)
		if err != nil {
			return err
		}
		for _, w := range said(p, "caught") {
			var u torchUpdate
			if err := errors.Join(json.Unmarshal(w[0], &u.number), json.Unmarshal(w[1], &u.digest)); err != nil {
				return err
			}
			all = append([]torchUpdate{u}, all...)
			j.b.note("caught up with update %d from rank %s", u.number, w[2])
		}
		for i, u := range all {
			if i > 0 && u.number != all[i-1].number+1 {
				return fmt.Errorf("host %d has update %d after %d", p.h.index, u.number, all[i-1].number)
			}
			if d := digests[u.number]; d != "" && d != u.digest {
				return wrongBytes{fmt.Errorf("host %d has other bytes of update %d", p.h.index, u.number)}
			}
			digests[u.number] = u.digest
		}
		count += len(all)
	}
	for _, r := range []int{0, 2, 3} {
		p := j.ranks[r]
		if lost := said(p, "lost"); len(lost) != 1 || !strings.Contains(string(lost[0][0]), "rank 1, the source") {
			return fmt.Errorf("rank %d was told %s, want once that rank 1, the source, is lost", r, lost)
		}
	}
	j.b.note("torch %s; %d updates, %d at all ranks together, equal", said(j.ranks[0], "torch")[0], len(digests), count)
	return nil
}
