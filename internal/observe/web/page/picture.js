// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// The picture of the switch, drawn as SVG. What is in it can be chosen by pointer and by keyboard.

import { $, draw, keyed, put, set } from "./dom.js";
import { layout, weight } from "./layout.js";
import { scene } from "./scene.js";

const letter = 6.9; // mean width of one, in pixels
const fit = (text, width) => text.length * letter > width ? text.slice(0, Math.max(3, Math.floor(width / letter) - 1)) + "…" : text;
const padding = 24;  // of the picture's frame, both sides
let unfolded = false;

// drawPicture draws a group, or all; chosen is what has its panel, and choose takes something else.
export function drawPicture(sample, g, chosen, choose) {
  const svg = $("picture"), width = Math.max(250, svg.parentElement.clientWidth - padding);
  const p = layout(scene(sample, g, unfolded), width);
  set(svg, { width: p.width, height: p.height, viewBox: `0 0 ${p.width} ${p.height}`, "aria-label": g ? "Picture of group " + g.ip : "Picture of all groups" });
  if (!svg.firstElementChild) {
    svg.append(draw("g", { class: "edges", "aria-hidden": "true" }), draw("g", { class: "nodes" }));
    svg.addEventListener("keydown", step);
  }
  keyed(svg.firstElementChild, p.edges, e => e.key, () => draw("g", {}, draw("path", { class: "line" }), draw("path", { class: "flow" }), draw("text", { "text-anchor": "middle" })), drawEdge);
  const act = x => () => {
    if (x.kind === "fold") unfolded = true;
    else return choose(x.target || { kind: x.kind, id: x.id });
    drawPicture(sample, g, chosen, choose);
  };
  keyed(svg.lastElementChild, [p.hub, ...p.ports, ...p.boxes], x => x.key, () => {
    const node = draw("g", { role: "button", tabindex: 0 }, draw("title"), draw("rect"), draw("g"));
    node.addEventListener("click", () => node.act());
    return node;
  }, (node, x) => {
    node.act = act(x);
    const target = x.target || x;
    drawNode(node, x, p.slim, Boolean(chosen) && chosen.kind === target.kind && chosen.id === target.id);
  });
}

// step goes to the next part by arrows, and chooses by Enter or the space bar.
function step(e) {
  const nodes = [...$("picture").lastElementChild.children], at = nodes.indexOf(document.activeElement);
  if (at < 0) return;
  const by = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1 }[e.key];
  if (by) nodes[(at + by + nodes.length) % nodes.length].focus();
  else if (e.key === "Enter" || e.key === " ") nodes[at].act();
  else return;
  e.preventDefault();
}

function drawEdge(node, e) {
  const [line, flow, text] = node.children, wide = weight(e.rate);
  set(node, { class: "edge " + e.level });
  set(line, { d: e.path, "stroke-width": wide });
  set(flow, { d: e.path, class: e.rate > 0 && e.level !== "bad" ? "flow" : "flow still", "stroke-width": Math.max(1.5, wide / 3) });
  const label = e.at && e.label && e.room > 70 ? e.label : "";
  put(text, label);
  if (label) set(text, { x: e.at[0], y: e.at[1] - wide / 2 - 4 });
}

function drawNode(node, x, slim, isChosen) {
  const [title, rect, texts] = node.children;
  put(title, x.says);
  set(node, { class: ["node", x.kind, x.level || "", x.blocked ? "blocked" : "", isChosen ? "chosen" : ""].filter(Boolean).join(" "), "aria-label": x.says, "aria-pressed": x.kind === "fold" ? undefined : String(isChosen) });
  set(rect, { x: x.x + 1, y: x.y + 1, width: x.w - 2, height: x.h - 2, rx: x.kind === "member" || x.kind === "fold" ? 10 : 4 });
  const lines = x.kind === "port" && x.text ? [x.text] : x.kind === "switch" && slim ? ["Gleam", ...x.lines.slice(1).map(l => l.replace(/^(in|out) .*/, ""))] : x.lines;
  keyed(texts, lines.filter(Boolean).map((text, i) => ({ text, i })), l => l.i, () => draw("text", { "text-anchor": "middle" }), (t, l) => {
    put(t, fit(l.text, x.w - 8));
    const one = lines.length === 1, top = x.kind === "switch" ? 18 : one ? x.h / 2 + 4 : 18;
    set(t, { x: x.x + x.w / 2, y: x.y + top + 16 * l.i, class: l.i ? "second" : "first" });
  });
}
