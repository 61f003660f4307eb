// One commit: its operation and counts, and what it changed.

import { get } from "./api.js";
import { h, replace, section, tile } from "./dom.js";
import { age, moment, number, plural, size, typeText } from "./format.js";

export async function showCommit({ main, table, parameters, signal, link, at }) {
  const found = await get(`tables/${table}/commit`, { ...at, before: parameters.before }, signal);
  const delta = found.change || {};
  const step = (version, text) => (version === null
    ? h("span", { class: "button off", "aria-disabled": "true" }, text)
    : h("a", { class: "button", href: link(table, "commit", { v: version, b: at.branch, n: version }) }, text));
  replace(main,
    h("div", { class: "bar-line" },
      h("h2", { class: "commit-title" }, `Version ${number(found.version)}`, h("span", { class: "op" }, found.operation || "unknown operation"),
        found.tags.map((tag) => h("span", { class: "chip tiny tag" }, tag))),
      h("nav", { class: "buttons", "aria-label": "Neighbouring versions" }, step(found.previous, "← Older"), step(found.next, "Newer →"))),
    found.message ? h("p", { class: "message" }, found.message) : null,
    found.details ? h("p", { class: "muted mono small wrap" }, found.details) : null,
    found.damage ? h("p", { class: "notice bad" }, found.damage) : null,
    h("dl", { class: "tiles" },
      tile("Rows", number(found.rows), signed(delta.rows_added, delta.rows_removed)),
      tile("Fragments", number(found.fragments), signed(delta.fragments_added, delta.fragments_removed)),
      tile("Data", size(found.data_bytes), plural(found.data_files, "file")),
      tile("Written", age(found.written_at) || "unknown", moment(found.written_at))),
    differences(found, { table, link, at }),
    section("Transaction", h("dl", { class: "facts" }, [
      ["Transaction", found.transaction || "not recorded"],
      ["Read version", found.read_version === null ? "unknown" : number(found.read_version)],
      ["Written by", found.writer || "unknown"],
      ["User", found.user || "not recorded"],
      ["Engine", found.engine || "not recorded"],
      ...Object.entries(found.metrics).map(([key, value]) => [key.replaceAll("_", " "), number(value)]),
      ["Manifest", `${found.manifest.name} · ${size(found.manifest.size_bytes)}`],
      ...Object.entries(found.properties).map(([key, value]) => [key, value]),
    ].map(([key, value]) => [h("dt", {}, key), h("dd", { class: "wrap" }, value)])),
    h("p", {}, h("a", { href: link(table, "rows", { v: found.version, b: at.branch }) }, "Rows of this version"))));
}

function signed(added, removed) {
  const parts = [added ? `+${number(added)}` : null, removed ? `−${number(removed)}` : null].filter(Boolean);
  return parts.join(" ") || null;
}

function differences(found, { table, link, at }) {
  const box = h("input", { type: "number", min: "1", class: "narrow", "aria-label": "Version to compare with",
    value: found.diff ? String(found.diff.before.version) : "" });
  const form = h("form", { class: "jump", onsubmit: (event) => {
    event.preventDefault();
    location.hash = link(table, "commit", { v: found.version, b: at.branch, before: box.value });
  } }, h("label", {}, "Compared with version ", box), h("button", { type: "submit" }, "Compare"));
  if (!found.diff) return section("Changes", h("p", { class: "muted" }, "This is the oldest version."));
  const { diff } = found;
  const lists = [
    ["Columns", "columns", (c) => [typeText(c.type), c.nullable ? null : "not null", ...Object.entries(c.metadata).map(([k, v]) => `${k}=${v}`)].filter(Boolean).join(", ")],
    ["Config", "config", String], ["Table metadata", "table_metadata", String], ["Schema metadata", "schema_metadata", String],
    ["Features", "features", String], ["Base paths", "base_paths", String],
    ["Fragments", "fragments", (f) => `${number(f.rows)} rows${f.deleted_rows ? `, ${number(f.deleted_rows)} deleted` : ""}, ${plural(f.files.length, "file")}`],
    ["Indices", "indices", (i) => `${i.columns.join(", ") || "no column"}, ${plural(i.segments.length, "segment")}`],
  ];
  return section("Changes", form,
    diff.is_empty ? h("p", { class: "muted" }, "The versions have no differences.") : null,
    diff.rows.before !== diff.rows.after ? h("p", { class: "num" }, `rows ${number(diff.rows.before)} → ${number(diff.rows.after)}`) : null,
    lists.filter(([, key]) => diff[key].length).map(([title, key, text]) => h("div", { class: "changes" },
      h("h3", {}, title, h("span", { class: "muted num" }, ` ${number(diff.totals[key])}`)),
      h("ul", { class: "diff" }, diff[key].map((pair) => change(pair, text))),
      diff.totals[key] > diff[key].length
        ? h("p", { class: "muted small" }, `The first ${number(diff[key].length)} of ${number(diff.totals[key])}.`) : null)));
}

export function change(pair, text) {
  const name = pair.before && pair.after && pair.before.path !== undefined && pair.before.path !== pair.after.path
    ? `${pair.before.path} → ${pair.after.path}` : pair.name;
  if (pair.before === null) return line("plus", "+", "added", name, text(pair.after));
  if (pair.after === null) return line("minus", "−", "removed", name, text(pair.before));
  const sides = [...new Set([text(pair.before), text(pair.after)])];
  return line("changed", "~", "changed", name, sides.join(" → "));
}

function line(look, sign, word, name, text) {
  return h("li", { class: look }, h("span", { class: "sign", "aria-hidden": "true" }, sign),
    h("span", { class: "visually-hidden" }, word), h("span", { class: "strong" }, name), h("span", { class: "muted" }, text));
}
