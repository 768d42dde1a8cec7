// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Command libgleam is the shared library libgleam.so: the C interface of gleam.h
// over package join. gleam.c has the functions that C calls, each of which calls
// the one here that is named alike; here arguments are checked and translated.
package main

// #include "gleam.h"
import "C"

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"
	"unsafe"

	"github.com/gleam-rdma/gleam/libgleam/join"
)

func main() {} // buildmode c-shared wants one, and never calls it

// release is set by the linker.
var release = "unknown"

// Numbers of errno.h that gleam.h names.
const (
	eio       = 5
	einval    = 22
	enodata   = 61
	etimedout = 110
)

// errTimeout is wrapped by errors of calls whose time was over.
var errTimeout = errors.New("timed out")

// errArgument is wrapped by errors about arguments.
var errArgument = errors.New("invalid argument")

func argument(format string, args ...any) error {
	return fmt.Errorf("%w: %w", errArgument, fmt.Errorf(format, args...))
}

// number is the errno of an error.
func number(err error) C.int {
	switch {
	case errors.Is(err, errArgument), errors.Is(err, join.ErrOrder):
		return einval
	case errors.Is(err, errTimeout):
		return etimedout
	case errors.Is(err, join.ErrNoMore):
		return enodata
	}
	return eio
}

// guard calls fn, and turns its error, or its panic, into an errno and a text at
// err, which has room for n bytes.
func guard(err *C.char, n C.size_t, fn func() (C.int, error)) (result C.int) {
	defer func() {
		if p := recover(); p != nil {
			putText(err, int(n), fmt.Sprintf("a bug in libgleam, please report it: %v\n%s", p, debug.Stack()))
			result = -eio
		}
	}()
	result, e := fn()
	if e != nil {
		putText(err, int(n), e.Error())
		return -number(e)
	}
	return result
}

// putText copies s to p, which has room for n bytes, and ends it with a zero.
func putText(p *C.char, n int, s string) {
	if p == nil || n == 0 {
		return
	}
	b := unsafe.Slice((*byte)(unsafe.Pointer(p)), n)
	b[copy(b[:n-1], s)] = 0
}

// sessions by handle. A handle is a number, never a pointer, so that a wrong one
// is an error and not a crash.
var sessions = struct {
	sync.Mutex
	m    map[uintptr]*join.Session
	last uintptr
}{m: make(map[uintptr]*join.Session)}

// session finds the session of a handle.
func session(g C.uintptr_t) (*join.Session, error) {
	sessions.Lock()
	defer sessions.Unlock()
	if s := sessions.m[uintptr(g)]; s != nil {
		return s, nil
	}
	if g == 0 {
		return nil, argument("the group is NULL: gleam_create failed, or was not called")
	}
	return nil, argument("no such group: was it destroyed already?")
}

// withSession is guard for a call with the session of a handle.
func withSession(g C.uintptr_t, err *C.char, n C.size_t, fn func(*join.Session) (C.int, error)) C.int {
	return guard(err, n, func() (C.int, error) {
		s, err := session(g)
		if err != nil {
			return 0, err
		}
		return fn(s)
	})
}

// within returns a context that ends after ms milliseconds, or never if ms is less
// than 0.
func within(ms C.int) (context.Context, context.CancelFunc) {
	if ms < 0 {
		return context.WithCancel(context.Background())
	}
	d := time.Duration(ms) * time.Millisecond
	return context.WithTimeoutCause(context.Background(), d, fmt.Errorf("%w after %v", errTimeout, d))
}

//export goCreate
func goCreate(attr *C.struct_gleam_attr, g *C.uintptr_t, err *C.char, n C.size_t) C.int {
	return guard(err, n, func() (C.int, error) {
		cfg, err := config(attr)
		if err != nil {
			return 0, err
		}
		s, err := join.New(cfg)
		if err != nil {
			return 0, fmt.Errorf("%w: %w", errArgument, err)
		}
		sessions.Lock()
		defer sessions.Unlock()
		sessions.last++
		sessions.m[sessions.last] = s
		*g = C.uintptr_t(sessions.last)
		return 0, nil
	})
}

//export goJoin
func goJoin(g C.uintptr_t, qp *C.struct_gleam_qp, mr *C.struct_gleam_mr, peer *C.struct_gleam_peer, ms C.int, err *C.char, n C.size_t) C.int {
	return withSession(g, err, n, func(s *join.Session) (C.int, error) {
		if peer == nil {
			return 0, argument("peer is NULL: it takes what to connect the queue pair to")
		}
		info, err := queuePair(qp)
		if err != nil {
			return 0, err
		}
		mem, err := memory(mr)
		if err != nil {
			return 0, err
		}
		ctx, cancel := within(ms)
		defer cancel()
		to, err := s.Join(ctx, info, mem)
		if err != nil {
			return 0, err
		}
		putPeer(peer, to)
		return 0, nil
	})
}

//export goConnected
func goConnected(g C.uintptr_t, failure *C.char, err *C.char, n C.size_t) C.int {
	return withSession(g, err, n, func(s *join.Session) (C.int, error) {
		var why error
		if failure != nil {
			why = fmt.Errorf("the application could not connect its queue pair: %s", C.GoString(failure))
		}
		return 0, s.Connected(why)
	})
}

//export goWait
func goWait(g C.uintptr_t, window *C.struct_gleam_window, ms C.int, err *C.char, n C.size_t) C.int {
	return withSession(g, err, n, func(s *join.Session) (C.int, error) {
		ctx, cancel := within(ms)
		defer cancel()
		info, err := s.Wait(ctx)
		if err != nil {
			return 0, err
		}
		if window != nil {
			putWindow(window, info)
		}
		return 0, nil
	})
}

//export goNextEvent
func goNextEvent(g C.uintptr_t, event *C.struct_gleam_event, ms C.int, err *C.char, n C.size_t) C.int {
	return withSession(g, err, n, func(s *join.Session) (C.int, error) {
		if event == nil {
			return 0, argument("event is NULL")
		}
		ctx, cancel := within(ms)
		defer cancel()
		e, err := s.Next(ctx)
		if errors.Is(err, errTimeout) {
			return 0, nil
		}
		if err != nil {
			return 0, err
		}
		putEvent(event, e)
		return 1, nil
	})
}

//export goFD
func goFD(g C.uintptr_t, err *C.char, n C.size_t) C.int {
	return withSession(g, err, n, func(s *join.Session) (C.int, error) {
		return C.int(s.FD()), nil
	})
}

//export goLeave
func goLeave(g C.uintptr_t, ms C.int, err *C.char, n C.size_t) C.int {
	return withSession(g, err, n, func(s *join.Session) (C.int, error) {
		ctx, cancel := within(ms)
		defer cancel()
		return 0, s.Leave(ctx)
	})
}

//export goDestroy
func goDestroy(g C.uintptr_t, err *C.char, n C.size_t) C.int {
	return guard(err, n, func() (C.int, error) {
		if g == 0 {
			return 0, nil
		}
		s, err := session(g)
		if err != nil {
			return 0, err
		}
		sessions.Lock()
		delete(sessions.m, uintptr(g))
		sessions.Unlock()
		return 0, s.Close()
	})
}

//export goVersion
func goVersion(p *C.char, n C.size_t) { putText(p, int(n), release) }
