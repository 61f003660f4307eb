// The summary of a version: size, health, indices, tags and branches, settings.

import { copyable, h, replace, section, table, tile } from "./dom.js";
import { age, moment, number, plural, share, size } from "./format.js";

export async function showOverview({ main, table: id, summary, link, at }) {
  const keep = { b: at.branch };
  replace(main,
    h("dl", { class: "tiles" },
      tile("Rows", number(summary.rows), summary.deleted_rows ? `${number(summary.deleted_rows)} deleted` : null),
      tile("Data", size(summary.data_bytes), plural(summary.data_files, "file")),
      tile("Version", number(summary.version), `${plural(summary.versions, "version")} kept`),
      tile("Fragments", number(summary.fragments), summary.deletion_files ? `${number(summary.deletion_files)} with deletions` : null),
      tile("Columns", number(summary.fields.length)),
      tile("Written", age(summary.written_at) || "unknown", moment(summary.written_at))),
    health(summary),
    indices(summary),
    refs(summary, id, link),
    facts(summary, keep));
}

function health(summary) {
  if (!summary.warnings.length) {
    return section("Health", h("p", { class: "notice good" }, "Nothing needs attention. ",
      h("span", { class: "muted" }, "Files are checked by the command:")), copyable(summary.check_command));
  }
  return section("Health", h("ul", { class: "advice" }, summary.warnings.map((warning) => h("li", {},
    h("p", { class: "strong" }, warning.message),
    h("p", { class: "muted" }, warning.advice.replaceAll("`", "")),
    warning.command ? copyable(warning.command) : null))));
}

function indices(summary) {
  if (!summary.indices.length) return section("Indices", h("p", { class: "muted" }, "There are no indices."));
  return section("Indices", table("Indices", [
    { name: "Name", is_head: true }, "Kind", "Columns", { name: "Size", is_number: true },
    { name: "Segments", is_number: true }, "Coverage",
  ], summary.indices.map((index) => [
    index.name, index.kind, index.columns.join(", ") || "–", size(index.size_bytes), number(index.segments), coverage(index),
  ]), { class: "cards" }));
}

function coverage(index) {
  if (index.is_system || index.indexed_rows === null) return h("span", { class: "muted" }, index.is_system ? "internal" : "unknown");
  const total = index.indexed_rows + index.unindexed_rows;
  const part = total ? index.indexed_rows / total : 1;
  return h("span", { class: "cover" },
    h("span", { class: "bar", "aria-hidden": "true" }, h("span", { style: { width: `${100 * part}%` } })),
    h("span", { class: "num" }, share(index.indexed_rows, total || 0) === "0 %" && !total ? "100 %" : share(index.indexed_rows, total)),
    index.unindexed_rows ? h("span", { class: "muted small" }, `${number(index.unindexed_rows)} rows are not covered`) : null);
}

function refs(summary, id, link) {
  const tags = Object.entries(summary.tags);
  const branches = Object.entries(summary.branches);
  if (!tags.length && !branches.length) return null;
  return section("Tags and branches", table("Tags and branches", [
    { name: "Name", is_head: true }, "Kind", "Refers to",
  ], [
    ...tags.map(([name, tag]) => [
      h("a", { href: link(id, "overview", { v: tag.version, b: tag.branch }) }, name), "tag",
      `version ${number(tag.version)}${tag.branch ? ` of branch ${tag.branch}` : ""}`]),
    ...branches.map(([name, branch]) => [
      h("a", { href: link(id, "overview", { b: name }) }, name), "branch",
      `created from version ${number(branch.parent_version)} of ${branch.parent_branch || "main"}`]),
  ], { class: "cards" }));
}

function facts(summary) {
  const pairs = [
    ["Data files", `format ${summary.data_file_version}`],
    ["Row ids", summary.stable_row_ids ? "stable" : "row addresses"],
    ["Written by", summary.writer || "unknown"],
    ["Reader features", summary.reader_flags.join(", ") || "none"],
    ["Writer features", summary.writer_flags.join(", ") || "none"],
    ...summary.base_paths.map((base) => [`Base path ${base.id}`, base.path]),
    ...Object.entries(summary.config).map(([key, value]) => [`config ${key}`, value]),
    ...Object.entries(summary.table_metadata).map(([key, value]) => [`metadata ${key}`, value]),
    ...Object.entries(summary.schema_metadata).map(([key, value]) => [`schema ${key}`, value]),
  ];
  return section("Settings", h("dl", { class: "facts" }, pairs.map(([key, value]) => [
    h("dt", {}, key), h("dd", { class: "wrap" }, value)])));
}
