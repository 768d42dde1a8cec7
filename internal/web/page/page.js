// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// The page's data are server-sent events of /live: "sample" (internal/web/sample.go), "events"
// (api.Events) and "trouble" (api.Error). Texts of the switch enter as text, never as HTML.

const $ = id => document.getElementById(id);
const hex = n => "0x" + n.toString(16).padStart(6, "0"); // of a number: QPNs and PSNs come as such text
const count = n => n.toLocaleString("en");
const put = (node, text) => { if (node.textContent !== text) node.textContent = text; };

// units writes a rate with three digits.
function units(x, unit) {
  for (const [factor, prefix] of [[1e9, "G"], [1e6, "M"], [1e3, "k"]]) {
    if (x >= factor) return (x / factor).toPrecision(3) + " " + prefix + unit;
  }
  return Math.round(x) + " " + unit;
}

// keyed makes the children of parent those of keys, and keeps what is there: focus stays.
function keyed(parent, list, key, make, fill) {
  const old = new Map([...parent.children].map(c => [c.dataset.key, c]));
  let at = parent.firstElementChild;
  for (const x of list) {
    const k = String(key(x));
    let node = old.get(k);
    if (!node) {
      node = make(x);
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
function table(id, columns, rows, key, look) {
  const t = $(id);
  if (!t.tHead) {
    const head = t.createTHead().insertRow();
    for (const [title, , kind] of columns) {
      const th = document.createElement("th");
      th.scope = "col";
      th.textContent = title;
      th.className = kind || "";
      head.append(th);
    }
    t.createTBody();
  }
  keyed(t.tBodies[0], rows, key, () => {
    const tr = document.createElement("tr");
    columns.forEach(([, , kind], i) => {
      const cell = document.createElement(i ? "td" : "th");
      if (!i) cell.scope = "row";
      cell.className = kind || "";
      tr.append(cell);
    });
    return tr;
  }, (tr, x) => {
    columns.forEach(([, value], i) => {
      const v = value(x, tr.cells[i]);
      if (v !== undefined) put(tr.cells[i], String(v));
    });
    const [bad, chosen] = look ? look(x) : [];
    tr.className = [bad ? "bad" : "", chosen ? "chosen" : ""].join(" ").trim();
  });
}

// Rates, by the difference of a counter in two samples.
let before, sample;
const past = f => { try { return f(before); } catch { return undefined; } };
function rate(f) {
  const last = before && past(f), now = f(sample);
  const seconds = before ? (Date.parse(sample.time) - Date.parse(before.time)) / 1000 : 0;
  return last === undefined || seconds <= 0 || now < last ? 0 : (now - last) / seconds;
}
const groupOf = (s, g) => s.groups.find(x => x.ip === g.ip && x.epoch === g.epoch);
const portOf = (s, p) => s.ports.find(x => x.name === p.name);
const total = (s, f) => s.ports.reduce((n, p) => n + f(p), 0);
const lost = s => Object.values(s.stats.drops || {}).reduce((a, b) => a + b, 0);

const plots = [
  ["Data in", s => s.stats.rx], ["Copies out", s => s.stats.copies],
  ["Feedback in", s => s.stats.feedback_in], ["Drops", lost],
].map(([title, f]) => ({ title, f, values: [] }));
const span = 120; // samples of a plot

function drawPlots() {
  keyed($("plots"), plots, p => p.title, p => {
    const f = document.createElement("figure");
    const caption = document.createElement("figcaption");
    caption.append(p.title + " ", document.createElement("b"));
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    svg.setAttribute("viewBox", "0 0 " + (span - 1) + " 40");
    svg.setAttribute("preserveAspectRatio", "none");
    svg.setAttribute("role", "img");
    svg.append(document.createElementNS("http://www.w3.org/2000/svg", "polyline"));
    f.append(caption, svg);
    return f;
  }, (f, p) => {
    const now = rate(p.f);
    if (before) p.values = [...p.values, now].slice(-span);
    const most = Math.max(1, ...p.values);
    put(f.querySelector("b"), units(now, "packet/s"));
    f.querySelector("polyline").setAttribute("points",
      p.values.map((v, i) => (span - p.values.length + i) + "," + (39 - 37 * v / most).toFixed(1)).join(" "));
    f.querySelector("svg").setAttribute("aria-label", p.title + ": " + units(now, "packet/s") + " now, at most " + units(most, "packet/s") + " in the last two minutes");
  });
}

let chosen = ""; // IP of the group whose members are shown
const stateOf = g => g.stall_seconds ? "stalled " + Math.floor(g.stall_seconds) + " s" : g.slowed_by ? "slow" : g.state;

function drawGroups() {
  if (!sample.groups.some(g => g.ip === chosen)) chosen = sample.groups.length ? sample.groups[0].ip : "";
  table("groups", [
    ["Group", (g, cell) => {
      let b = cell.firstElementChild;
      if (!b) {
        b = document.createElement("button");
        b.type = "button";
        b.setAttribute("aria-controls", "detail");
        b.addEventListener("click", () => { chosen = b.textContent; drawGroups(); });
        cell.append(b);
      }
      put(b, g.ip);
      b.setAttribute("aria-pressed", String(g.ip === chosen));
    }],
    ["State", stateOf],
    ["Waits for", g => g.slowed_by || g.waits_for || "–"],
    ["Members", g => count(g.members.length + (g.members_left_out || 0)), "number"],
    ["Source", g => g.source || "–"],
    ["Data in", g => units(rate(s => groupOf(s, g).counters.data_in), "packet/s"), "number"],
    ["Copies", g => units(rate(s => groupOf(s, g).counters.copies), "packet/s"), "number"],
    ["ack_psn", g => g.ack_psn, "number"],
    ["next_psn", g => g.next_psn, "number"],
    ["Policy", g => g.policy],
  ], sample.groups, g => g.ip, g => [g.stall_seconds || g.slowed_by || g.failure, g.ip === chosen]);
  put($("groups-note"), sample.groups.length
    ? (sample.groups_left_out ? count(sample.groups_left_out) + " more groups are left out: gleam group list shows them." : "")
    : "No group is registered.");
  drawDetail(sample.groups.find(g => g.ip === chosen));
}

function drawDetail(g) {
  $("detail").hidden = !g;
  if (!g) return;
  put($("members-title"), "Members of " + g.ip);
  put($("group-text"), [g.failure && "failed: " + g.failure, g.too_long, g.isolated,
    g.repair && "repair: " + count(g.repair.copies) + " copies sent again, " + count(g.repair.bytes) + " bytes retained"].filter(Boolean).join("; "));
  table("members", [
    ["Member", m => m.ip],
    ["Role", m => m.role],
    ["Alive", m => m.live ? "yes" : "no"],
    ["Port", m => m.port + (m.switch ? " (" + m.switch + ")" : "")],
    ["QPN", m => m.qpn, "number"],
    ["ack_psn", m => m.ack_psn, "number"],
    ["Lag", m => count(m.lag), "number"],
    ["Pending", m => m.pending || "–"],
    ["Remark", m => [m.ip === g.waits_for ? "the group's ACK waits for it" : "", m.diagnosis || ""].filter(Boolean).join("; ")],
  ], g.members, m => m.ip, m => [!m.live || m.diagnosis || (g.stall_seconds && m.ip === g.waits_for) || m.ip === g.slowed_by]);
  put($("members-note"), g.members_left_out ? count(g.members_left_out) + " more members are left out: gleam group show " + g.ip + " shows them." : "");
  drawTree(g);
}

function drawTree(g) {
  const here = { key: "here", text: g.tree ? "switch " + g.tree.switch + (g.tree.parent ? ", below " + g.tree.parent : ", the root") : "this switch", below: [] };
  const ports = new Map();
  for (const m of g.members) ports.set(m.port, [...(ports.get(m.port) || []), m]);
  for (const [port, members] of [...ports].sort()) {
    here.below.push({ key: "port " + port, text: "port " + port, below: members.map(m => ({
      key: m.ip, text: m.ip + ", " + m.role + (m.lag ? ", lag " + count(m.lag) : "") + (m.live ? "" : ", dead"), below: [],
    })) });
  }
  for (const l of g.tree ? g.tree.legs : []) {
    here.below.push({ key: "leg " + l.switch, below: [], text: "switch " + l.switch + " by port " + l.port + ": " + l.live + " of " + l.members + " members live, lag " + count(l.lag) +
      (l.awaited ? ", the group's ACK waits for it" : "") + (l.state === "up" ? "" : ", " + l.state + ": " + (l.reason || "")) });
  }
  branch($("tree"), [here]);
}

function branch(ul, list) {
  keyed(ul, list, x => x.key, () => {
    const li = document.createElement("li");
    li.append(document.createElement("span"));
    return li;
  }, (li, x) => {
    put(li.firstElementChild, x.text);
    let below = li.querySelector("ul");
    if (x.below.length && !below) li.append(below = document.createElement("ul"));
    if (below) branch(below, x.below);
    if (below && !x.below.length) below.remove();
  });
}

const isWell = p => p.up && p.state === "open";

function drawPorts() {
  table("ports", [
    ["Port", p => p.name],
    ["State", p => p.state === "open" ? (p.up ? "up" : "down") : p.state],
    ["In", p => units(rate(s => portOf(s, p).rx_frames), "frame/s"), "number"],
    ["Out", p => units(rate(s => portOf(s, p).tx_frames), "frame/s"), "number"],
    ["Queue", p => count(p.egress.bytes) + " bytes", "number"],
    ["Dropped", p => count(p.egress.dropped), "number"],
    ["MTU", p => p.mtu, "number"],
    ["XDP", p => p.xdp_mode],
    ["Driver", p => p.driver || "–"],
    ["Worker", p => p.worker, "number"],
  ], sample.ports, p => p.name, p => [!isWell(p)]);
  const drops = Object.entries(sample.stats.drops || {}).sort();
  table("drops", [
    ["Reason", d => d[0]],
    ["Packets", d => count(d[1]), "number"],
    ["Now", d => units(rate(s => (s.stats.drops || {})[d[0]] || 0), "packet/s"), "number"],
  ], drops, d => d[0]);
  put($("drops-note"), drops.length ? "docs/COUNTERS.md has the meaning of each reason." : "No packet was dropped.");
}

// at is a member with its port.
function at(g, ip) {
  const m = g.members.find(x => x.ip === ip);
  return ip + (m && m.port ? " at port " + m.port : "");
}

function drawAttention() {
  const list = [];
  for (const g of sample.groups) {
    if (g.stall_seconds) list.push(["stall " + g.ip, "Group " + g.ip + " stalls" + (g.waits_for ? ": its ACK waits for " + at(g, g.waits_for) : "") + ", at PSN " + hex((Number(g.ack_psn) + 1) & 0xffffff)]);
    if (g.slowed_by) list.push(["slow " + g.ip, "Group " + g.ip + " is as fast as " + at(g, g.slowed_by) + ": its ACK waits for that member alone"]);
    if (g.failure) list.push(["failure " + g.ip, "Group " + g.ip + " has failed: " + g.failure]);
    for (const m of g.members) if (m.diagnosis) list.push(["diagnosis " + g.ip + m.ip, "Member " + m.ip + " of " + g.ip + ": " + m.diagnosis]);
  }
  for (const p of sample.ports) if (!isWell(p)) list.push(["port " + p.name, "Port " + p.name + " is " + (p.state === "open" ? "down" : p.state) + (p.reason ? ": " + p.reason : "")]);
  for (const l of sample.topology.links || []) if (l.state === "down" && l.hellos_received) list.push(["link " + l.port, "The link to the switch at port " + l.port + " is down" + (l.reason ? ": " + l.reason : "")]);
  keyed($("attention"), list, x => x[0], () => document.createElement("li"), (li, x) => put(li, x[1]));
  $("calm").hidden = list.length > 0;
}

const bad = new Set(["rejected", "evicted", "failed", "refused", "conflict", "mismatch", "mtu", "storage", "stalled", "slow"]);
const kept = 200; // events
let seen = 0;

function addEvents(es) {
  if (es.last < seen) { $("events").replaceChildren(); seen = 0; } // the daemon was restarted
  for (const e of es.events) {
    if (e.seq <= seen) continue;
    seen = e.seq;
    const li = document.createElement("li"), time = document.createElement("time"), text = document.createElement("span");
    time.dateTime = e.time;
    time.textContent = new Date(e.time).toLocaleTimeString("en-GB");
    text.textContent = [e.group, e.member, e.port && (e.member ? "at port " : "port ") + e.port, e.kind, e.psn === undefined ? "" : "at PSN " + e.psn].filter(Boolean).join(" ") + (e.reason ? ": " + e.reason : "") + (e.by ? ", by " + e.by : "");
    text.className = bad.has(e.kind) ? "bad" : "";
    li.append(time, text);
    $("events").prepend(li);
  }
  while ($("events").children.length > kept) $("events").lastElementChild.remove();
}

const source = new EventSource("live");
const say = text => put($("connection"), text);
source.addEventListener("sample", e => {
  before = sample;
  sample = JSON.parse(e.data);
  if (before && before.version.started !== sample.version.started) before = undefined;
  say("connected");
  put($("identity"), "gleamd " + sample.version.version + (sample.topology.switch ? ", switch " + sample.topology.switch : ""));
  drawPlots();
  drawGroups();
  drawPorts();
  drawAttention();
});
source.addEventListener("events", e => addEvents(JSON.parse(e.data)));
source.addEventListener("trouble", e => say("the switch does not answer: " + JSON.parse(e.data).error));
source.addEventListener("error", () => say(source.readyState === EventSource.CLOSED
  ? "refused: too many browsers, or no token; load the page again" : "connection lost: what is shown is old; trying again"));
