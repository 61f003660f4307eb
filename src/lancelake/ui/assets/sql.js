// A SQL query over a version, in which the table is named dataset.

import { post } from "./api.js";
import { rowsTable } from "./cells.js";
import { h, problem, replace, say } from "./dom.js";
import { number, plural } from "./format.js";

const drafts = new Map();

export async function showSql({ main, table, at, summary }) {
  const first = summary.fields[0] ? summary.fields[0].name : "*";
  const name = /^[a-z_][a-z0-9_]*$/.test(first) ? first : `"${first.replaceAll('"', '""')}"`;
  const examples = [
    "SELECT count(*) AS rows FROM dataset",
    `SELECT ${name}, count(*) AS rows FROM dataset GROUP BY 1 ORDER BY 2 DESC LIMIT 20`,
    "SELECT * FROM dataset LIMIT 20",
  ];
  const box = h("textarea", { rows: "5", spellcheck: "false", id: "query", value: drafts.get(table) || examples[2] });
  const result = h("div", { class: "result" });
  const button = h("button", { type: "submit", class: "primary" }, "Run");
  const run = async (event) => {
    if (event) event.preventDefault();
    drafts.set(table, box.value);
    button.disabled = true;
    result.setAttribute("aria-busy", "true");
    const started = performance.now();
    try {
      const found = await post(`tables/${table}/sql`, at, { query: box.value });
      const took = ((performance.now() - started) / 1000).toFixed(2);
      const more = found.has_more ? `the first ${number(found.rows.length)} rows; more exist` : plural(found.rows.length, "row");
      replace(result, h("p", { class: "muted small num" }, `${more} · ${took} s`),
        found.rows.length ? rowsTable(found, { table }) : h("p", { class: "empty" }, "The result is empty."));
      say(more);
    } catch (error) {
      replace(result, problem(error));
    } finally {
      button.disabled = false;
      result.removeAttribute("aria-busy");
    }
  };
  box.addEventListener("input", () => drafts.set(table, box.value));
  box.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) run(event);
  });
  replace(main,
    h("form", { class: "query", onsubmit: run },
      h("label", { for: "query" }, "Query, in which the table is named ", h("code", {}, "dataset")), box,
      h("div", { class: "buttons" }, button, h("span", { class: "muted small" }, "Ctrl+Enter runs it"),
        h("span", { class: "grow" }),
        examples.map((example, i) => h("button", { type: "button", class: "quiet small", title: example, onclick: () => {
          box.value = example;
          run();
        } }, ["Count", "Group", "First rows"][i])))),
    result);
}
