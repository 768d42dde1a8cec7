// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// The values of the last quarter of an hour: gleamd has them (internal/observe/web/history.go), and each sample
// brings the next ones. A series has a list of [time in seconds, value] for each tier.

const tiers = [{ step: 1, points: 120 }, { step: 10, points: 90 }];
const all = new Map();    // name: lists, by tier
const loaded = new Set(); // what was asked for: "switch", "port", "group/ADDRESS"

export const ranges = [["2 minutes", 0], ["15 minutes", 1]]; // and the tier that has them
export const span = tier => tiers[tier].step * tiers[tier].points;

// load asks for the series of the switch, of the ports or of a group, once.
export async function load(of) {
  if (loaded.has(of)) return;
  if (of.startsWith("group/")) for (const old of [...loaded]) if (old.startsWith("group/")) forget(old); // one group is shown
  loaded.add(of);
  try {
    const answer = await fetch("history?of=" + encodeURIComponent(of));
    if (!answer.ok) throw new Error(answer.statusText);
    const got = await answer.json();
    got.forEach((t, tier) => {
      for (const [name, values] of Object.entries(t.series)) {
        const list = values.map((v, i) => [t.last - (values.length - 1 - i) * t.step, v]).filter(p => p[1] !== null);
        const have = lists(name);
        have[tier] = [...list.filter(p => !have[tier].length || p[0] < have[tier][0][0]), ...have[tier]];
      }
    });
  } catch {
    loaded.delete(of); // the next sample asks again
  }
}

function forget(of) {
  loaded.delete(of);
  for (const name of all.keys()) if (name.startsWith(of + "/")) all.delete(name);
}

// reset forgets all: gleamd has started again.
export function reset() {
  all.clear();
  loaded.clear();
}

function lists(name) {
  if (!all.has(name)) all.set(name, tiers.map(() => []));
  return all.get(name);
}

// add takes the points of a sample. Of a step the mean is kept, and of a lag the largest.
export function add(time, points) {
  for (const [name, value] of Object.entries(points)) {
    if (![...loaded].some(of => name.startsWith(of + "/"))) continue;
    lists(name).forEach((list, tier) => {
      const begin = Math.floor(time / tiers[tier].step) * tiers[tier].step, last = list[list.length - 1];
      if (!last || begin > last[0]) list.push([begin, value, 1]);
      else if (name.endsWith("/lag")) last[1] = Math.max(last[1], value);
      else {
        last[2] = (last[2] || 1) + 1;
        last[1] += (value - last[1]) / last[2];
      }
      while (list.length && list[0][0] < time - span(tier) - tiers[tier].step) list.shift();
    });
  }
}

// of returns a series' list; empty if there is none.
export const of = (name, tier) => (all.get(name) || [[], []])[tier];
