// Columns of a version, and the versions that changed them.

import { get } from "./api.js";
import { change } from "./commit.js";
import { h, problem, replace, section, table as grid } from "./dom.js";
import { age, moment, number, typeText } from "./format.js";

const HIDDEN = new Set(["ARROW:extension:name", "ARROW:extension:metadata"]);

export async function showSchema({ main, table, at, summary, signal, link }) {
  const past = h("div", {});
  replace(main,
    section("Columns", grid("Columns", [
      { name: "Column", is_head: true }, "Type", { name: "Id", is_number: true }, "Nulls", "Notes",
    ], [...lines(summary.fields, 0)])),
    section("History", past));
  older(past, { table, at, signal, link }, undefined);
}

function* lines(fields, depth) {
  for (const field of fields) {
    const extension = field.metadata["ARROW:extension:name"];
    const notes = [
      field.primary_key ? h("span", { class: "chip tiny tag" }, field.primary_key_position ? `primary key ${field.primary_key_position}` : "primary key") : null,
      Object.entries(field.metadata).filter(([key]) => !HIDDEN.has(key)).map(([key, value]) => h("span", { class: "muted small wrap" }, `${key}=${value} `)),
    ];
    yield [
      h("span", { class: "field", style: { "padding-inline-start": `${depth * 18}px` } }, depth ? h("span", { class: "muted", "aria-hidden": "true" }, "└ ") : null, field.name),
      h("code", {}, typeText(field.type) + (extension ? ` (${extension})` : "")),
      String(field.id), field.nullable ? h("span", { class: "muted" }, "yes") : "no", notes,
    ];
    yield* lines(field.fields, depth + 1);
  }
}

async function older(past, context, before) {
  const { table, at, signal, link } = context;
  const wait = h("p", { class: "muted" }, "Reading versions…");
  past.append(wait);
  let found;
  try {
    found = await get(`tables/${table}/schema-changes`, { ...at, before }, signal);
  } catch (error) {
    if (error.name !== "AbortError") wait.replaceWith(problem(error));
    return;
  }
  wait.remove();
  past.append(h("ol", { class: "timeline" }, found.changes.map((each) => h("li", {},
    h("p", {}, h("a", { class: "strong num", href: link(table, "commit", { v: each.version, b: at.branch, n: each.version }) }, `version ${number(each.version)}`),
      h("span", { class: "op" }, each.operation),
      h("span", { class: "muted small", title: moment(each.written_at) }, age(each.written_at))),
    each.is_oldest ? h("p", { class: "muted small" }, "The oldest version; all its columns:") : null,
    h("ul", { class: "diff" }, each.columns.map((pair) => change(pair, text)))))));
  const [newest, oldest] = found.examined || [0, 0];
  const note = h("p", { class: "muted small num" }, `Versions ${number(oldest)} to ${number(newest)} were examined. `);
  if (found.next !== null) {
    note.append(h("button", { type: "button", onclick: () => {
      note.remove();
      older(past, context, found.next);
    } }, "Examine older versions"));
  }
  past.append(note);
}

function text(column) {
  return [typeText(column.type), column.nullable ? null : "not null",
    ...Object.entries(column.metadata).filter(([key]) => !HIDDEN.has(key)).map(([key, value]) => `${key}=${value}`)].filter(Boolean).join(", ");
}
