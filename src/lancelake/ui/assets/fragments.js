// Fragments as a heat map: size, rows, deletions, files, coverage by an index.

import { get } from "./api.js";
import { color, heat } from "./colors.js";
import { h, pager, problem, replace, section, table as grid } from "./dom.js";
import { number, plural, share, size } from "./format.js";

const LIMIT = 20000;
const MOST_HEIGHT = 460;
const TOP = 10;

const MEASURES = {
  bytes: { name: "Size", text: size, value: (map, i) => map.bytes[i] },
  rows: { name: "Rows", text: number, value: (map, i) => map.rows[i] },
  deleted: { name: "Deleted", text: (part) => share(part, 1), most: 1,
    value: (map, i) => (map.rows[i] ? (map.deleted[i] || 0) / map.rows[i] : 0) },
  files: { name: "Files", text: number, value: (map, i) => map.files[i] },
};

export async function showFragments(context) {
  const { main, table, at, parameters, signal, link } = context;
  const offset = Number(parameters.offset || 0);
  const map = await get(`tables/${table}/fragments`, { ...at, offset, limit: LIMIT }, signal);
  if (!map.total) {
    replace(main, h("p", { class: "empty" }, "The version has no fragments."));
    return;
  }
  const measures = { ...MEASURES };
  for (const index of map.indices) measures[`index:${index.name}`] = coverage(index, map.ids.length);
  const view = new HeatMap(map, measures, context);
  const select = h("select", { id: "measure", onchange: () => view.measure(select.value) },
    Object.entries(measures).map(([key, each]) => h("option", { value: key }, each.name)));
  const go = (to) => { location.hash = link(table, "fragments", { v: at.version, b: at.branch, offset: to || "" }); };
  replace(main,
    h("div", { class: "bar-line" },
      h("p", { class: "muted num" }, `${plural(map.total, "fragment")} in the order of the table`),
      h("label", { class: "inline-label" }, "Coloured by ", select), view.legend),
    view.node,
    map.total > LIMIT ? pager("Pages of fragments", {
      offset, limit: LIMIT, total: map.total, shown: map.ids.length, hasMore: offset + LIMIT < map.total }, go) : null,
    h("div", { class: "split" }, view.details, view.ranking));
  view.measure("bytes");
  view.select(0);
}

function coverage(index, count) {
  const covered = new Uint8Array(count);
  for (const [start, end] of index.runs || []) covered.fill(1, start, end);
  return { name: `Index ${index.name}`, most: 1, isBinary: true,
    text: (part) => (index.runs === null ? "unknown" : part ? "covered" : "not covered"), value: (_, i) => covered[i] };
}

class HeatMap {
  constructor(map, measures, context) {
    this.map = map;
    this.measures = measures;
    this.context = context;
    this.selected = -1;
    this.canvas = h("canvas", { class: "heat", tabindex: "0", role: "img", "aria-describedby": "heat-help" });
    this.tip = h("div", { class: "tip", hidden: true });
    this.find = h("input", { type: "number", min: "0", class: "narrow", "aria-label": "Fragment id" });
    this.node = h("div", { class: "heat-box" }, this.canvas, this.tip,
      h("p", { class: "muted small", id: "heat-help" }, "Arrow keys move between fragments; details are below."));
    this.legend = h("div", { class: "scale", "aria-hidden": "true" });
    this.details = h("section", { class: "panel", "aria-label": "Selected fragment", "aria-live": "polite" });
    this.ranking = h("section", { class: "panel", "aria-label": "Ranking" });
    this.canvas.addEventListener("mousemove", (event) => this.hover(event));
    this.canvas.addEventListener("mouseleave", () => { this.tip.hidden = true; });
    this.canvas.addEventListener("click", (event) => this.select(this.at(event)));
    this.canvas.addEventListener("keydown", (event) => this.move(event));
    const again = () => (this.canvas.isConnected ? this.draw() : window.removeEventListener("themechange", again));
    window.addEventListener("themechange", again);
    new ResizeObserver(() => this.draw()).observe(this.node);
  }

  measure(key) {
    this.key = key;
    const found = this.measures[key];
    const values = this.map.ids.map((_, i) => found.value(this.map, i));
    this.values = values;
    this.most = found.most || values.reduce((most, value) => Math.max(most, value || 0), 0) || 1;
    this.canvas.setAttribute("aria-label", this.summary(found));
    const ends = found.isBinary ? ["not covered", "covered"] : [found.text(0), found.text(this.most)];
    replace(this.legend, h("span", {}, ends[0]), h("span", { class: "ramp" }), h("span", {}, ends[1]));
    this.rank(found);
    this.draw();
  }

  summary(found) {
    const total = this.values.length;
    if (found.isBinary) return `${found.name}: ${number(this.values.filter(Boolean).length)} of ${plural(total, "fragment")} covered`;
    return `${found.name} of ${plural(total, "fragment")}, at most ${found.text(this.most)}`;
  }

  draw() {
    if (!this.values) return;
    const width = this.node.clientWidth;
    if (!width) return;
    const count = this.values.length;
    let cell = 26;
    while (cell > 3 && Math.ceil(count / Math.floor(width / cell)) * cell > MOST_HEIGHT) cell -= 1;
    this.cell = cell;
    this.across = Math.max(1, Math.min(count, Math.floor(width / cell)));
    const ratio = window.devicePixelRatio || 1;
    const height = Math.ceil(count / this.across) * cell;
    this.canvas.width = this.across * cell * ratio;
    this.canvas.height = height * ratio;
    this.canvas.style.width = `${this.across * cell}px`;
    this.canvas.style.height = `${height}px`;
    const pen = this.canvas.getContext("2d");
    pen.scale(ratio, ratio);
    const gap = cell > 6 ? 1.5 : cell > 4 ? 1 : 0.5;
    for (let i = 0; i < count; i += 1) {
      const value = this.values[i];
      pen.fillStyle = value === null ? "transparent" : heat((value || 0) / this.most);
      pen.fillRect((i % this.across) * cell, Math.floor(i / this.across) * cell, cell - gap, cell - gap);
    }
    if (this.selected >= 0) {
      pen.strokeStyle = color("--lane-1");
      pen.lineWidth = 3;
      const side = Math.max(cell, 8);
      pen.strokeRect((this.selected % this.across) * cell, Math.floor(this.selected / this.across) * cell, side - gap, side - gap);
    }
  }

  at(event) {
    const box = this.canvas.getBoundingClientRect();
    const x = Math.floor((event.clientX - box.left) / this.cell);
    const y = Math.floor((event.clientY - box.top) / this.cell);
    const found = y * this.across + x;
    return x >= 0 && x < this.across && found >= 0 && found < this.values.length ? found : -1;
  }

  hover(event) {
    const i = this.at(event);
    this.tip.hidden = i < 0;
    if (i < 0) return;
    const found = this.measures[this.key];
    this.tip.textContent = `fragment ${this.map.ids[i]} · ${found.name.toLowerCase()} ${found.text(this.values[i])}`;
    const box = this.node.getBoundingClientRect();
    const x = Math.min(event.clientX - box.left + 12, box.width - this.tip.offsetWidth - 4);
    this.tip.style.transform = `translate(${Math.max(0, x)}px, ${event.clientY - box.top + 16}px)`;
  }

  move(event) {
    const steps = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: this.across, ArrowUp: -this.across };
    let to = this.selected + (steps[event.key] || 0);
    if (event.key === "Home") to = 0;
    else if (event.key === "End") to = this.values.length - 1;
    else if (!(event.key in steps)) return;
    event.preventDefault();
    if (to >= 0 && to < this.values.length) this.select(to);
  }

  async select(i) {
    if (i < 0 || i === this.selected) return;
    this.selected = i;
    this.draw();
    const { table, at, signal } = this.context;
    const id = this.map.ids[i];
    // Keys that are held down ask once.
    await new Promise((done) => { setTimeout(done, 80); });
    if (this.selected !== i) return;
    try {
      const found = await get(`tables/${table}/fragment`, { ...at, number: id }, signal);
      if (this.selected === i) this.describe(found, i);
    } catch (error) {
      if (error.name !== "AbortError") replace(this.details, h("h2", {}, `Fragment ${id}`), problem(error));
    }
  }

  describe(found, i) {
    const form = h("form", { class: "jump", onsubmit: (event) => {
      event.preventDefault();
      const place = this.map.ids.indexOf(Number(this.find.value));
      if (place >= 0) this.select(place);
    } }, this.find, h("button", { type: "submit" }, "Go to id"));
    replace(this.details, h("div", { class: "bar-line" }, h("h2", {}, `Fragment ${found.id}`), form),
      h("dl", { class: "facts" }, [
        ["Rows", `${number(found.rows)} of ${number(found.physical_rows)} stored`],
        ["Size", size(this.map.bytes[i])],
        ["Deleted", found.deletion_file ? `${number(found.deletion_file.deleted_rows)} rows (${found.deletion_file.path})` : "none"],
        ...found.indices.map((index) => [`Index ${index.name}`, index.is_covered === null ? "unknown" : index.is_covered ? "covers it" : "does not cover it"]),
      ].map(([key, value]) => [h("dt", {}, key), h("dd", { class: "wrap" }, value)])),
      grid("Files of the fragment", [{ name: "File", is_head: true }, { name: "Size", is_number: true }, "Format", { name: "Fields", is_number: true }],
        found.data_files.map((file) => [h("span", { class: "mono small wrap" }, file.path), size(file.size_bytes), file.file_version, String(file.fields.length)]),
        { class: "cards" }));
  }

  rank(found) {
    const order = this.values.map((value, i) => [value, i]).filter(([value]) => value !== null);
    const up = found.isBinary;
    order.sort((a, b) => (up ? a[0] - b[0] : b[0] - a[0]) || a[1] - b[1]);
    const chosen = order.slice(0, TOP).filter(([value]) => (up ? value === 0 : value > 0));
    const title = up ? "Not covered" : `Highest: ${found.name.toLowerCase()}`;
    replace(this.ranking, h("h2", {}, title), chosen.length ? h("ol", { class: "ranking" }, chosen.map(([value, i]) => h("li", {},
      h("button", { type: "button", class: "quiet small num", onclick: () => this.select(i) }, `fragment ${this.map.ids[i]}`),
      h("span", { class: "bar", "aria-hidden": "true" }, h("span", { style: { width: `${up ? 0 : (100 * value) / this.most}%` } })),
      h("span", { class: "num muted" }, found.text(value))))) : h("p", { class: "muted" }, up ? "Every fragment is covered." : "None."));
  }
}
