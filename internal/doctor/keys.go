// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/gleam-rdma/gleam/config"
	"github.com/gleam-rdma/gleam/config/trusted"
)

// command is what errors of a configuration end with where one command repairs them.
var command = regexp.MustCompile(`; run: (.+)$`)

// checkConfig reads the configuration. It is nil if that fails.
func checkConfig(r *Report, file string) *config.Config {
	cfg, err := config.Load(file)
	if err == nil {
		r.add("config")
		return cfg
	}
	var found []Finding
	for line := range strings.SplitSeq(err.Error(), "\n") {
		f := Finding{Severity: Error, Text: line, Cost: "gleamd does not start with this configuration, and does not reload it"}
		if m := command.FindStringSubmatch(line); m != nil {
			f.Text, f.Command = strings.TrimSuffix(line, m[0]), m[1]
		} else if text, hint, missing := strings.Cut(line, config.MissingHint); missing {
			f.Text, f.Remedy = text, "-c names another file"+hint
		} else {
			f.Remedy = "reference.yaml beside it, and gleamd.yaml(5), have every key with its values"
		}
		found = append(found, f)
	}
	r.add("config", found...)
	return nil
}

// checkFiles checks who may replace the files of the configuration, or change one that has no
// secrets. All that others may read or change beside it, config.Load refuses.
func checkFiles(r *Report, file string, cfg *config.Config) {
	st, err := os.Stat(file)
	if err != nil {
		r.skip("key-files", err.Error())
		return
	}
	var found []Finding
	if err := trusted.Check(file, st, trusted.Public); err != nil {
		f := Finding{Severity: Error, Text: file + " " + err.Error(), Cost: "whoever may change it decides at the next start or reload which keys are accepted"}
		if m := command.FindStringSubmatch(f.Text); m != nil {
			f.Text, f.Command = strings.TrimSuffix(f.Text, m[0]), m[1]
		}
		found = append(found, f)
	}
	seen := make(map[string]bool)
	for _, f := range append(secretFiles(cfg), file) {
		dir := filepath.Dir(f)
		if mode, ok := modeOf(dir); ok && !seen[dir] && mode&0o022 != 0 {
			found = append(found, Finding{
				Severity: Error, Text: fmt.Sprintf("others than its owner may replace files in %s (mode %04o)", dir, mode),
				Cost: "whoever may replace a key there can register and end groups, and read what members get", Command: "chmod go-w " + dir,
			})
		}
		seen[dir] = true
	}
	r.add("key-files", found...)
}

// secretFiles are the files of secrets and private keys that the configuration names.
func secretFiles(cfg *config.Config) (files []string) {
	add := func(file string) {
		if file != "" && !slices.Contains(files, file) {
			files = append(files, file)
		}
	}
	for i := range cfg.Envelope.Keys {
		add(cfg.Envelope.Keys[i].SecretFile)
	}
	for i := range cfg.Switch.Keys {
		add(cfg.Switch.Keys[i].SecretFile)
	}
	if k := cfg.API.Key; k != nil {
		add(k.Path)
	}
	for _, p := range []*config.Web{&cfg.Web, cfg.Metrics.Page()} {
		if p.Key != nil {
			add(p.Key.Path)
		}
	}
	return files
}

func modeOf(file string) (fs.FileMode, bool) {
	st, err := os.Stat(file)
	if err != nil {
		return 0, false
	}
	if st.IsDir() && st.Mode()&os.ModeSticky != 0 {
		return st.Mode().Perm() &^ 0o022, true // only owners replace files there
	}
	return st.Mode().Perm(), true
}
