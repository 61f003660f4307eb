// Versions and branches as a graph, a page at a time.

import { get } from "./api.js";
import { h, pager, replace, svg } from "./dom.js";
import { age, moment, number } from "./format.js";

const LIMIT = 25;
const ROW = 56;
const LANE = 18;
const EDGE = 14;
const MOST_LANES = 8;

export async function showHistory({ main, table, parameters, signal, link, at, summary }) {
  const offset = Number(parameters.offset || 0);
  const page = await get(`tables/${table}/versions`, { offset, limit: LIMIT, find: parameters.find, branch: at.branch }, signal);
  const go = (to, find = "") => { location.hash = link(table, "history", { v: at.version, b: at.branch, offset: to || "", find }); };
  const lanes = Math.min(MOST_LANES, Math.max(1, ...page.lines.map((line) => line.lane + 1)));
  const shown = page.rows.map((row) => entry(row, { table, link, current: isShown(row, summary, parameters.find) }));
  replace(main,
    h("div", { class: "bar-line" },
      h("p", { class: "muted" }, `${number(page.total)} versions, newest first`),
      jump(page, go),
      page.lines.length > 1 ? h("ul", { class: "legend" }, page.lines.slice(0, 12).map((line) => h("li", {},
        h("span", { class: `dot lane-${line.lane % 6}`, "aria-hidden": "true" }), line.branch))) : null),
    h("div", { class: "graph", style: { "--lanes": `${lanes * LANE + EDGE}px` } },
      drawing(page, lanes), h("ol", { class: "versions", "aria-label": "Versions", start: String(page.offset + 1) }, shown)),
    pager("Pages of versions", {
      offset: page.offset, limit: LIMIT, total: page.total, shown: page.rows.length, hasMore: page.offset + LIMIT < page.total,
      back: "Newer", forward: "Older",
    }, go));
}

function isShown(row, summary, wanted) {
  return row.version === (wanted ? Number(wanted) : summary.version) && (row.branch === "main" ? null : row.branch) === summary.branch;
}

function jump(page, go) {
  if (page.total <= LIMIT) return null;
  const box = h("input", { type: "number", min: "1", "aria-label": "Version", placeholder: "version", class: "narrow" });
  return h("form", { class: "jump", onsubmit: (event) => {
    event.preventDefault();
    if (box.value) go("", box.value);
  } }, box, h("button", { type: "submit" }, "Go to"), h("button", { type: "button", class: "quiet",
    onclick: () => go(Math.floor((page.total - 1) / LIMIT) * LIMIT) }, "Oldest"));
}

function drawing(page, lanes) {
  const x = (lane) => EDGE + Math.min(lane, MOST_LANES - 1) * LANE;
  const y = (row) => (row - page.offset) * ROW + ROW / 2;
  const first = page.offset;
  const last = page.offset + page.rows.length - 1;
  const height = page.rows.length * ROW;
  const marks = [];
  const byBranch = new Map(page.lines.map((line) => [line.branch, line]));
  for (const line of page.lines) {
    const look = `lane-${line.lane % 6}`;
    const top = line.first_row < first ? 0 : y(line.first_row);
    const end = Math.min(line.last_row, last + 1);
    const bottom = line.last_row > last ? height : y(end);
    if (bottom > top) marks.push(svg("line", { x1: x(line.lane), x2: x(line.lane), y1: top, y2: bottom, class: look }));
    if (line.fork_row !== null) marks.push(...fork(line, byBranch.get(line.parent), { x, y, first, last, height, look }));
  }
  page.rows.forEach((row, i) => {
    const line = byBranch.get(row.branch);
    marks.push(svg("circle", { cx: x(line.lane), cy: i * ROW + ROW / 2, r: row.damage ? 5 : 4.5,
      class: `lane-${line.lane % 6} ${row.damage ? "damaged" : ""}` }));
  });
  return svg("svg", { width: lanes * LANE + EDGE, height, "aria-hidden": "true", class: "lanes" }, marks);
}

function fork(line, parent, { x, y, first, last, height, look }) {
  const to = x(parent ? parent.lane : 0);
  const from = x(line.lane);
  const start = line.last_row < first ? 0 : Math.min(y(line.last_row), height);
  if (line.last_row > last) return [];
  if (line.fork_row > last) {
    return [svg("line", { x1: from, x2: from, y1: start, y2: height, class: look })];
  }
  const end = y(line.fork_row);
  const bend = Math.max(start, end - ROW);
  return [svg("path", { d: `M${from} ${start} L${from} ${bend} C${from} ${end - ROW / 3} ${to} ${end - ROW / 2} ${to} ${end}`, class: look })];
}

function entry(row, { table, link, current }) {
  const branch = row.branch === "main" ? null : row.branch;
  const label = `version ${row.version}${branch ? ` of branch ${branch}` : ""}`;
  const head = h("a", { class: "strong num", href: link(table, "commit", { v: row.version, b: branch, n: row.version }),
    "aria-label": label, "aria-current": current ? "true" : null }, number(row.version));
  if (row.damage) {
    return h("li", {}, head, h("span", { class: "what bad-text" }, `damaged: ${row.damage}`));
  }
  const delta = row.change || {};
  return h("li", {},
    head,
    h("span", { class: "what" },
      h("span", { class: "op" }, row.operation || "unknown operation"),
      branch ? h("span", { class: "chip tiny" }, branch) : null,
      row.tags.map((tag) => h("span", { class: "chip tiny tag" }, tag)),
      row.forks.map((name) => h("span", { class: "chip tiny" }, `↗ ${name}`)),
      h("span", { class: "muted clip" }, [row.message, row.details].filter(Boolean).join(" · "))),
    h("span", { class: "delta num" },
      delta.rows_added ? h("span", { class: "plus" }, `+${number(delta.rows_added)}`) : null,
      delta.rows_removed ? h("span", { class: "minus" }, `−${number(delta.rows_removed)}`) : null,
      h("span", { class: "muted" }, `${number(row.rows)} rows`)),
    h("time", { class: "muted small", datetime: row.written_at || "", title: moment(row.written_at) }, age(row.written_at)));
}
