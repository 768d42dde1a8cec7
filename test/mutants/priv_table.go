// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

// Wrong ways to give up privileges, and to bound what a file or a client may cost.
var privMutants = []mutant{
	{"the bounding set stays as it is", "priv", "sandbox/sandbox.go", []edit{{
		"		if err := prctl(unix.PR_CAPBSET_DROP, c, 0); err != nil {\n			return err\n		}\n", "",
	}}},
	{"the groups of root stay", "priv", "sandbox/sandbox.go", []edit{{
		"	if err := syscall.Setgroups(nil); err != nil {\n		return err\n	}\n", "",
	}}},
	{"root is a user like any other", "priv", "sandbox/sandbox.go", []edit{{
		"	if l.UID <= 0 || l.GID <= 0 {\n", "	if l.UID < 0 {\n",
	}}},
	{"a step that fails is passed over", "priv", "sandbox/sandbox.go", []edit{{
		"			return s.fail(err)\n", "			_ = s.fail(err)\n",
	}}},
	{"only the calling thread is filtered", "priv", "sandbox/filter.go", []edit{{
		"unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, ", "unix.SECCOMP_SET_MODE_FILTER, 0, ",
	}}},
	{"the filter looks at no architecture", "priv", "sandbox/filter.go", []edit{{
		"Val: auditArch, SkipTrue: 1},", "Val: 0, SkipTrue: 0, SkipFalse: 1},",
	}}},
	{"conditions are about the wrong argument", "priv", "sandbox/filter.go", []edit{{
		"offArgs + uint32(8*c.arg)", "offArgs + uint32(4*c.arg)",
	}}},
	{"memory may become executable", "priv", "sandbox/rules.go", []edit{{
		"rule{unix.SYS_MPROTECT, allow, &cond{arg: 2, mask: unix.PROT_EXEC}}", "rule{unix.SYS_MPROTECT, allow, nil}",
	}}},
	{"programs may be started", "priv", "sandbox/rules.go", []edit{{
		"	unix.SYS_EXECVE, unix.SYS_EXECVEAT,", "	unix.SYS_EXECVEAT,",
	}}},
	{"capabilities are not looked at afterwards", "priv", "sandbox/verify.go", []edit{{
		"		\"CapPrm\": fmt.Sprintf(\"%016x\", caps), ", "		",
	}}},
	{"gleamd serves although it is not confined", "priv", "cmd/gleamd/daemon.go", []edit{{
		"if err = d.confine(id); err == nil {", "if err = d.confine(id); true {",
	}}},
	{"root may be named as the user", "priv", "cmd/gleamd/user.go", []edit{{
		"	case id.uid == 0 || id.gid == 0:\n", "	case id.uid < 0:\n",
	}}},
	{"the number of another user is taken", "priv", "cmd/gleamd/user.go", []edit{{
		"		if _, err := a.byID(strconv.Itoa(n)); err == nil {\n			continue\n", "		if _, err := a.byID(strconv.Itoa(n)); err == nil && false {\n			continue\n",
	}}},
	{"nesting has no bound", "priv", "config/limits.go", []edit{{
		"		case flow+len(columns) > depthMax:\n", "		case false:\n",
	}}},
	{"levels in block style are not counted", "priv", "config/limits.go", []edit{{
		"flow+len(columns) > depthMax", "flow > depthMax",
	}}},
	{"levels are never left", "priv", "config/limits.go", []edit{{
		"				columns = columns[:len(columns)-1]\n", "				break\n",
	}}},
	{"keys have no bound", "priv", "config/limits.go", []edit{{
		"		case keys > keysMax:\n", "		case false:\n",
	}}},
	{"a pipe is waited for", "priv", "config/secret.go", []edit{{
		"os.O_RDONLY|unix.O_NONBLOCK", "os.O_RDONLY|unix.O_CLOEXEC",
	}}},
	{"whoever reaches the socket may change", "priv", "api/access.go", []edit{{
		"	may, lacks := r >= operator, a.Change\n", "	may, lacks := r >= reader, a.Change\n",
	}}},
	{"supplementary groups do not count", "priv", "api/access.go", []edit{{
		"slices.Contains(p.Groups, g.ID)", "slices.Contains(p.Groups, p.GID)",
	}}},
	{"without a group to read nobody may", "priv", "api/access.go", []edit{{
		"	case a.Read == nil || p.isIn(a.Read):\n", "	case p.isIn(a.Read):\n",
	}}},
	{"a user may have all of a share", "priv", "api/share.go", []edit{{
		"s.total >= s.max || s.of[uid] >= s.each", "s.total >= s.max",
	}}},
	{"a share is not given back", "priv", "api/share.go", []edit{{
		"	s.total--\n", "",
	}}},
	{"the file of a socket is everybody's although only a group may read", "priv", "config/account.go", []edit{{
		"		a.Mode = openToAll\n", "		_ = a.Mode\n",
	}}},
	{"a body is decoded whatever it becomes", "priv", "api/decode.go", []edit{{
		"n > maxObjects {", "n < 0 {",
	}}},
	{"changes by the API are done without a trace", "priv", "api/audit.go", []edit{{
		"	c.Err = err\n	h.b.Audit(c)\n", "	c.Err = err\n",
	}}},
	{"a change that fails is audited as done", "priv", "api/audit.go", []edit{{
		"	c.Err = err\n	h.b.Audit(c)\n", "	h.b.Audit(c)\n",
	}}},
}
