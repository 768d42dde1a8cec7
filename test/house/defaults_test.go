// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package house

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/endpoint"
	"github.com/gleam-rdma/gleam/mcast"
)

// TestOneDefaultQPN: members that are set up apart from each other arrive at the
// same virtual QPN, whichever way in they take, and read of the same one.
func TestOneDefaultQPN(t *testing.T) {
	r := api.Register{}
	r.Default()
	if r.QPN != uint32(mcast.DefaultQPN) || endpoint.DefaultVirtualQPN != mcast.DefaultQPN || !mcast.DefaultQPN.Valid() {
		t.Errorf("default virtual QPNs: API %#x, endpoint %#x, core %#x", r.QPN, endpoint.DefaultVirtualQPN, mcast.DefaultQPN)
	}
	number := fmt.Sprintf("%#x", uint32(mcast.DefaultQPN))
	for file, want := range map[string]string{
		"libgleam/gleam.h":     "virtual_qpn;      /* [" + number + "] */",
		"docs/APPLICATIONS.md": number + " unless somebody names another",
	} {
		text, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), want) {
			t.Errorf("%s does not say %q", file, want)
		}
	}
}
