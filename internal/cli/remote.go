// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/spf13/cobra"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/config/identity"
)

// Remote is how gleamds are asked over TCP.
type Remote struct {
	Address              string // the address of the gleamd that commands are for; "": that of the socket
	Certificate, Key, CA string // files by which this client and switches know each other
}

// DefaultRemote has the files' usual places.
func DefaultRemote() Remote {
	return Remote{Certificate: "/etc/gleam/client.crt", Key: "/etc/gleam/client.key", CA: "/etc/gleam/api-ca.crt"}
}

func (r *Remote) addTo(root *cobra.Command) {
	f := root.PersistentFlags()
	f.StringVar(&r.Address, "address", r.Address, "host and port of another gleamd's API over TCP (api.listen), in place of the socket")
	f.StringVar(&r.Certificate, "certificate", r.Certificate, "certificate for clients, by which switches know this one over TCP")
	f.StringVar(&r.Key, "key", r.Key, "private key of --certificate; keys of groups are named by --key-file")
	f.StringVar(&r.CA, "ca", r.CA, "authorities for the certificates of switches")
	for _, name := range []string{"certificate", "key", "ca"} {
		root.MarkPersistentFlagFilename(name)
	}
}

// client returns a client of the gleamd at an address. Without the files of this end each
// call has the reason as its error.
func (r *Remote) client(address string) *api.Client {
	files, err := identity.Load(r.Certificate, r.Key, r.CA)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w: name the files by --certificate, --key and --ca", err)
	}
	if err != nil {
		return api.Unreachable(address, err)
	}
	c, err := api.DialTLS(address, files)
	if err != nil {
		return api.Unreachable(address, err)
	}
	return c
}
