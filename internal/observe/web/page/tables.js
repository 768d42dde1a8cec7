// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// The tables: groups, the members of one, ports, drops.

import { $, button, put, table } from "./dom.js";
import { bits, count, packets, plural, seconds, units } from "./format.js";
import { isIdle, ofGroup, ofMember, portState } from "./state.js";

const few = 8; // idle groups that are listed; more are folded
let idleShown = false;

// drawGroups lists the groups, those that matter most first.
export function drawGroups(sample, shown, choose) {
  const idle = sample.groups.filter(isIdle), folds = idle.length > few, rest = sample.groups.filter(g => !isIdle(g));
  const list = folds && !idleShown ? [...rest, ...idle.filter(g => g.ip === shown)] : [...rest, ...idle];
  table("groups", [
    ["Group", (g, cell) => button(cell, g.ip, g.ip === shown, () => choose(g.ip))],
    ["State", g => ofGroup(g).text],
    ["Waits for", g => g.slowed_by || g.waits_for || "–"],
    ["Members", g => count(g.members.length + (g.members_left_out || 0)), "number"],
    ["Source", g => g.source || "–"],
    ["Data in", g => bits(g.bit_rate), "number"],
    ["Packets", g => packets(g.rates ? g.rates.data_in : 0), "number"],
    ["Copies", g => packets(g.rates ? g.rates.copies : 0), "number"],
    ["Sent again", g => packets(g.rates ? g.rates.repairs : 0), "number"],
    ["Policy", g => g.policy],
  ], list, g => g.ip, g => [ofGroup(g).level, g.ip === shown]);
  $("idle-groups").hidden = !folds;
  put($("idle-groups"), (idleShown ? "Hide " : "Show ") + plural(idle.length, "idle group"));
  $("idle-groups").setAttribute("aria-expanded", String(idleShown));
  $("idle-groups").onclick = () => {
    idleShown = !idleShown;
    drawGroups(sample, shown, choose);
  };
  put($("groups-note"), !sample.groups.length ? "No group is registered." : sample.groups_left_out ? count(sample.groups_left_out) + " more groups are left out: gleam group list shows them." : "");
}

// drawMembers lists the members of a group.
export function drawMembers(sample, g, chosen, choose) {
  $("members-section").hidden = !g;
  if (!g) return;
  put($("members-title"), "Members of " + g.ip);
  put($("group-text"), [g.failure && "failed: " + g.failure, g.too_long, g.isolated,
    g.repair && "packet memory: " + count(g.repair.copies) + " copies sent again, " + count(g.repair.bytes) + " bytes retained"].filter(Boolean).join("; "));
  const cost = (m, f) => m.cost ? f(m.cost) : "–";
  table("members", [
    ["Member", (m, cell) => button(cell, m.ip, m.ip === chosen, () => choose(m.ip))],
    ["State", m => ofMember(sample, g, m).text],
    ["Role", m => m.role],
    ["Port", m => m.port + (m.switch ? " (" + m.switch + ")" : "")],
    ["Lag", m => m.role === "source" ? "–" : count(m.lag), "number"],
    ["NAKs", m => cost(m, c => count(c.naks)), "number"],
    ["Not ready", m => cost(m, c => count(c.rnr_naks)), "number"],
    ["Sent again", m => cost(m, c => count(c.repaired)), "number"],
    ["Round trip", m => cost(m, c => c.rtt_p50 ? seconds(c.rtt_p50) : "–"), "number"],
    ["Waited for", m => cost(m, c => seconds(c.waited)), "number"],
    ["Remark", m => [m.ip === g.slowed_by ? "the group is as fast as it" : m.ip === g.waits_for && g.stall_seconds ? "the group's ACK waits for it" : "", m.diagnosis || ""].filter(Boolean).join("; ")],
  ], [...g.members].sort((a, b) => a.ip.localeCompare(b.ip, "en", { numeric: true })), m => m.ip, m => [ofMember(sample, g, m).level, m.ip === chosen]);
  put($("members-note"), g.members_left_out ? count(g.members_left_out) + " more members are left out: gleam group show " + g.ip + " shows them." : "");
}

// drawPorts lists the ports, and what was dropped.
export function drawPorts(sample, chosen, choose) {
  table("ports", [
    ["Port", (p, cell) => button(cell, p.name, p.name === chosen, () => choose(p.name))],
    ["State", p => portState(p).text],
    ["In", p => bits(p.rx_bit_rate), "number"],
    ["Out", p => bits(p.tx_bit_rate), "number"],
    ["Frames in", p => units(p.rx_rate, "frames/s"), "number"],
    ["Frames out", p => units(p.tx_rate, "frames/s"), "number"],
    ["Queue", p => count(p.egress.bytes) + " bytes", "number"],
    ["Dropped", p => count(p.egress.dropped), "number"],
    ["MTU", p => p.mtu, "number"],
    ["XDP", p => p.xdp_mode],
    ["Driver", p => p.driver || "–"],
    ["Worker", p => p.worker, "number"],
  ], sample.ports, p => p.name, p => [portState(p).level, p.name === chosen]);
  const drops = Object.entries(sample.stats.drops || {}).sort();
  table("drops", [["Reason", d => d[0]], ["Packets", d => count(d[1]), "number"]], drops, d => d[0]);
  put($("drops-note"), drops.length ? "gleam explain counter NAME says what a reason means." : "No packet was dropped.");
}
