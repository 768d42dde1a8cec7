// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
)

// mayBeUnused are exported names, or packages, without a use in the program, each with the
// reason. A name of a package of tests needs none: TestExportsAreUsed counts their uses in
// tests.
var mayBeUnused = map[string]string{
	"lab/sim/analytic.Literal":     "the paper's filter: tests show what it costs",
	"mcast/token.Machine.SetEpoch": "for updates that raise the epoch",

	"bpf/fastpath.Group.CountsACKs": "for tests of package dataplane",

	"internal/control/store.Outbox.Size":         "for tests of package control",
	"internal/control/location.Inquirer.ProofOf": "for tests of package control", "internal/control/location.Inquirer.InquiriesOf": "likewise",
	"internal/control/statefile.Change.AddFormer": "package control stores the whole group when a member has gone",
	"api.LoadCertificates":                        "for applications",
	"api.QPN.MarshalText":                         "for encoding/json", "api.PSN.MarshalText": "likewise", "api.QPN.UnmarshalJSON": "likewise", "api.PSN.UnmarshalJSON": "likewise",
	"api.QPN.Format": "for fmt", "api.PSN.Format": "likewise",
	"config.Secret.MarshalJSON": "for encoding/json", "config.Secret.MarshalText": "for encoding", "config.Secret.MarshalYAML": "for YAML libraries",
	"host/endpoint.Group.UpdateFrom": "for applications", "host/endpoint.Host.RefusedConnections": "for applications",
	"mcast.DefaultRepairTimeout": "a row of package config repeats it, TestConfiguredDefaults compares", "mcast.DefaultRepairTries": "likewise",
	"bpf.MaxAllowed":       "package config repeats it, TestAllowListsFitTheirTables compares",
	"dataplane.Unattached": "for tests of package control", "dataplane.Plane.Deliver": "likewise",
	"rocev2.BTH.FECN": "for tests: the ICRC does not cover it", "rocev2.BTH.SetFECN": "likewise", "rocev2.IPv6.SetFlowLabel": "likewise", "rocev2.Frame.SetECN": "likewise",
	"rocev2.Frame.FETH": "for tests: the decoder finds it", "rocev2.Operators.Has": "for tests of Build",
	"rocev2.BuildAck": "for tests that speak as a host", "rocev2.BuildCNP": "likewise", "rocev2.BuildNeighborSolicitation": "likewise",
	"rocev2.MinFrameLen": "the length to which NICs pad", "rocev2.Operators.HeaderDelta": "for any pair of headers, to which tests hold Fields and LegDelta",
	"lab/testbed.Fabric.Isolate": "for gleam demo, once a tree outlives a switch", "lab/testbed.Gleamd.Restart": "likewise",
}

// uses are the exported names that files declare, and how often every name stands
// anywhere else.
type uses struct {
	declared map[string]token.Position // positions by folder.Name, or folder.Type.Name for a method
	count    map[string]int            // counts by name alone
}

// add reads a file. Its declarations count if declares is set: those of functions,
// methods, constants and variables. A type may be used without its name.
func (u *uses) add(name string, src []byte, declares bool) error {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, name, src, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	pkg := name[:max(0, strings.LastIndexByte(name, '/'))]
	declare := func(id *ast.Ident, of string) {
		u.count[id.Name]--
		if declares && id.IsExported() && (of == "" || ast.IsExported(of)) {
			full := id.Name
			if of != "" {
				full = of + "." + id.Name
			}
			u.declared[pkg+"."+full] = fset.Position(id.Pos())
		}
	}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			declare(d.Name, receiver(d))
		case *ast.GenDecl:
			for _, s := range d.Specs {
				if s, ok := s.(*ast.ValueSpec); ok {
					for _, id := range s.Names {
						declare(id, "")
					}
				}
			}
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			u.count[id.Name]++
		}
		return true
	})
	return nil
}
