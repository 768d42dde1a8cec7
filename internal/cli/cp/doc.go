// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package cp is `gleam cp`: files and directories to N hosts at once.
//
// The sender has a connection to the receiver at each host (package oob, with the group's
// key). Over it go the list of the files, what a receiver has already, its progress, and
// its result. The files are cut into chunks. A chunk is one SEND to the group, with its
// number and an HMAC under a key that the connections have carried; a receiver writes it
// only if the HMAC is right. Credits, the number of chunks that each receiver has written,
// keep the sender from sending a chunk that finds no receive posted.
//
// Receivers that cannot keep up, or that are gone, leave the group, and get what they miss
// over the connection. What a receiver has is found by hashing the file, or what there is
// of it, so nothing beside the files themselves is kept for a later run.
//
// Others may have rights in the folders of both sides. The sender reads the files that it has
// listed, through no symbolic link (beneath); a receiver writes to files that it has made.
package cp
