// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/config"
	"github.com/gleam-rdma/gleam/internal/confine/privilege"
)

// userGroup looks up a group of users. One that does not exist is nil.
func userGroup(name string) (*api.UserGroup, error) {
	g, err := user.LookupGroup(name)
	if err != nil {
		return nil, nil
	}
	id, err := strconv.ParseUint(g.Gid, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("group %s has id %q: %w", name, g.Gid, err)
	}
	return &api.UserGroup{Name: name, ID: uint32(id)}, nil
}

// openTo gives the socket to the user that gleamd becomes, and to the group of users who
// may change groups. said are what an operator may not expect of it.
func openTo(ln *api.Listener, id privilege.Identity, c *config.API) (access api.Access, said []string, err error) {
	if access.Change, err = userGroup(c.Group); err != nil {
		return access, nil, err
	}
	gid := -1
	if access.Change == nil {
		said = append(said, fmt.Sprintf("there is no Unix group %s: only root can change groups of members by the socket (groupadd --system %s)", c.Group, c.Group))
	} else {
		gid = int(access.Change.ID)
	}
	if c.ReadGroup != "" {
		if access.Read, err = userGroup(c.ReadGroup); err != nil {
			return access, nil, err
		}
		if access.Read == nil { // nobody, rather than everybody
			return access, nil, fmt.Errorf("api.read_group: there is no Unix group %s (groupadd --system %s)", c.ReadGroup, c.ReadGroup)
		}
	}
	err = ln.Give(id.UID, gid)
	if errors.Is(err, unix.EPERM) && gid >= 0 && os.Geteuid() != 0 {
		said = append(said, fmt.Sprintf("%s is not in group %s, so the socket is not that group's (usermod -aG %s)", id, c.Group, c.Group))
		err = ln.Give(id.UID, -1)
	}
	return access, said, err
}
