// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// What the page says of a group, a member and a port: a level, which has a colour and a stroke, and words.
// Levels are "idle", "well", "lag", "loss", "slow" and "bad", from the best to the worst.

import { count, seconds } from "./format.js";

const order = ["idle", "well", "lag", "loss", "slow", "bad"];
export const worse = (a, b) => order.indexOf(a.level) >= order.indexOf(b.level) ? a : b;
const state = (level, text) => ({ level, text });

export const isIdle = g => g.state === "idle"; // no member has sent yet
export const memberOf = (g, ip) => g.members.find(m => m.ip === ip);

// portState is what is to be said of a port. That its bridge blocks it is no fault.
export function portState(p) {
  if (!p) return state("idle", "not known");
  if (p.state !== "open") return state("bad", p.state);
  if (p.blocked) return state("idle", "blocked");
  if (p.unheard) return state("bad", "unheard");
  return p.up ? state("well", "up") : state("bad", "down");
}

// pointOf is the newest value of a member's series.
export const pointOf = (sample, g, m, what) => sample.points["group/" + g.ip + "/" + m.ip + "/" + what] || 0;

// again is the share of a group's data that is sent to a member again.
export function again(sample, g, m) {
  const data = g.rates ? g.rates.data_in : 0;
  return data > 0 ? pointOf(sample, g, m, "resent") / data : 0;
}
const leastAgain = 0.005; // below, nothing is said of losses

// A member is behind while its lag has been far longer than that of all others, for some samples in a row.
const kept = 5, leastLag = 16, farther = 2;
const lags = new Map();

// follow notes the lags of a sample. It is called once for each.
export function follow(sample) {
  const seen = new Set();
  for (const g of sample.groups) {
    const receivers = g.members.filter(m => m.role !== "source");
    const ranked = receivers.map(m => m.lag).sort((a, b) => b - a);
    for (const m of receivers) {
      const key = g.ip + " " + m.ip, others = m.lag === ranked[0] ? ranked[1] || 0 : ranked[0];
      seen.add(key);
      lags.set(key, [...(lags.get(key) || []), receivers.length > 1 && m.lag >= leastLag && m.lag >= farther * others].slice(-kept));
    }
  }
  for (const key of lags.keys()) if (!seen.has(key)) lags.delete(key);
}
function isBehind(g, m) {
  const last = lags.get(g.ip + " " + m.ip) || [];
  return last.length === kept && last.every(Boolean);
}

const moves = g => Boolean(g.rates && g.rates.data_in > 0);

// ofMember is what is to be said of a member.
export function ofMember(sample, g, m) {
  const port = sample.ports.find(p => p.name === m.port);
  if (port && portState(port).level !== "well") return state("bad", "port " + portState(port).text);
  if (!m.live) return state("bad", "dead");
  if (m.role === "source") return state(moves(g) ? "well" : "idle", moves(g) ? "sends" : g.stall_seconds ? "waits" : "pauses");
  if (g.stall_seconds && m.ip === g.waits_for) return state("bad", "stalls " + Math.floor(g.stall_seconds) + " s");
  if (m.slow || m.ip === g.slowed_by) return state("slow", "slows the group" + (m.slow ? ": " + m.slow : ""));
  if (m.diagnosis && !isIdle(g)) return state("bad", "gets no data");
  if (again(sample, g, m) >= leastAgain) return state("loss", (100 * again(sample, g, m)).toPrecision(2) + " % sent again");
  if (isBehind(g, m)) return state("lag", "lag " + count(m.lag));
  return state(moves(g) ? "well" : "idle", moves(g) ? "well" : g.stall_seconds ? "waits for others" : "idle");
}

// ofGroup is what is to be said of a group.
export function ofGroup(g) {
  if (g.failure) return state("bad", "failed");
  if (g.stall_seconds) return state("bad", "stalled " + Math.floor(g.stall_seconds) + " s");
  if (g.slowed_by) return state("slow", "slow" + (g.slow_cause ? ": " + g.slow_cause : ""));
  if (isIdle(g)) return state("idle", "idle");
  return state(moves(g) ? "well" : "idle", g.state);
}

// ofLeg is what is to be said of a group's way to another switch.
export function ofLeg(g, leg) {
  if (leg.state !== "up") return state("bad", leg.state);
  if (g.stall_seconds && leg.awaited) return state("bad", "stalls " + Math.floor(g.stall_seconds) + " s");
  if (leg.live < leg.members) return state("bad", count(leg.members - leg.live) + " dead");
  return state(moves(g) ? "well" : "idle", moves(g) ? "well" : "idle");
}

// at is a member with its port.
export function at(g, ip) {
  const m = memberOf(g, ip);
  return ip + (m && m.port ? " at port " + m.port : "");
}

// remarks are what wants to be looked at, by kind. An idle group is none.
export function remarks(sample) {
  const kinds = [["stall", "groups stall"], ["failure", "groups have failed"], ["slow", "groups are slow"], ["member", "members get no data"], ["port", "ports do not work"], ["link", "links to switches are down"]]
    .map(([kind, many]) => ({ kind, many, list: [] }));
  const add = (kind, key, text, show) => kinds.find(k => k.kind === kind).list.push({ key: kind + " " + key, text, show });
  for (const g of sample.groups) {
    const show = ip => ip && { group: g.ip, kind: "member", id: ip };
    if (g.stall_seconds) add("stall", g.ip, "Group " + g.ip + " stalls" + (g.waits_for ? ": its ACK waits for " + at(g, g.waits_for) : "") + ", for " + seconds(g.stall_seconds).replace(/\.\d/, ""), show(g.waits_for));
    else if (g.slowed_by) add("slow", g.ip, "Group " + g.ip + " is as fast as " + at(g, g.slowed_by) + (g.slow_cause ? ": " + g.slow_cause : ": its ACK waits for that member alone"), show(g.slowed_by));
    if (g.failure) add("failure", g.ip, "Group " + g.ip + " has failed: " + g.failure);
    if (isIdle(g)) continue;
    for (const m of g.members) if (m.diagnosis) add("member", g.ip + " " + m.ip, "Member " + m.ip + " of " + g.ip + ": " + m.diagnosis, show(m.ip));
  }
  for (const p of sample.ports) if (portState(p).level === "bad") add("port", p.name, "Port " + p.name + " is " + portState(p).text + (p.reason || p.unheard ? ": " + (p.reason || p.unheard) : ""), { kind: "port", id: p.name });
  for (const l of sample.topology.links || []) if (l.state === "down" && l.hellos_received) add("link", l.port, "The link to the switch at port " + l.port + " is down" + (l.reason ? ": " + l.reason : ""), { kind: "port", id: l.port });
  return kinds.filter(k => k.list.length);
}
