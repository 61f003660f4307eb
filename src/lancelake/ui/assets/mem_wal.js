// The MemWAL: regions, and rows that are not merged into the table.

import { get } from "./api.js";
import { copyable, h, replace, section, table as grid, tile } from "./dom.js";
import { number, plural } from "./format.js";

export async function showMemWal({ main, table, at, signal }) {
  const found = await get(`tables/${table}/mem-wal`, at, signal);
  const sum = (name) => (found.regions.some((region) => region[name] === null) ? null
    : found.regions.reduce((total, region) => total + region[name], 0));
  replace(main,
    h("dl", { class: "tiles" },
      tile("Regions", number(found.regions.length)),
      tile("Flushed, not merged", number(sum("flushed_rows")), plural(sum("unmerged_generations"), "generation")),
      tile("Only in the WAL", number(sum("tail_rows")), `${number(sum("tail_entries"))} WAL ${sum("tail_entries") === 1 ? "entry" : "entries"}`)),
    found.command ? section("Merge", h("p", { class: "muted" }, "Flushes the WAL, and merges the rows into the table:"), copyable(found.command)) : null,
    section("Regions", found.regions.length ? grid("Regions", [
      { name: "Region", is_head: true }, "State", { name: "Epoch", is_number: true }, { name: "Merged generation", is_number: true },
      { name: "Next generation", is_number: true }, { name: "Flushed rows", is_number: true }, { name: "WAL entries", is_number: true },
      { name: "WAL rows", is_number: true },
    ], found.regions.map((region) => [
      h("span", { class: "mono small" }, region.region), region.is_sealed ? h("span", { class: "chip tiny" }, "sealed") : "active",
      number(region.writer_epoch), number(region.merged_generation), number(region.current_generation), number(region.flushed_rows),
      number(region.tail_entries), number(region.tail_rows),
    ]), { class: "cards" }) : h("p", { class: "muted" }, "No writer has claimed a region yet.")));
}
