// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// What wants to be looked at. Many remarks of one kind are folded into one.

import { $, keyed, make, put } from "./dom.js";
import { count } from "./format.js";
import { remarks } from "./state.js";

const most = 3, listed = 50; // of a kind: shown each, and shown when it is unfolded

export function drawAttention(sample, show) {
  const kinds = remarks(sample), list = [];
  for (const k of kinds) {
    if (k.list.length <= most) list.push(...k.list);
    else list.push({ key: "many " + k.kind, text: count(k.list.length) + " " + k.many, below: k.list });
  }
  keyed($("attention"), list, x => x.key, create, (li, x) => fill(li, x, show));
  const n = kinds.reduce((n, k) => n + k.list.length, 0);
  $("calm").hidden = n > 0;
  document.title = (n ? "(" + n + ") " : "") + "Gleam switch";
}

const create = x => x.below ? make("li", {}, make("details", {}, make("summary"), make("ul"), make("p")))
  : make("li", {}, make("span"), " ", make("button", { type: "button" }, "Show"));

function fill(li, x, show) {
  if (!x.below) {
    put(li.firstElementChild, x.text);
    li.lastElementChild.hidden = !x.show;
    li.lastElementChild.onclick = () => show(x.show);
    return;
  }
  const [summary, ul, more] = li.firstElementChild.children;
  put(summary, x.text);
  keyed(ul, x.below.slice(0, listed), y => y.key, create, (item, y) => fill(item, y, show));
  put(more, x.below.length > listed ? "and " + count(x.below.length - listed) + " more: gleam doctor names all" : "");
}
