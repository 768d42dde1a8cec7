// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// The panel of what was chosen in the picture: a member, a port, or the switch; with its packets and events.

import { $, draw, keyed, make, put, set } from "./dom.js";
import { bits, count, hex, packets, plural, seconds } from "./format.js";
import { listEvents } from "./events.js";
import { drawPlots } from "./plots.js";
import { isIdle, memberOf, ofGroup, ofMember, portState } from "./state.js";

// drawPanel draws the panel; nothing is chosen if there is none. close takes the choice back.
export function drawPanel(sample, g, chosen, tier, now, close) {
  const panel = $("panel"), about = chosen && describe(sample, g, chosen);
  panel.hidden = !about;
  $("picture-hint").hidden = Boolean(about);
  if (!about) return;
  $("panel-close").onclick = close;
  put($("panel-title"), about.title);
  put($("panel-state"), about.state.text);
  $("panel-state").className = "state " + about.state.level;
  keyed($("panel-texts"), about.texts.filter(Boolean).map((text, i) => ({ text, i })), t => t.i, () => make("p"), (p, t) => put(p, t.text));
  keyed($("panel-facts"), about.facts.filter(f => f[1] !== undefined && f[1] !== ""), f => f[0], () => make("div", {}, make("dt"), make("dd")), (row, f) => {
    put(row.firstElementChild, f[0]);
    put(row.lastElementChild, String(f[1]));
  });
  drawWindow(about.window);
  drawPlots("panel-plots", about.plots, tier, now);
  put($("panel-command"), about.command || "");
  $("panel-packets").hidden = !about.window && !about.command;
  listEvents($("panel-events"), about.events);
  $("panel-no-events").hidden = $("panel-events").childElementCount > 0;
}

function describe(sample, g, chosen) {
  if (chosen.kind === "switch") return ofSwitch(sample);
  if (chosen.kind === "port") return ofPort(sample, sample.ports.find(p => p.name === chosen.id));
  const home = g || sample.groups.filter(x => memberOf(x, chosen.id)).sort((a, b) => isIdle(a) - isIdle(b))[0];
  const m = home && memberOf(home, chosen.id);
  if (m) return ofOne(sample, home, m);
  const former = g && (g.former || []).findLast(f => f.ip === chosen.id);
  return former && { title: former.ip, state: { level: "bad", text: "is a member no more: " + former.reason }, texts: [], facts: [["Was at port", former.port], ["Had all up to PSN", former.psn]], plots: [],
    events: e => e.member === former.ip };
}

// ofOne describes a member.
function ofOne(sample, g, m) {
  const c = m.cost, series = "group/" + g.ip + "/" + m.ip + "/", receives = m.role !== "source" && g.source;
  const others = sample.groups.filter(x => x.ip !== g.ip && memberOf(x, m.ip));
  const explained = sample.waits && sample.waits[g.ip], wait = (explained && explained.waits || []).find(w => w.members.includes(m.ip));
  return {
    title: m.ip, state: ofMember(sample, g, m),
    texts: [m.diagnosis, ...(wait ? [...(wait.reasons || []).map(r => r.text), ...(wait.ended_by || []).map(e => "What ends it" + (e.in_seconds === undefined ? "" : ", in " + seconds(e.in_seconds)) + ": " + e.text)] : [])],
    facts: [
      ["Group", g.ip + ", " + ofGroup(g).text], ["Role", m.role], ["Port", m.port + (m.switch ? " of the way to switch " + m.switch : "")], ["QPN", m.qpn], ["MAC", m.mac], ["VLAN", m.vlan],
      ...(receives ? [["Lag", plural(m.lag, "packet")], ["Gets", packets(g.rates && g.rates.progress[m.ip] || 0)], ["Pending", m.pending]] : []),
      ...(c ? [["Sequence NAKs", count(c.naks)], ["RNR NAKs (not ready)", count(c.rnr_naks)], ["Packets sent again", count(c.repaired)], ["Probes", count(c.probes)],
        ["Round trip, half below", c.rtt_p50 ? seconds(c.rtt_p50) : "not measured"], ["Round trip, 99 % below", c.rtt_p99 ? seconds(c.rtt_p99) : "not measured"], ["Waited for, beyond others", seconds(c.waited)]] : []),
      ["Other groups", others.length ? others.slice(0, 5).map(x => x.ip).join(", ") + (others.length > 5 ? " and " + (others.length - 5) + " more" : "") : undefined],
    ],
    window: receives ? { from: Number(g.ack_psn), to: Number(g.next_psn), has: Number(m.ack_psn), lag: m.lag } : undefined,
    command: "gleam trace " + g.ip + " --member " + m.ip + " -d 1s",
    plots: receives ? [{ key: "lag", title: "Lag", unit: "packets", series: [{ name: series + "lag", label: "" }] }, { key: "resent", title: "Sent again to it", unit: "packets/s", series: [{ name: series + "resent", label: "" }] }] : [],
    events: e => e.member === m.ip || e.port === m.port && !e.member || e.group === g.ip && !e.member,
  };
}

// ofPort describes a port.
function ofPort(sample, p) {
  if (!p) return undefined;
  const members = [...new Set(sample.groups.flatMap(g => g.members.filter(m => m.port === p.name).map(m => m.ip)))];
  const neighbour = (sample.topology.neighbours || []).find(n => n.port === p.name);
  return {
    title: "Port " + p.name, state: portState(p), texts: [p.reason, p.unheard, p.blocked && "Its bridge forwards nothing here: spanning tree keeps this link in reserve, or the port is disabled. This is no fault."],
    facts: [
      ["Leads to", neighbour ? "switch " + neighbour.switch : members.length ? members.slice(0, 8).join(", ") + (members.length > 8 ? " and " + (members.length - 8) + " more" : "") : "no member"],
      ["In", bits(p.rx_bit_rate)], ["Out", bits(p.tx_bit_rate)], ["Queue", count(p.egress.bytes) + " bytes"], ["Dropped", count(p.egress.dropped)], ["Went down", plural(p.downs, "time")],
      ["Rate limit", p.rate ? bits(p.rate) : undefined], ["MTU", p.mtu], ["XDP", p.xdp_mode], ["Driver", p.driver], ["MAC", p.mac], ["Bridge", p.bridge], ["Worker", p.worker],
    ],
    plots: [{ key: "rates", title: "Rate", unit: "bit/s", series: [{ name: "port/" + p.name + "/in", label: "in" }, { name: "port/" + p.name + "/out", label: "out" }] }],
    command: "gleam trace --port " + p.name + " -d 1s",
    events: e => e.port === p.name,
  };
}

// ofSwitch describes the switch.
function ofSwitch(sample) {
  const s = sample.stats, links = sample.topology.links || [];
  return {
    title: sample.topology.switch ? "Switch " + sample.topology.switch : "This switch", state: { level: "well", text: "gleamd " + sample.version.version }, texts: [],
    facts: [
      ["Started", new Date(sample.version.started).toLocaleString("en-GB")], ["Groups", count(s.groups)], ["Ports", count(sample.ports.length)], ["Data packets in", count(s.rx)], ["Copies out", count(s.copies)],
      ["Of them sent again", count(s.resent)], ["Feedback in", count(s.feedback_in)], ["Feedback out", count(s.feedback_out)], ["Packet memory free", Math.round(100 * s.frames_free / Math.max(1, s.frames)) + " %"],
      ["Links to switches", links.length ? links.map(l => l.port + " " + l.state).join(", ") : undefined],
    ],
    plots: [], events: e => !e.member && !e.group,
  };
}

// drawWindow draws which of the packets that are under way a member has.
function drawWindow(w) {
  const svg = $("panel-window"), total = w ? (w.to - w.from - 1) & 0xffffff : 0;
  svg.toggleAttribute("hidden", !w);
  if (!w) return put($("panel-window-text"), "");
  const has = Math.max(0, total - w.lag), share = total ? has / total : 1;
  if (!svg.firstElementChild) svg.append(draw("rect", { class: "lacks", x: 0, y: 0, width: 100, height: 10 }), draw("rect", { class: "has", x: 0, y: 0, height: 10 }));
  set(svg.lastElementChild, { width: 100 * share });
  const text = total ? "It has " + count(has) + " of the " + plural(total, "packet") + " under way, up to PSN " + hex(w.has) + (w.lag ? "; the newest is " + hex((w.to - 1) & 0xffffff) : "") : "It has all packets, up to PSN " + hex(w.has);
  set(svg, { "aria-label": text });
  put($("panel-window-text"), text + ".");
}

