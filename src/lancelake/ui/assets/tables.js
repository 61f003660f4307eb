// The list of tables.

import { get } from "./api.js";
import { h, pager, replace, table } from "./dom.js";
import { age, moment, number, size, tableName } from "./format.js";

const LIMIT = 50;

export async function showTables({ main, signal, parameters }) {
  const offset = Number(parameters.offset || 0);
  const found = await get("tables", { offset, limit: LIMIT }, signal);
  const go = (to) => { location.hash = `#/?offset=${to}`; };
  replace(main,
    h("div", { class: "page-head" }, h("h1", {}, "Tables"),
      h("p", { class: "muted mono small" }, found.roots.join(" · "))),
    found.problems.map((text) => h("p", { class: "notice" }, text)),
    found.tables.length ? table("Tables", [
      { name: "Table", is_head: true }, { name: "Rows", is_number: true }, { name: "Size", is_number: true },
      { name: "Version", is_number: true }, { name: "Fragments", is_number: true }, { name: "Indices", is_number: true },
      "Written", "Columns",
    ], found.tables.map((each) => line(each, found.roots)), { class: "cards roomy" }) : null,
    found.total > LIMIT ? pager("Pages of tables", {
      offset, limit: LIMIT, total: found.total, shown: found.tables.length, hasMore: offset + LIMIT < found.total,
    }, go) : null);
}

function line(found, roots) {
  const root = roots.find((each) => found.uri.startsWith(`${each.replace(/\/$/, "")}/`));
  const below = root ? found.uri.slice(root.replace(/\/$/, "").length + 1) : tableName(found.uri);
  const name = h("span", { class: "stack" },
    h("a", { class: "strong", href: `#/t/${found.id}/overview`, title: found.uri }, below));
  if (found.error) {
    return [name, h("span", { class: "bad-text" }, "damaged"), "", "", "", "", "", h("span", { class: "small" }, found.error)];
  }
  const columns = found.columns.slice(0, 6).join(", ") + (found.columns.length > 6 ? `, … ${found.columns.length}` : "");
  return [name, number(found.rows), size(found.data_bytes), number(found.version), number(found.fragments),
    number(found.indices), h("span", { title: moment(found.written_at) }, age(found.written_at)),
    h("span", { class: "muted small clip", title: columns }, columns)];
}
