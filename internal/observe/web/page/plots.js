// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Plots of the last minutes, with axes.

import { $, draw, keyed, make, put, set } from "./dom.js";
import { scale, units } from "./format.js";
import { of, span } from "./past.js";

const height = 150, edge = { left: 46, right: 10, top: 10, bottom: 22 };
const lines = 4; // that have a colour and a name; of more the largest ones

// drawPlots draws plots into an element. A plot is {key, title, unit, series: [{name, label}]}; now is in seconds.
export function drawPlots(id, plots, tier, now) {
  keyed($(id), plots, p => p.key, () => make("figure", {}, make("figcaption", {}, make("span"), make("b")), draw("svg", { role: "img" }), make("ul", { class: "legend" })),
    (figure, p) => drawPlot(figure, p, tier, now));
}

function drawPlot(figure, p, tier, now) {
  const [caption, svg, legend] = figure.children, width = Math.max(200, Math.floor(figure.clientWidth - 22) || 300);
  const series = p.series.map(s => ({ ...s, points: of(s.name, tier).filter(v => v[0] >= now - span(tier)) })).map(s => ({ ...s, last: newest(s.points, now, tier), most: Math.max(0, ...s.points.map(v => v[1])) }));
  const ranked = series.length > lines ? [...series].sort((a, b) => b.most - a.most) : series;
  const most = Math.max(...series.map(s => s.most), 0), top = nice(most, p.unit.startsWith("bit") ? 1e6 : 10), [factor, prefix] = scale(top);
  const x = t => edge.left + (width - edge.left - edge.right) * (1 - (now - t) / span(tier)), y = v => edge.top + (height - edge.top - edge.bottom) * (1 - v / top);
  put(caption.firstChild, p.title + ", " + (prefix === "k" && !p.unit.startsWith("bit") ? "thousand " : prefix === "M" && !p.unit.startsWith("bit") ? "million " : prefix) + p.unit);
  put(caption.lastChild, p.series.length === 1 ? units(series[0].last || 0, p.unit) : "");
  set(svg, { width, height, viewBox: `0 0 ${width} ${height}`, "aria-label": p.title + ": " + (ranked.slice(0, lines).map(s => (s.label || "now") + " " + units(s.last || 0, p.unit)).join(", ") || "nothing yet") + "; at most " + units(most, p.unit) + " in the last " + span(tier) / 60 + " minutes" });
  if (!svg.firstElementChild) svg.append(draw("g", { class: "axes" }), draw("g", { class: "curves" }));
  drawAxes(svg.firstElementChild, [0, top / 2, top].map(v => ({ at: y(v), text: written(v / factor) })),
    [0, 0.25, 0.5, 0.75, 1].map(part => ({ at: x(now - part * span(tier)), text: part ? "−" + ago(part * span(tier)) : "now" })), width);
  keyed(svg.lastElementChild, ranked.map((s, i) => ({ s, i })).reverse(), d => d.s.name, () => draw("path"), (path, d) =>
    set(path, { d: curve(d.s.points, x, y, tier), class: d.i < lines ? "line" + d.i : "others" }));
  keyed(legend, p.series.length > 1 ? ranked.slice(0, lines) : [], s => s.name, () => make("li"), (li, s) => {
    put(li, s.label + " " + units(s.last || 0, p.unit));
    set(li, { class: "line" + ranked.indexOf(s) });
  });
}

// newest is the last value; none if it is old.
function newest(points, now, tier) {
  const last = points[points.length - 1];
  return last && now - last[0] < 12 + 10 * tier ? last[1] : undefined;
}

// nice is the end of an axis that has room for most: a digit times a power of ten.
function nice(most, least) {
  if (most <= least) return least;
  const power = 10 ** Math.floor(Math.log10(most));
  return [1, 2, 3, 4, 5, 6, 8, 10].find(n => n * power >= most) * power;
}
const written = v => String(Number(v.toPrecision(3)));
const ago = s => s < 60 ? s + " s" : (s / 60).toFixed(2).replace(/\.?0+$/, "") + " min";

function drawAxes(axes, ys, xs, width) {
  keyed(axes, [...ys.map((t, i) => ({ ...t, key: "y" + i, y: true })), ...xs.map((t, i) => ({ ...t, key: "x" + i }))], t => t.key, () => draw("g", {}, draw("line"), draw("text")), (g, t) => {
    const [line, text] = g.children;
    put(text, t.text);
    if (t.y) {
      set(line, { x1: edge.left, x2: width - edge.right, y1: t.at, y2: t.at });
      set(text, { x: edge.left - 5, y: t.at + 4, "text-anchor": "end" });
    } else {
      const small = width < 330 && ["x1", "x3"].includes(t.key);
      set(line, { x1: t.at, x2: t.at, y1: height - edge.bottom, y2: height - edge.bottom + 4 });
      set(text, { x: Math.min(t.at, width - edge.right), y: height - 6, "text-anchor": t.key === "x0" ? "end" : "middle", visibility: small ? "hidden" : "visible" });
    }
  });
}

// curve joins the points whose times are close: nothing is known between others.
function curve(points, x, y, tier) {
  let path = "", before;
  for (const [t, v] of points) {
    path += (before !== undefined && t - before < (tier ? 21 : 12) ? "L" : "M") + x(t).toFixed(1) + " " + y(v).toFixed(1);
    before = t;
  }
  return path;
}
