// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// UserGroup is a group of users of this machine.
type UserGroup struct {
	Name string
	ID   uint32
}

// Access has the rights of users. Root and the user that the server runs as may change
// groups and ports. The zero value lets every other user read that reaches the socket.
type Access struct {
	Change *UserGroup // its members may change, too
	Read   *UserGroup // only its members, and users who may change, may read

	Operators []string // the names of certificates whose holders may change
}

// Peer is the process at the other end of a connection, as it was when it connected,
// from the kernel; or the holder of a certificate.
type Peer struct {
	UID, GID uint32
	PID      int32
	Groups   []uint32 // supplementary ones

	Name  string    // the certificate's name; "": the connection is one of the Unix socket
	From  string    // the address that its holder connects from
	Until time.Time // the certificate's end
}

// user is the name by which the peer has its share.
func (p *Peer) user() string {
	if p.Name != "" {
		return fmt.Sprintf("certificate %q", p.Name)
	}
	return fmt.Sprintf("uid %d", p.UID)
}

func (p *Peer) isIn(g *UserGroup) bool {
	return g != nil && (p.GID == g.ID || slices.Contains(p.Groups, g.ID))
}

// role is the set of a peer's rights. Connections and requests are bounded per role, so
// that no peer takes the slots of peers with more rights.
type role int

const (
	stranger role = iota // no right
	reader               // read
	operator             // change, by its group
	owner                // change: root, and the server's own user
	numRoles
)

func (a *Access) role(p *Peer) role {
	switch {
	case p.Name != "" && slices.Contains(a.Operators, p.Name):
		return operator
	case p.Name != "":
		return reader
	case p.UID == 0 || p.UID == uint32(os.Geteuid()):
		return owner
	case p.isIn(a.Change):
		return operator
	case a.Read == nil || p.isIn(a.Read):
		return reader
	}
	return stranger
}

// ReasonForbidden means that the caller's user may not do this: status 403.
const ReasonForbidden = "forbidden"

// refusal is the error that names the right that a peer of role r lacks to call method;
// nil if it lacks none.
func (a *Access) refusal(p *Peer, r role, method string) error {
	may, lacks := r >= operator, a.Change
	what, are := "change", "changes are"
	if method == http.MethodGet || method == http.MethodHead {
		may, lacks, what, are = r >= reader, a.Read, "read", "requests are"
	}
	if may {
		return nil
	}
	if p.Name != "" {
		return &statusError{http.StatusForbidden, Error{Reason: ReasonForbidden, Message: fmt.Sprintf(
			"%s may not %s here: api.operators in gleamd's configuration has the names of certificates that may", p.user(), what)}}
	}
	allowed := []string{"root", fmt.Sprintf("uid %d (gleamd)", os.Geteuid())}
	remedy := "use sudo"
	if lacks != nil {
		allowed = append(allowed, "members of group "+lacks.Name)
		remedy += fmt.Sprintf(", or type `usermod -aG %s USER` as root and log in again", lacks.Name)
	}
	return &statusError{http.StatusForbidden, Error{Reason: ReasonForbidden, Message: fmt.Sprintf(
		"uid %d may not %s here; %s for %s: %s", p.UID, what, are, strings.Join(allowed, ", "), remedy)}}
}

// peerOf returns the credentials of the process at the other end of c (SO_PEERCRED).
func peerOf(c net.Conn) (*Peer, error) {
	u, ok := c.(*net.UnixConn)
	if !ok {
		return nil, fmt.Errorf("the other end of a %T is not known", c)
	}
	raw, err := u.SyscallConn()
	if err != nil {
		return nil, err
	}
	p := new(Peer)
	if ctl := raw.Control(func(fd uintptr) { err = p.ask(int(fd)) }); ctl != nil {
		return nil, ctl
	}
	return p, err
}

func (p *Peer) ask(fd int) error {
	cred, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return fmt.Errorf("ask for the peer's credentials: %w", err)
	}
	p.UID, p.GID, p.PID = cred.Uid, cred.Gid, cred.Pid
	groups := make([]uint32, 64)
	for {
		size := uint32(4 * len(groups))
		_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.SOL_SOCKET, unix.SO_PEERGROUPS,
			uintptr(unsafe.Pointer(&groups[0])), uintptr(unsafe.Pointer(&size)), 0)
		switch {
		case errno == 0:
			p.Groups = groups[:size/4]
			return nil
		case !errors.Is(errno, unix.ERANGE) || int(size) <= 4*len(groups):
			return fmt.Errorf("ask for the peer's groups: %w", errno)
		}
		groups = make([]uint32, size/4)
	}
}

// connectedUser is a Peer with its role, and the state of its connection.
type connectedUser struct {
	*Peer
	role
	refused error // the connection is one too many
}

// callerKey is the key of the caller in a request's context.
type callerKey struct{}

func callerOf(r *http.Request) *connectedUser {
	c, _ := r.Context().Value(callerKey{}).(*connectedUser)
	return c
}

func withCaller(ctx context.Context, c net.Conn) context.Context {
	if g, ok := c.(*gatedConn); ok {
		return context.WithValue(ctx, callerKey{}, g.caller)
	}
	return ctx
}
