// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// The events of the switch, newest first.

import { $, keyed, make } from "./dom.js";
import { clock } from "./format.js";

const bad = new Set(["rejected", "evicted", "failed", "refused", "conflict", "mismatch", "mtu", "storage", "stalled", "slow"]);
const kept = 200;
let seen = 0, all = [];

const textOf = e => [e.group, e.member, e.port && (e.member ? "at port " : "port ") + e.port, e.kind, e.psn === undefined ? "" : "at PSN " + e.psn].filter(Boolean).join(" ") +
  (e.reason ? ": " + e.reason : "") + (e.by ? ", by " + e.by : "");

// create makes the line of an event.
const create = e => make("li", {}, make("time", { datetime: e.time }, clock(e.time)), make("span", { class: bad.has(e.kind) ? "bad" : "" }, textOf(e)));

// addEvents takes an answer of the switch.
export function addEvents(es) {
  if (es.last < seen) { // gleamd was restarted
    $("events").replaceChildren();
    seen = 0;
    all = [];
  }
  for (const e of es.events) {
    if (e.seq <= seen) continue;
    seen = e.seq;
    all.unshift(e);
    $("events").prepend(create(e));
  }
  all.length = Math.min(all.length, kept);
  while ($("events").children.length > kept) $("events").lastElementChild.remove();
}

// listEvents fills a list with the newest events that fit.
export function listEvents(ul, fits) {
  keyed(ul, all.filter(fits).slice(0, 12), e => e.seq, create, () => {});
}
