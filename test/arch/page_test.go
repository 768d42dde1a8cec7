// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// pageRow is a row of the table of rooms in docs/ARCHITECTURE.md.
type pageRow struct {
	rooms   []string
	imports []string // names of rooms, core, or folders with a star; all: any room above
}

// core are the rooms that the page calls so.
var core = []string{"rocev2", "mcast/token", "mcast", "envelope"}

// means reports whether a name in the last column is a room.
func means(name, dir string) bool {
	if folder, star := strings.CutSuffix(name, "/*"); star {
		return path.Base(path.Dir(dir)) == folder
	}
	return name == "core" && slices.Contains(core, dir) || name == path.Base(dir)
}

// readPage returns the rows of the page's table of rooms.
func readPage(t *testing.T) (rows []pageRow) {
	t.Helper()
	_, table, ok := strings.Cut(read(t, "docs/ARCHITECTURE.md"), "\n## Rooms\n")
	if !ok {
		t.Fatal("docs/ARCHITECTURE.md has no section of rooms")
	}
	table, _, _ = strings.Cut(table, "\n## ")
	quoted := regexp.MustCompile("`([^`]+)`")
	words := regexp.MustCompile("`([^`]+)`|\\b(core|all)\\b")
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		if len(cells) != 5 || !strings.Contains(cells[1], "`") {
			continue
		}
		var r pageRow
		for _, m := range quoted.FindAllStringSubmatch(cells[1], -1) {
			r.rooms = append(r.rooms, m[1])
		}
		for _, m := range words.FindAllStringSubmatch(cells[3], -1) {
			r.imports = append(r.imports, m[1]+m[2])
		}
		rows = append(rows, r)
	}
	return rows
}

// Each room of the table, but those of programs and tests, has one row of docs/ARCHITECTURE.md. The row says what its
// rooms may import, of the same row or those above.
func TestRoomsAreDescribed(t *testing.T) {
	rows, count := readPage(t), make(map[string]int)
	var above []string
	for _, row := range rows {
		above = append(above, row.rooms...)
		used := make(map[string]bool)
		for _, dir := range row.rooms {
			count[dir]++
			i := slices.IndexFunc(rooms, func(r room) bool { return r.dir == dir })
			if i < 0 {
				t.Errorf("docs/ARCHITECTURE.md has a row of %s, which is no room", dir)
				continue
			}
			if free := slices.Contains(row.imports, "all"); free != (rooms[i].knows == nil) {
				t.Errorf("docs/ARCHITECTURE.md: %s may import any room above: the page %t, the table %t", dir, free, !free)
			}
			for _, k := range rooms[i].knows {
				named := slices.Contains(row.rooms, k)
				for _, name := range row.imports {
					if means(name, k) {
						named, used[name] = true, true
					}
				}
				if !named || !slices.Contains(above, k) {
					t.Errorf("docs/ARCHITECTURE.md: %s may import %s; the row does not say so, or stands above it", dir, k)
				}
			}
		}
		for _, name := range row.imports {
			if name != "all" && !used[name] {
				t.Errorf("docs/ARCHITECTURE.md: the row of %s has %s, which it must not import", row.rooms[0], name)
			}
		}
	}
	for _, r := range rooms {
		if r.dir != "cmd" && r.dir != "scripts" && r.dir != "test" && count[r.dir] != 1 {
			t.Errorf("docs/ARCHITECTURE.md has %d rows of %s, want one", count[r.dir], r.dir)
		}
	}
}
