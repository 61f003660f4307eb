// Rows of a version: pages, a filter, searches by text and by vector.

import { get, post } from "./api.js";
import { rowsTable } from "./cells.js";
import { h, pager, problem, replace, say } from "./dom.js";
import { number } from "./format.js";

const LIMIT = 25;
const NEIGHBOURS = 20;

export async function showRows(context) {
  const { main, parameters, table, at, summary, link, signal } = context;
  const asked = {
    filter: parameters.filter || "", text: parameters.text || "", like: parameters.like || "",
    vector: parameters.vector || "", column: parameters.column || "", offset: Number(parameters.offset || 0),
  };
  const go = (changes) => {
    location.hash = link(table, "rows", { v: at.version, b: at.branch, ...asked, offset: "", ...changes });
  };
  const result = h("div", { class: "result" });
  replace(main, forms(context, asked, go), result);
  const isSearch = asked.text || asked.like || asked.vector;
  const started = performance.now();
  let found;
  try {
    found = isSearch ? await search(context, asked) : await get(`tables/${table}/rows`, {
      ...at, filter: asked.filter, offset: asked.offset, limit: LIMIT,
    }, signal);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    replace(result, problem(error));
    return;
  }
  const took = `${((performance.now() - started) / 1000).toFixed(2)} s`;
  const vectors = summary.search.vectors;
  const similar = vectors.length && found.ids ? (i) => h("button", {
    type: "button", class: "quiet small", title: "Rows like this one", "aria-label": `Rows like row ${found.ids[i]}`,
    onclick: () => go({ like: found.ids[i], vector: "", text: "", column: asked.column || vectors[0].column }),
  }, "≈") : null;
  const count = h("span", { class: "num" }, isSearch ? `${number(found.rows.length)} best rows` : "");
  replace(result,
    asked.like ? h("p", { class: "notice" }, `Rows near row ${asked.like} by ${asked.column || vectors[0].column}. `,
      h("button", { type: "button", class: "quiet small", onclick: () => go({ like: "", column: "" }) }, "Show all rows")) : null,
    h("p", { class: "muted small result-line" }, count, h("span", { class: "num" }, took)),
    found.rows.length ? rowsTable(found, context, similar) : h("p", { class: "empty" }, "No rows match."),
    isSearch ? null : pager("Pages of rows", {
      offset: asked.offset, limit: LIMIT, total: asked.filter ? null : summary.rows, shown: found.rows.length, hasMore: found.has_more,
    }, (offset) => go({ offset })));
  say(`${found.rows.length} rows shown`);
  if (asked.filter && !isSearch) counted(count, context, asked.filter);
}

async function counted(count, { table, at, signal }, filter) {
  try {
    const found = await get(`tables/${table}/count`, { ...at, filter }, signal);
    count.textContent = `${number(found.rows)} rows match`;
  } catch {
    count.textContent = "";
  }
}

function search({ table, at, signal }, asked) {
  const body = { filter: asked.filter, text: asked.text, k: NEIGHBOURS };
  if (asked.column) body.column = asked.column;
  if (asked.like) body.like = asked.like;
  if (asked.vector) {
    body.vector = asked.vector.split(/[\s,]+/).filter(Boolean).map(Number);
    if (body.vector.some(Number.isNaN)) return Promise.reject({ problem: "The vector must be numbers separated by commas." });
  }
  return post(`tables/${table}/search`, at, body, signal);
}

function forms({ summary }, asked, go) {
  const { vectors, texts } = summary.search;
  const filter = h("input", { type: "search", name: "filter", value: asked.filter, spellcheck: "false", autocomplete: "off",
    placeholder: "SQL condition, as in  price > 10 and name like 'a%'" });
  const text = h("input", { type: "search", name: "text", value: asked.text, autocomplete: "off",
    placeholder: `Words in ${texts.join(", ")}` });
  const vector = h("input", { type: "text", name: "vector", value: asked.vector, autocomplete: "off", placeholder: "0.1, 0.2, …" });
  const column = h("select", { name: "column" }, vectors.map((each) => h("option", {
    value: each.column, selected: each.column === asked.column }, `${each.column} (${each.dimension})`)));
  const submit = (event) => {
    event.preventDefault();
    go({ filter: filter.value, text: texts.length ? text.value : "", vector: vectors.length ? vector.value : "",
      column: vector.value || asked.like ? column.value : "", like: asked.like });
  };
  const isAny = asked.filter || asked.text || asked.vector || asked.like;
  return h("form", { class: "search", role: "search", onsubmit: submit },
    h("label", { class: "wide" }, h("span", {}, "Filter"), filter),
    texts.length ? h("label", {}, h("span", {}, "Text"), text) : null,
    vectors.length ? h("details", { class: "inline", open: Boolean(asked.vector) }, h("summary", {}, "Vector"),
      h("label", {}, h("span", {}, "Column"), column), h("label", {}, h("span", {}, "Numbers"), vector)) : null,
    h("div", { class: "buttons" }, h("button", { type: "submit", class: "primary" }, "Show rows"),
      isAny ? h("button", { type: "button", class: "quiet", onclick: () => go({ filter: "", text: "", vector: "", like: "", column: "" }) }, "Clear") : null));
}
