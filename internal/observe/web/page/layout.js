// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Where the parts of the picture are: the switch with its ports, hosts on both sides of it, and between it and
// members behind other switches those switches. Nothing here draws.

const box = { width: 172, height: 42, pitch: 54 };
const middle = 132;              // width of this switch
const bar = 52;                  // its width on a narrow page, where all hosts are to its right
const head = 62;                 // its title
const port = { height: 22, width: 46, pitch: 30, unused: 6 }; // unused: the most ports without a link that are drawn
export const narrow = width => width < 680;

// layout places the hosts and switches of a scene (scene.js) in a picture of a width.
export function layout(scene, width) {
  const slim = narrow(width);
  const left = slim ? [] : scene.hosts.filter(h => h.sends), right = slim ? scene.hosts : scene.hosts.filter(h => !h.sends);
  const hub = slim ? { x: 0, w: bar } : { x: left.length ? Math.round((width - middle) * (scene.switches.length ? 0.34 : 0.45)) : 0, w: middle };
  const far = slim ? Math.min(box.width, width - bar - 76) : box.width;
  const boxes = [], edges = [], ends = new Map(); // ends: by port and side, the y of what is there
  const note = (name, side, y) => ends.set(name + " " + side, [...(ends.get(name + " " + side) || []), y]);
  const y0 = head + box.height / 2 + 6;

  // The right side: hosts at this switch, then each other switch with the hosts behind it.
  let y = y0;
  const later = []; // edges from ports, whose places follow from all that is there
  const place = (item, x, at, w) => boxes.push({ ...item, x, y: at - box.height / 2, w, h: box.height });
  for (const h of right.filter(h => !h.behind)) {
    place(h, width - far, y, far);
    note(h.port, 1, y);
    later.push({ item: h, side: 1, x: width - far, y });
    y += box.pitch;
  }
  for (const s of scene.switches) {
    const members = right.filter(h => h.behind === s.id);
    if (slim) {
      place(s, width - far, y, far);
      note(s.port, 1, y);
      later.push({ item: s, side: 1, x: width - far, y });
      const top = y + box.height / 2;
      for (const h of members) {
        y += box.pitch;
        place(h, width - far + 18, y, far - 18);
        edges.push({ ...edgeOf(h), path: `M${width - far + 8} ${top}V${y}H${width - far + 18}`, label: undefined });
      }
      y += box.pitch;
      continue;
    }
    const rows = Math.max(1, members.length), at = y + (rows - 1) * box.pitch / 2;
    const x = Math.round(hub.x + hub.w + (width - far - hub.x - hub.w - box.width) / 2);
    place(s, x, at, box.width);
    note(s.port, 1, at);
    later.push({ item: s, side: 1, x, y: at });
    members.forEach((h, i) => {
      place(h, width - far, y + i * box.pitch, far);
      edges.push(curve(h, x + box.width, at, width - far, y + i * box.pitch));
    });
    y += rows * box.pitch;
  }
  const low = y;

  // The left side: what sends, in the middle of the height.
  y = Math.max(y0, y0 + (low - y0 - left.length * box.pitch) / 2);
  for (const h of left) {
    place(h, 0, y, box.width);
    note(h.port, -1, y);
    later.push({ item: h, side: -1, x: box.width, y });
    y += box.pitch;
  }

  // Ports are where their links are, and those without below, from the top down without overlap.
  const ports = [], free = { 1: y0 - port.pitch / 2, "-1": y0 - port.pitch / 2 };
  const middleOf = list => list.reduce((a, b) => a + b, 0) / list.length;
  let room = port.unused;
  const drawn = scene.ports.filter(p => ends.has(p.id + " 1") || ends.has(p.id + " -1") || p.level === "bad" || p.blocked || room-- > 0);
  const sides = drawn.map(p => {
    const side = ends.has(p.id + " -1") ? -1 : 1, list = ends.get(p.id + " " + side);
    return { p, side, at: list ? middleOf(list) : Infinity };
  }).sort((a, b) => a.at - b.at);
  for (const { p, side, at } of sides) {
    const py = Math.max(free[side], at === Infinity ? 0 : at);
    free[side] = py + port.pitch;
    const w = slim ? bar - 8 : port.width;
    ports.push({ ...p, x: side > 0 ? hub.x + hub.w - w : hub.x, y: py - port.height / 2, w, h: port.height, side });
  }
  for (const { item, side, x, y: to } of later) {
    const p = ports.find(p => p.id === item.port);
    const begin = side > 0 ? hub.x + hub.w : hub.x, from = p ? p.y + p.h / 2 : to;
    edges.push(curve(item, begin, from, x, to));
  }
  const height = Math.max(low, y, ...ports.map(p => p.y + p.h + 16)) + 4;
  return { width, height, slim, hub: { ...scene.hub, x: hub.x, y: 0, w: hub.w, h: height }, ports, boxes, edges };
}

// edgeOf is the link of a host or switch.
const edgeOf = item => ({ key: item.key, level: item.level, rate: item.rate, label: item.label });

// curve is a link from the switch's side at (x1, y1) to the item's at (x2, y2), in the direction of the data.
function curve(item, x1, y1, x2, y2) {
  const mid = (x1 + x2) / 2;
  const path = item.gives ? `M${x2} ${y2}C${mid} ${y2} ${mid} ${y1} ${x1} ${y1}` : `M${x1} ${y1}C${mid} ${y1} ${mid} ${y2} ${x2} ${y2}`;
  return { ...edgeOf(item), path, at: [mid, (y1 + y2) / 2], room: Math.abs(x2 - x1) };
}

// weight is the width of a link's line: thicker by a third of a step for each factor of ten.
export const weight = rate => rate < 1e4 ? 1.5 : Math.min(10, 1.5 + 1.4 * Math.log10(rate / 1e4));
