// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Numbers as people read them.

export const hex = n => "0x" + n.toString(16).padStart(6, "0"); // of a number: QPNs and PSNs come as such text
export const count = n => n.toLocaleString("en");

const steps = [[1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""]];

// scale returns the factor and the prefix of the unit in which x is read best.
export const scale = x => steps.find(([factor]) => x >= factor) || [1, ""];

// units writes an amount: bits with three digits and a prefix, others in full.
export function units(x, unit) {
  if (!unit.startsWith("bit")) return count(Math.round(x)) + " " + unit;
  const [factor, prefix] = scale(x);
  return (factor === 1 ? String(Math.round(x)) : (x / factor).toPrecision(3)) + " " + prefix + unit;
}
export const bits = x => units(x, "bit/s");
export const packets = x => units(x, "packets/s");

// seconds writes a time.
export function seconds(x) {
  if (x >= 1) return (x < 10 ? x.toFixed(1) : String(Math.round(x))) + " s";
  return x >= 1e-3 ? (x * 1e3).toPrecision(3) + " ms" : Math.round(x * 1e6) + " µs";
}

export const clock = time => new Date(time).toLocaleTimeString("en-GB");
export const plural = (n, word) => count(n) + " " + word + (n === 1 ? "" : "s");
