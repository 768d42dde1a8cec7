// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// The page's data are server-sent events of /live: "sample" (internal/observe/web/sample.go), "events"
// (api.Events) and "trouble" (api.Error); and /history, what was before.

import { drawAttention } from "./attention.js";
import { $, keyed, make, put, set } from "./dom.js";
import { addEvents } from "./events.js";
import { drawPanel } from "./panel.js";
import * as past from "./past.js";
import { drawPicture } from "./picture.js";
import { drawPlots } from "./plots.js";
import { follow, isIdle } from "./state.js";
import { drawGroups, drawMembers, drawPorts } from "./tables.js";

let sample;
let group;            // address of the chosen group; "": all; undefined: nobody has chosen
let chosen;           // of the picture: {kind, id}
let tier = 0;         // of the plots

// shownGroup is the group that the picture shows; none: all groups.
function shownGroup() {
  const g = sample.groups.find(g => g.ip === group);
  if (g || group === "") return g;
  const busy = sample.groups.filter(g => !isIdle(g));
  return busy.length === 1 ? busy[0] : sample.groups.length === 1 ? sample.groups[0] : undefined;
}

function chooseGroup(ip) {
  group = ip;
  if (chosen && chosen.kind === "member") chosen = undefined;
  drawAll();
}

function choose(what) {
  if (what && what.group) group = what.group;
  chosen = chosen && what && chosen.kind === what.kind && chosen.id === what.id ? undefined : what && { kind: what.kind, id: what.id };
  drawAll();
}

// show goes to what a remark is about.
function show(what) {
  chosen = undefined;
  choose(what);
  $("panel-title").focus();
}

function drawAll() {
  const g = shownGroup(), now = Date.parse(sample.time) / 1000;
  if (g) past.load("group/" + g.ip);
  drawAttention(sample, show);
  drawChoice(g);
  drawPanel(sample, g, chosen, tier, now, () => choose(undefined)); // before the picture, which has the rest of the width
  drawPicture(sample, g, chosen, choose);
  drawPlots("plots", plotsOf(g), tier, now);
  drawGroups(sample, g && g.ip, chooseGroup);
  drawMembers(sample, g, chosen && chosen.kind === "member" ? chosen.id : "", ip => choose({ kind: "member", id: ip }));
  drawPorts(sample, chosen && chosen.kind === "port" ? chosen.id : "", name => choose({ kind: "port", id: name }));
}

// drawChoice fills the choice of what the picture shows.
function drawChoice(g) {
  const select = $("picture-of");
  keyed(select, [{ ip: "" }, ...sample.groups], x => x.ip, () => make("option"), (o, x) => {
    o.value = x.ip;
    put(o, x.ip ? x.ip + (isIdle(x) ? " (idle)" : "") : "all groups");
  });
  select.value = g ? g.ip : "";
}

// plotsOf are the plots of the switch, and of a group's receivers.
function plotsOf(g) {
  const list = [
    { key: "rate", title: "Throughput", unit: "bit/s", series: [{ name: "switch/in", label: "payload in" }, { name: "switch/out", label: "out of all ports" }] },
    { key: "again", title: "Sent again, and dropped", unit: "packets/s", series: [{ name: "switch/resent", label: "sent again" }, { name: "switch/dropped", label: "dropped" }] },
  ];
  if (!g || !g.source) return list;
  const receivers = g.members.filter(m => m.role !== "source" && !m.switch);
  const of = what => receivers.map(m => ({ name: "group/" + g.ip + "/" + m.ip + "/" + what, label: m.ip }));
  return [...list, { key: "lag", title: "Lag of each member", unit: "packets", series: of("lag") }, { key: "loss", title: "Sent again to each member", unit: "packets/s", series: of("resent") }];
}

$("picture-of").addEventListener("change", e => chooseGroup(e.target.value));
for (const [text, t] of past.ranges) {
  $("ranges").append(make("button", { type: "button", "aria-pressed": String(t === tier) }, text));
  $("ranges").lastElementChild.addEventListener("click", () => {
    tier = t;
    [...$("ranges").children].forEach((b, i) => set(b, { "aria-pressed": String(past.ranges[i][1] === tier) }));
    if (sample) drawAll();
  });
}
document.addEventListener("keydown", e => {
  if (e.key !== "Escape" || !chosen) return;
  const key = chosen.kind === "switch" ? "switch" : chosen.kind + " " + chosen.id;
  choose(undefined);
  const node = document.querySelector('#picture .nodes [data-key="' + CSS.escape(key) + '"]');
  if (node) node.focus();
});
addEventListener("resize", () => { if (sample) drawAll(); });

const source = new EventSource("live");
const say = text => put($("connection"), text);
source.addEventListener("open", () => past.reset()); // what was missed is in the history
source.addEventListener("sample", e => {
  const before = sample;
  sample = JSON.parse(e.data);
  if (before && before.version.started !== sample.version.started) past.reset();
  say("connected");
  put($("identity"), "gleamd " + sample.version.version + (sample.topology.switch ? ", switch " + sample.topology.switch : ""));
  past.load("switch");
  past.load("port");
  past.add(Date.parse(sample.time) / 1000, sample.points);
  follow(sample);
  drawAll();
});
source.addEventListener("events", e => addEvents(JSON.parse(e.data)));
source.addEventListener("trouble", e => say("the switch does not answer: " + JSON.parse(e.data).error));
source.addEventListener("error", () => say(source.readyState === EventSource.CLOSED
  ? "refused: too many browsers, or no token; load the page again" : "connection lost: what is shown is old; trying again"));
