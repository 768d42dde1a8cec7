// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// What the picture shows: of one group its members, or of the whole switch all hosts; with ports, other switches,
// and the rate and state of each link.

import { bits, count, plural } from "./format.js";
import { ofLeg, ofMember, portState, worse } from "./state.js";

const most = 14; // hosts that are shown each; of more, those that are well are folded into one

// scene is that of a group, or of all if there is none.
export function scene(sample, g, unfolded) {
  const ports = sample.ports.map(p => ({ key: "port " + p.name, kind: "port", id: p.name, level: portState(p).level !== "well" ? portState(p).level : p.rx_bit_rate + p.tx_bit_rate > 0 ? "well" : "idle",
    blocked: p.blocked, text: p.name, says: "port " + p.name + ", " + portState(p).text + ", " + bits(p.rx_bit_rate) + " in, " + bits(p.tx_bit_rate) + " out" }));
  const hosts = g ? membersOf(sample, g) : hostsOf(sample);
  const switches = g ? switchesOf(g) : [];
  if (!g) for (const l of (sample.topology.neighbours || [])) switches.push({ key: "switch " + l.switch, kind: "neighbour", id: l.switch, port: l.port, level: l.state === "up" ? "well" : "bad",
    lines: ["switch " + short(l.switch), l.state === "up" ? "neighbour" : "down"], rate: 0, says: "neighbour switch " + l.switch + " at port " + l.port + ", " + l.state });
  for (const s of switches) s.target = { kind: "port", id: s.port };
  const here = sample.topology.switch;
  const outs = sample.ports.reduce((n, p) => n + p.tx_bit_rate, 0), ins = sample.ports.reduce((n, p) => n + p.rx_bit_rate, 0);
  return {
    hub: { key: "switch", kind: "switch", id: "switch", lines: ["Gleam switch", ...(here ? [short(here)] : []), "in " + bits(ins), "out " + bits(outs)],
      says: "this switch" + (here ? ", " + here : "") + ", " + bits(ins) + " in, " + bits(outs) + " out" },
    ports, hosts: unfolded ? hosts : fold(hosts), switches,
  };
}

const short = id => id.replace(/^0+(?=.)/, "");

// membersOf has the members of a group. What a receiver gets is what it acknowledges, in packets of the mean length.
function membersOf(sample, g) {
  const length = g.rates && g.rates.data_in > 0 ? g.bit_rate / g.rates.data_in : 0;
  return g.members.map(m => {
    const s = ofMember(sample, g, m), sends = m.role === "source";
    const rate = sends ? g.bit_rate : (g.rates && g.rates.progress[m.ip] || 0) * length;
    return {
      key: "member " + m.ip, kind: "member", id: m.ip, port: m.port, behind: m.switch && g.tree ? m.switch : undefined, sends: sends && !m.switch, level: s.level, rate,
      lines: [m.ip, (sends ? "source, " : "") + s.text], label: m.switch ? undefined : bits(rate), gives: sends,
      says: m.role + " " + m.ip + (m.port ? " at port " + m.port : "") + ": " + s.text + (sends ? "" : ", lag " + count(m.lag)) + ", " + bits(rate),
    };
  }).sort(byAddress);
}

const byAddress = (a, b) => a.id.localeCompare(b.id, "en", { numeric: true });

// switchesOf has the other switches of a group's tree.
function switchesOf(g) {
  const length = g.rates && g.rates.data_in > 0 ? g.bit_rate / g.rates.data_in : 0;
  return (g.tree && g.tree.legs || []).map(l => {
    const s = ofLeg(g, l), rate = l.source ? g.bit_rate : (g.rates && g.rates.progress[l.switch] || 0) * length;
    return {
      key: "switch " + l.switch, kind: "neighbour", id: l.switch, port: l.port, level: s.level, rate, gives: l.source, label: bits(rate),
      lines: ["switch " + short(l.switch), (l.source ? "the source is behind it" : plural(l.live, "member") + ", " + s.text)],
      says: "switch " + l.switch + " at port " + l.port + ": " + count(l.live) + " of " + plural(l.members, "member") + " live, " + s.text + ", lag " + count(l.lag),
    };
  });
}

// hostsOf has all members of all groups, each once, with the worst that is to be said of it.
function hostsOf(sample) {
  const hosts = new Map();
  for (const g of sample.groups) {
    for (const m of g.members) {
      const s = ofMember(sample, g, m), h = hosts.get(m.ip) || { ip: m.ip, port: m.port, behind: m.switch, state: s, groups: 0, sends: false };
      h.state = worse(h.state, s);
      h.groups++;
      h.sends = h.sends || m.role === "source" && Boolean(g.rates && g.rates.data_in > 0);
      hosts.set(m.ip, h);
    }
  }
  const neighbours = new Set((sample.topology.neighbours || []).map(n => n.switch));
  return [...hosts.values()].map(h => {
    const p = sample.ports.find(p => p.name === h.port), rate = p ? Math.max(p.rx_bit_rate, p.tx_bit_rate) : 0;
    return {
      key: "member " + h.ip, kind: "member", id: h.ip, port: h.port, behind: neighbours.has(h.behind) ? h.behind : undefined, sends: h.sends && !h.behind, gives: h.sends, level: h.state.level, rate,
      lines: [h.ip, plural(h.groups, "group") + (h.state.level === "idle" || h.state.level === "well" ? "" : ", " + h.state.text)], label: h.behind ? undefined : bits(rate),
      says: "host " + h.ip + (h.port ? " at port " + h.port : "") + ", in " + plural(h.groups, "group") + ": " + h.state.text,
    };
  }).sort(byAddress);
}

// fold leaves, of many hosts, those with a remark and some others.
function fold(hosts) {
  if (hosts.length <= most) return hosts;
  const matters = h => h.sends || !["idle", "well"].includes(h.level);
  let room = Math.max(3, most - 1 - hosts.filter(matters).length);
  const shown = hosts.filter(h => matters(h) || !h.behind && room-- > 0 || h.behind && room-- > 0).slice(0, 4 * most), rest = hosts.filter(h => !shown.includes(h));
  if (!rest.length) return hosts;
  const calm = rest.every(h => !matters(h));
  return [...shown, { key: "fold", kind: "fold", id: "fold", port: rest[0].port, behind: undefined, level: calm ? "idle" : "bad", rate: 0, lines: ["+ " + plural(rest.length, "host"), calm ? "well or idle: show" : "show"],
    says: "show " + plural(rest.length, "more host") }];
}
