// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package hardware

import (
	"archive/tar"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/gleam-rdma/gleam/internal/cli"
	"github.com/gleam-rdma/gleam/internal/doctor/checks"
)

// Files of an archive.
const (
	reportFile   = "report.md"    // a row of docs/HARDWARE.md, then what it rests on
	machinesFile = "machines.txt" // entries of testdata/machines.txt of internal/doctor/checks
	stepsFile    = "steps.json"   // all steps, with their results
	doctorFile   = "doctor.json"  // the report of gleam doctor; not there if it was not run
)

// maxFile bounds a file of an archive that is read.
const maxFile = 16 << 20

// record is what a run has found.
type record struct {
	role   string // box, source or receiver
	kernel string
	date   time.Time
	nics   []NIC
	rnics  []RNIC
	steps  []Step // the steps, without what identifies hosts
	doctor json.RawMessage
}

// files are the contents of the archive, by file.
func (r *record) files() (map[string][]byte, error) {
	list, err := json.MarshalIndent(r.steps, "", "  ")
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{reportFile: []byte(r.markdown()), machinesFile: []byte(r.machines()), stepsFile: append(list, '\n')}
	if len(r.doctor) > 0 {
		files[doctorFile] = r.doctor
	}
	return files, nil
}

// machines are the descriptions of the interfaces.
func (r *record) machines() string {
	var b strings.Builder
	for i := range r.nics {
		n := &r.nics[i]
		fmt.Fprintf(&b, "%s# read at a %s by gleam-lab hardware; firmware %s.\n\n", n.Description, r.role, cmp.Or(n.Firmware, "not known"))
	}
	return b.String()
}

// row is the row of docs/HARDWARE.md.
func (r *record) row() string {
	var nics, drivers, works []string
	for i := range r.rnics {
		x := &r.rnics[i]
		nics = once(nics, cmp.Or(x.Board, x.Name))
		drivers = once(drivers, strings.TrimSpace(cmp.Or(x.Driver, x.Name)+" "+x.Firmware))
	}
	for i := range r.nics {
		x := &r.nics[i]
		nics = once(nics, cmp.Or(x.Device, x.Driver))
		drivers = once(drivers, strings.TrimSpace(x.Driver+" "+x.Firmware))
		if xdp := x.Description.Facts["xdp"]; r.role == roleBox && xdp != "" {
			works = once(works, "XDP: "+xdp)
		}
	}
	for i := range r.steps {
		x := &r.steps[i]
		switch {
		case x.State == Failed:
			works = append(works, "**not** "+x.Name)
		case x.State == Passed && x.numbers() != "":
			works = append(works, x.Name+" ("+x.numbers()+")")
		case x.State == Passed && x.Name != versions:
			works = append(works, x.Name)
		}
	}
	return fmt.Sprintf("| %s | %s | %s | %s: %s | %s |\n", cell(nics, ", "), cell(drivers, ", "), r.kernel, r.role, cell(works, "; "), r.date.Format(time.DateOnly))
}

// cell is a list in a cell of a table.
func cell(list []string, between string) string {
	return strings.NewReplacer("|", `\|`, "\n", " ").Replace(strings.Join(list, between))
}

// markdown is the report.
func (r *record) markdown() string {
	var b strings.Builder
	b.WriteString(r.row())
	fmt.Fprintf(&b, "\n# Report of a %s\n\nLinux %s, %s.\n\n## Interfaces\n\n| interface | driver | firmware | device | MTU |\n|---|---|---|---|---|\n", r.role, r.kernel, r.date.Format(time.DateOnly))
	for i := range r.nics {
		n := &r.nics[i]
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", n.Interface, n.Driver, n.Firmware, n.Device, n.Description.Facts["mtu"])
	}
	if r.role != roleBox {
		b.WriteString("\n## RDMA devices\n\n| device | driver | firmware | board | node type | GID types | interfaces | state | rate |\n|---|---|---|---|---|---|---|---|---|\n")
		for i := range r.rnics {
			x := &r.rnics[i]
			fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s | %s | %s | %s |\n", x.Name, x.Driver, x.Firmware, x.Board, x.NodeType, cell(x.GIDTypes, ", "), cell(x.Interfaces, ", "), x.State, x.Rate)
		}
	}
	b.WriteString("\n## Steps\n\n| step | state | seconds | result |\n|---|---|---|---|\n")
	for i := range r.steps {
		x := &r.steps[i]
		fmt.Fprintf(&b, "| %s | %s | %.1f | %s |\n", x.Name, x.State, x.Seconds, cell([]string{cmp.Or(x.numbers(), x.Reason)}, ""))
	}
	for i := range r.steps {
		if x := &r.steps[i]; x.Output != "" {
			fmt.Fprintf(&b, "\n`%s` says:\n\n```\n%s\n```\n", x.Command, strings.ReplaceAll(x.Output, "```", "'''"))
		}
	}
	fmt.Fprintf(&b, "\n## Facts\n\n```\n%s```\n", r.machines())
	return b.String()
}

// write writes the archive.
func (r *record) write(file string) (err error) {
	files, err := r.files()
	if err != nil {
		return err
	}
	f, err := cli.CreateFile(file, 0o666)
	if err != nil {
		return err
	}
	z := gzip.NewWriter(f)
	w := tar.NewWriter(z)
	for _, name := range []string{reportFile, machinesFile, stepsFile, doctorFile} {
		if b := files[name]; err == nil && b != nil {
			if err = w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(b)), ModTime: r.date}); err == nil {
				_, err = w.Write(b)
			}
		}
	}
	return errors.Join(err, w.Close(), z.Close(), f.Close())
}

// read reads an archive, by file.
func read(file string) (map[string][]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	files := map[string][]byte{}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		var b []byte
		if err == nil {
			b, err = io.ReadAll(io.LimitReader(r, maxFile))
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		files[h.Name] = b
	}
	if files[reportFile] == nil {
		return nil, fmt.Errorf("%s has no %s: it is no archive of gleam hardware", file, reportFile)
	}
	if _, err := checks.ParseDescriptions(string(files[machinesFile])); err != nil {
		return nil, fmt.Errorf("%s: %s: %w", file, machinesFile, err)
	}
	return files, nil
}
