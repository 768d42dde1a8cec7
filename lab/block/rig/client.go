// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
)

// Client is an NBD client, which any goroutines may use.
type Client struct {
	c    net.Conn
	Size int64

	mu      sync.Mutex
	next    uint64
	pending map[uint64]*call
	err     error
}

type call struct {
	into []byte
	done chan error
}

// Commands and flags of NBD.
const (
	Read        = 0
	Write       = 1
	Flush       = 3
	Trim        = 4
	WriteZeroes = 6
	fua         = 1
)

var be = binary.BigEndian

// Dial connects to the NBD server at a Unix socket.
func Dial(socket string) (*Client, error) {
	c, err := net.Dial("unix", socket)
	if err != nil {
		return nil, err
	}
	n := &Client{c: c, pending: make(map[uint64]*call)}
	r := bufio.NewReader(c)
	if _, err := n.export(r); err != nil {
		return nil, errors.Join(fmt.Errorf("NBD handshake: %w", err), c.Close())
	}
	go n.replies(r)
	return n, nil
}

// export asks for the device by the option EXPORT_NAME, and returns its transmission flags.
func (n *Client) export(r io.Reader) (flags uint16, err error) {
	var hello struct {
		Magic, Option uint64
		Flags         uint16
	}
	if err := binary.Read(r, be, &hello); err != nil {
		return 0, err
	}
	b := be.AppendUint32(nil, 3)
	b = be.AppendUint64(b, hello.Option)
	b = be.AppendUint32(b, 1)
	b = be.AppendUint32(b, 0)
	if _, err := n.c.Write(b); err != nil {
		return 0, err
	}
	var device struct {
		Size  int64
		Flags uint16
	}
	err = binary.Read(r, be, &device)
	n.Size = device.Size
	return device.Flags, err
}

// Do performs a request: of a Read into p, of a Write from p; of others length bytes at off.
func (n *Client) Do(command, flags uint16, off int64, length int, p []byte) error {
	k := &call{done: make(chan error, 1)}
	if command == Read {
		k.into = p
	}
	n.mu.Lock()
	if n.err != nil {
		defer n.mu.Unlock()
		return n.err
	}
	n.next++
	id := n.next
	n.pending[id] = k
	b := be.AppendUint32(nil, 0x25609513)
	b = be.AppendUint16(b, flags)
	b = be.AppendUint16(b, command)
	b = be.AppendUint64(b, id)
	b = be.AppendUint64(b, uint64(off))
	b = be.AppendUint32(b, uint32(length))
	if command == Write {
		b = append(b, p...)
	}
	_, err := n.c.Write(b)
	n.mu.Unlock()
	if err != nil {
		return err
	}
	return <-k.done
}

func (n *Client) replies(r io.Reader) {
	err := func() error {
		for {
			var h struct {
				Magic, Error uint32
				Cookie       uint64
			}
			if err := binary.Read(r, be, &h); err != nil {
				return err
			}
			n.mu.Lock()
			k := n.pending[h.Cookie]
			delete(n.pending, h.Cookie)
			n.mu.Unlock()
			if h.Magic != 0x67446698 || k == nil {
				return errors.New("a reply that is none")
			}
			var err error
			if h.Error != 0 {
				err = fmt.Errorf("NBD error %d", h.Error)
			} else if _, err = io.ReadFull(r, k.into); err != nil {
				k.done <- err
				return err
			}
			k.done <- err
		}
	}()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.err = err
	for _, k := range n.pending {
		k.done <- err
	}
}

// Close ends the connection.
func (n *Client) Close() error { return n.c.Close() }
