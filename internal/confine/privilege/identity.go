// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package privilege says as which user a process of gleamd runs, and which privileges it needs to
// start. gleamd keeps to it, and gleam doctor looks at it.
package privilege

import (
	"fmt"
	"os"
	"os/user"
	"strconv"

	"github.com/gleam-rdma/gleam/config"
)

// systemUser is whom gleamd becomes where the configuration names nobody.
const systemUser = "gleam"

// Users without a name: the range from which systemd takes its dynamic ones
// (systemd.io/UIDS-GIDS), so no distribution gives these to people or packages.
const (
	FirstNameless = 61797
	lastNameless  = 65519
)

// Identity is the user that gleamd runs as once it has its ports.
type Identity struct {
	UID, GID int
	name     string // "" if the user has none
}

func (i Identity) String() string {
	if i.name == "" {
		return fmt.Sprintf("uid %d", i.UID)
	}
	return fmt.Sprintf("user %s (uid %d)", i.name, i.UID)
}

// accounts is the machine's database of users.
type accounts struct {
	byName func(string) (*user.User, error)
	byID   func(string) (*user.User, error)
}

// Identify finds the user that the configuration names by want, for a process of this machine
// that runs as uid and gid.
func Identify(want string, uid, gid int) (Identity, error) {
	return accounts{user.Lookup, user.LookupId}.identify(want, uid, gid)
}

// identify finds the user that want names: by name, by number, or for auto the user
// gleam, else one without a name. A process that is not root keeps its
// user, which is an error if want is another one.
func (a accounts) identify(want string, uid, gid int) (Identity, error) {
	id, err := a.wanted(want, uid, gid)
	switch {
	case err != nil:
		return id, err
	case id.UID == 0 || id.GID == 0:
		return id, fmt.Errorf("user: %s is root, or of root's group: name another user", want)
	case uid != 0 && id.UID != uid:
		return id, fmt.Errorf("user: gleamd is started as uid %d and cannot become %s: start it as root, or leave out the key user", uid, id)
	}
	return id, nil
}

func (a accounts) wanted(want string, uid, gid int) (Identity, error) {
	if want == config.UserAuto {
		if uid != 0 {
			return a.named(uid, gid), nil
		}
		if u, err := a.byName(systemUser); err == nil {
			return numbers(u)
		}
		return a.nameless()
	}
	u, err := a.byName(want)
	if err == nil {
		return numbers(u)
	}
	n, notNumber := strconv.ParseUint(want, 10, 31)
	if notNumber != nil {
		return Identity{}, fmt.Errorf("user: there is no user %s (%w): useradd --system --user-group --no-create-home --shell /usr/sbin/nologin %s", want, err, want)
	}
	if u, err := a.byID(want); err == nil {
		return numbers(u)
	}
	return Identity{UID: int(n), GID: int(n)}, nil
}

// named looks up the name of a process's user, if there is one.
func (a accounts) named(uid, gid int) Identity {
	id := Identity{UID: uid, GID: gid}
	if u, err := a.byID(strconv.Itoa(uid)); err == nil {
		id.name = u.Username
	}
	return id
}

// nameless is the first user of its range that nobody has.
func (a accounts) nameless() (Identity, error) {
	for n := FirstNameless; n <= lastNameless; n++ {
		if _, err := a.byID(strconv.Itoa(n)); err == nil {
			continue
		}
		if _, err := os.Lstat(fmt.Sprintf("/run/systemd/dynamic-uid/%d", n)); err == nil {
			continue // a service with DynamicUser has it
		}
		return Identity{UID: n, GID: n}, nil
	}
	return Identity{}, fmt.Errorf("user: there is neither a user %s nor a free uid from %d to %d: useradd --system --user-group %s", systemUser, FirstNameless, lastNameless, systemUser)
}

func numbers(u *user.User) (Identity, error) {
	uid, err := strconv.Atoi(u.Uid)
	if err != nil {
		return Identity{}, fmt.Errorf("user: %s has uid %q: %w", u.Username, u.Uid, err)
	}
	gid, err := strconv.Atoi(u.Gid)
	if err != nil {
		return Identity{}, fmt.Errorf("user: %s has gid %q: %w", u.Username, u.Gid, err)
	}
	return Identity{UID: uid, GID: gid, name: u.Username}, nil
}
