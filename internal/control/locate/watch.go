// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package locate

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// Netlink loses messages when they come faster than they are read (ENOBUFS). The
// subscription continues, but anything may have changed since, so everything is looked up
// again. A socket that cannot be read is replaced by a new one; as long as there is none,
// everything is looked up again every resubscribeAfter.

// watchBuffer is the size in bytes of the socket's receive buffer: some 10,000 messages.
const watchBuffer = 8 << 20

// resubscribeAfter is the time between two attempts to subscribe, and between two lookups
// of everything while there is no subscription.
const resubscribeAfter = time.Second

// Report is an event of a watch, for the operator.
type Report struct {
	What string // the kind of objects that are watched
	Err  error  // nil: the watch works again
	Lost uint64 // losses of messages so far, if this report is of one, else 0; the watch works
}

// Watcher subscribes to the kernel's reports of changed neighbours, forwarding database
// entries, routes and interfaces.
type Watcher struct {
	changes *Changes
	report  func(Report)
	feeds   []*feed
	ns      netns.NsHandle
	lost    atomic.Uint64
}

// feed is one subscription.
type feed struct {
	what   string
	groups []int
	filter *Filter
	lost   uint64
	dead   atomic.Bool
	file   atomic.Pointer[os.File]
	open   func() (*os.File, error)
}

// NewWatcher subscribes in the calling thread's network namespace, so that no later
// change is missed. filter may be nil: then all changes of neighbours are received.
// report is called from several goroutines.
func NewWatcher(changed *Changes, filter *Filter, report func(Report)) (*Watcher, error) {
	ns, err := netns.Get()
	if err != nil {
		return nil, fmt.Errorf("find the network namespace to watch: %w", err)
	}
	w := &Watcher{changes: changed, report: report, ns: ns, feeds: []*feed{
		{what: "neighbours", groups: []int{unix.RTNLGRP_NEIGH}, filter: filter},
		{what: "links", groups: []int{unix.RTNLGRP_LINK}},
		{what: "routes", groups: []int{unix.RTNLGRP_IPV4_ROUTE, unix.RTNLGRP_IPV6_ROUTE}},
	}}
	for _, f := range w.feeds {
		f.open = func() (*os.File, error) { return w.subscribe(f) }
		file, err := f.open()
		if err != nil {
			w.Close()
			return nil, fmt.Errorf("watch %s by netlink: %w", f.what, err)
		}
		f.file.Store(file)
	}
	return w, nil
}

// Close ends the subscriptions. Run must have returned, if it was called.
func (w *Watcher) Close() {
	for _, f := range w.feeds {
		if file := f.file.Load(); file != nil {
			file.Close()
		}
	}
	w.ns.Close()
}

// Resyncs returns how many times messages were lost, so that everything was looked up
// again.
func (w *Watcher) Resyncs() uint64 { return w.lost.Load() }

// Dead returns the kinds of objects that are not watched at present.
func (w *Watcher) Dead() (what []string) {
	for _, f := range w.feeds {
		if f.dead.Load() {
			what = append(what, f.what)
		}
	}
	return what
}

// Run collects changes until ctx ends.
func (w *Watcher) Run(ctx context.Context) {
	ended := make(chan struct{})
	for _, f := range w.feeds {
		go func() {
			w.follow(ctx, f)
			ended <- struct{}{}
		}()
	}
	<-ctx.Done()
	for _, f := range w.feeds {
		if file := f.file.Load(); file != nil {
			file.SetReadDeadline(time.Unix(1, 0))
		}
	}
	for range w.feeds {
		<-ended
	}
}

// follow reads one subscription, and replaces it when it breaks.
func (w *Watcher) follow(ctx context.Context, f *feed) {
	for ctx.Err() == nil {
		err := w.read(ctx, f)
		if ctx.Err() != nil {
			return
		}
		f.dead.Store(true)
		w.report(Report{What: f.what, Err: err})
		f.file.Load().Close()
		for {
			w.changes.Everything()
			file, err := f.open()
			if err == nil {
				f.file.Store(file)
				break
			}
			w.report(Report{What: f.what, Err: err})
			select {
			case <-ctx.Done():
				return
			case <-time.After(resubscribeAfter):
			}
		}
		f.dead.Store(false)
		w.report(Report{What: f.what})
		w.changes.Everything() // changes between the two sockets were missed
	}
}

// read collects changes until the subscription breaks, or ctx ends.
func (w *Watcher) read(ctx context.Context, f *feed) error {
	file := f.file.Load()
	conn, err := file.SyscallConn()
	if err != nil {
		return err
	}
	buf := make([]byte, 64<<10)
	for ctx.Err() == nil {
		var n int
		var from unix.Sockaddr
		var rerr error
		if err := conn.Read(func(fd uintptr) bool {
			n, from, rerr = unix.Recvfrom(int(fd), buf, unix.MSG_DONTWAIT)
			return !errors.Is(rerr, unix.EAGAIN)
		}); err != nil {
			return err
		}
		switch {
		case errors.Is(rerr, unix.ENOBUFS):
			f.lost++
			w.lost.Add(1)
			w.changes.Everything()
			w.report(Report{What: f.what, Err: rerr, Lost: f.lost})
			continue
		case errors.Is(rerr, unix.EINTR):
			continue
		case rerr != nil:
			return rerr
		}
		if k, ok := from.(*unix.SockaddrNetlink); !ok || k.Pid != 0 {
			continue // not from the kernel
		}
		msgs, err := syscall.ParseNetlinkMessage(buf[:n])
		if err != nil {
			return fmt.Errorf("read netlink messages: %w", err)
		}
		for i := range msgs {
			w.changes.message(&msgs[i])
		}
	}
	return nil
}

// subscribe opens a socket in the watched namespace.
func (w *Watcher) subscribe(f *feed) (*os.File, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	// Only tests have threads in several namespaces.
	if here, err := netns.Get(); err == nil {
		defer here.Close()
		if !here.Equal(w.ns) {
			if err := netns.Set(w.ns); err != nil {
				return nil, fmt.Errorf("enter the watched namespace: %w", err)
			}
			defer netns.Set(here)
		}
	}
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.NETLINK_ROUTE)
	if err != nil {
		return nil, err
	}
	if err := f.setUp(fd); err != nil {
		unix.Close(fd)
		return nil, err
	}
	return os.NewFile(uintptr(fd), "netlink "+f.what), nil
}

// setUp makes a socket receive the feed's messages.
func (f *feed) setUp(fd int) error {
	// Without CAP_NET_ADMIN the buffer size is at most net.core.rmem_max.
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, watchBuffer) != nil {
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, watchBuffer)
	}
	if f.filter != nil {
		if err := f.filter.attach(fd); err != nil {
			return fmt.Errorf("attach the filter: %w", err)
		}
	}
	if err := unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	for _, g := range f.groups {
		if err := unix.SetsockoptInt(fd, unix.SOL_NETLINK, unix.NETLINK_ADD_MEMBERSHIP, g); err != nil {
			return err
		}
	}
	return nil
}

// message records the change that a message of the kernel reports.
func (c *Changes) message(m *syscall.NetlinkMessage) {
	switch m.Header.Type {
	case unix.RTM_NEWNEIGH, unix.RTM_DELNEIGH:
		if len(m.Data) < unix.SizeofNdMsg {
			return
		}
		if n, err := netlink.NeighDeserialize(m.Data); err == nil {
			c.neighbour(&netlink.NeighUpdate{Type: m.Header.Type, Neigh: *n})
		}
	case unix.RTM_NEWLINK, unix.RTM_DELLINK:
		if index, ok := linkKey(m.Data); ok {
			c.Link(index)
		}
	case unix.RTM_NEWROUTE, unix.RTM_DELROUTE:
		if p, ok := destination(m); ok {
			c.Route(p)
		}
	}
}

// neighbour records a change of a neighbour table or of a forwarding database.
func (c *Changes) neighbour(n *netlink.NeighUpdate) {
	var mac MAC
	copy(mac[:], n.HardwareAddr)
	there := n.Type == unix.RTM_NEWNEIGH
	if n.Family == unix.AF_BRIDGE {
		c.Learn(mac, there)
	} else if ip, ok := netip.AddrFromSlice(n.IP); ok {
		c.Neighbour(ip, Neighbour{MAC: mac, Usable: there && n.State&usable != 0 && len(n.HardwareAddr) == len(mac)})
	}
}
