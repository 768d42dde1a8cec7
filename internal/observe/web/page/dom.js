// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Elements of the page. Texts of the switch enter as text, never as HTML.

export const $ = id => document.getElementById(id);
export const put = (node, text) => { if (node.textContent !== text) node.textContent = text; };

// set gives an element attributes; undefined removes one.
export function set(node, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined) node.removeAttribute(name);
    else if (node.getAttribute(name) !== String(value)) node.setAttribute(name, value);
  }
  return node;
}

// make makes an element of HTML with children, which are elements or texts.
export function make(name, attributes = {}, ...children) {
  const node = set(document.createElement(name), attributes);
  node.append(...children);
  return node;
}

// draw makes an element of SVG.
export function draw(name, attributes = {}, ...children) {
  const node = set(document.createElementNS("http://www.w3.org/2000/svg", name), attributes);
  node.append(...children);
  return node;
}

// keyed makes the children of parent those of a list, and keeps what is there: focus stays.
export function keyed(parent, list, key, create, fill) {
  const old = new Map([...parent.children].map(c => [c.dataset.key, c]));
  let at = parent.firstElementChild;
  for (const x of list) {
    const k = String(key(x));
    let node = old.get(k);
    if (!node) {
      node = create(x);
      node.dataset.key = k;
    }
    old.delete(k);
    if (node === at) at = at.nextElementSibling;
    else parent.insertBefore(node, at);
    fill(node, x);
  }
  for (const node of old.values()) node.remove();
}

// table fills a table. A column is [title, value, "number"?]; the first one has the row's name.
export function table(id, columns, rows, key, look) {
  const t = $(id);
  if (!t.tHead) {
    const head = t.createTHead().insertRow();
    for (const [title, , kind] of columns) head.append(make("th", { scope: "col", class: kind || "" }, title));
    t.createTBody();
  }
  keyed(t.tBodies[0], rows, key, () => {
    const tr = make("tr");
    columns.forEach(([, , kind], i) => tr.append(make(i ? "td" : "th", { scope: i ? undefined : "row", class: kind || "" })));
    return tr;
  }, (tr, x) => {
    columns.forEach(([, value], i) => {
      const v = value(x, tr.cells[i]);
      if (v !== undefined) put(tr.cells[i], String(v));
    });
    const [level, chosen] = look ? look(x) : [];
    tr.className = [level || "", chosen ? "chosen" : ""].join(" ").trim();
  });
}

// button fills a table's cell with a button.
export function button(cell, text, pressed, act) {
  let b = cell.firstElementChild;
  if (!b) {
    b = make("button", { type: "button" });
    cell.append(b);
  }
  b.onclick = act;
  put(b, text);
  set(b, { "aria-pressed": String(pressed) });
}
