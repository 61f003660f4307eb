// The shell: routes, the head of a table, the colour theme.

import { get, takeToken } from "./api.js";
import { h, problem, replace, say } from "./dom.js";
import { moment, number, tableName } from "./format.js";
import { showTables } from "./tables.js";
import { showOverview } from "./overview.js";
import { showRows } from "./rows.js";
import { showSql } from "./sql.js";
import { showHistory } from "./history.js";
import { showCommit } from "./commit.js";
import { showSchema } from "./schema.js";
import { showFragments } from "./fragments.js";
import { showMemWal } from "./mem_wal.js";

const VIEWS = {
  overview: ["Overview", showOverview],
  rows: ["Rows", showRows],
  sql: ["SQL", showSql],
  history: ["History", showHistory],
  schema: ["Schema", showSchema],
  fragments: ["Fragments", showFragments],
  "mem-wal": ["MemWAL", showMemWal],
};
const PARTS_OF_HISTORY = { commit: ["Commit", showCommit] };
const ALL = { ...VIEWS, ...PARTS_OF_HISTORY };

let current = new AbortController();
let summaries = new Map();

export function route() {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const [kind, table, view = "overview"] = path.split("/");
  const found = Object.fromEntries(new URLSearchParams(query));
  return kind === "t" && table ? { table, view: view in ALL ? view : "overview", parameters: found } : { table: null, parameters: found };
}

export function link(table, view, parameters = {}) {
  const pairs = Object.entries(parameters).filter(([, value]) => value !== null && value !== undefined && value !== "");
  return `#/t/${table}/${view}${pairs.length ? `?${new URLSearchParams(pairs)}` : ""}`;
}

async function show(isFirst = false) {
  current.abort();
  current = new AbortController();
  const { signal } = current;
  const { table, view, parameters } = route();
  const main = document.getElementById("main");
  main.setAttribute("aria-busy", "true");
  const cameFromTabs = document.getElementById("head").contains(document.activeElement);
  document.getElementById("dialog").close();
  try {
    if (table === null) {
      document.title = "Tables · Lancelake";
      replace(document.getElementById("head"));
      replace(document.getElementById("crumbs"));
      await showTables({ main, signal, parameters });
    } else {
      const at = { version: parameters.v, branch: parameters.b };
      const summary = await summaryOf(table, at, signal);
      head(table, view, at, summary);
      document.title = `${ALL[view][0]} · ${tableName(mainUri(summary))} · Lancelake`;
      await ALL[view][1]({ main, signal, parameters, table, at, summary, link });
    }
    say(`${document.title.split(" · ")[0]} shown`);
    if (!isFirst) keepFocus(cameFromTabs);
  } catch (error) {
    if (error.name === "AbortError") return;
    replace(main, problem(error));
    if (!(error.problem || error.name)) console.error(error);
  } finally {
    if (!signal.aborted) main.removeAttribute("aria-busy");
  }
}

// A link that was followed may be gone from the page; the next key must not start at its top.
function keepFocus(cameFromTabs) {
  if (document.activeElement !== document.body) return;
  const tab = cameFromTabs ? document.querySelector(".tabs [aria-current]") : null;
  (tab || document.getElementById("main")).focus({ preventScroll: true });
}

async function summaryOf(table, at, signal) {
  const key = JSON.stringify([table, at]);
  // A version by number does not change; the newest is asked for again.
  if (at.version && summaries.has(key)) return summaries.get(key);
  const found = await get(`tables/${table}`, at, signal);
  if (summaries.size > 50) summaries = new Map();
  summaries.set(key, found);
  return found;
}

function mainUri(summary) {
  return summary.branch ? summary.uri.split("/tree/")[0] : summary.uri;
}

function head(table, view, at, summary) {
  const shown = Object.entries(VIEWS).filter(([name]) => name !== "mem-wal" || summary.has_mem_wal);
  const keep = { v: at.version, b: at.branch };
  const active = view === "commit" ? "history" : view;
  const place = summary.branch ? `branch ${summary.branch}` : "main";
  const isOld = at.version && summary.version !== summary.latest_version;
  const name = tableName(mainUri(summary));
  replace(document.getElementById("crumbs"), h("a", { href: "#/" }, "Tables"), h("span", { "aria-hidden": "true" }, "/"),
    h("span", { "aria-current": "page" }, name));
  replace(document.getElementById("head"),
    h("div", { class: "table-head" },
      h("div", { class: "title" }, h("h1", {}, name),
        h("a", { class: `chip ${isOld ? "warn" : ""}`, href: link(table, "commit", { v: summary.version, b: at.branch, n: summary.version }),
          title: `Written ${moment(summary.written_at)}` },
        `version ${number(summary.version)} · ${place}`),
        isOld || at.branch ? h("a", { class: "chip", href: link(table, view === "commit" ? "history" : view) }, "go to the newest of main") : null),
      h("p", { class: "mono muted small uri" }, summary.uri),
      h("nav", { class: "tabs", "aria-label": "Views of the table" },
        shown.map(([key, [title]]) => h("a", {
          href: link(table, key, keep), "aria-current": key === active ? "page" : null,
        }, title, key === "overview" && summary.warnings.length
          ? h("span", { class: "count", title: "Advice" }, String(summary.warnings.length)) : null)))));
  const tab = document.querySelector(".tabs [aria-current]");
  tab.parentElement.scrollLeft = tab.offsetLeft - tab.parentElement.offsetLeft - 24;
}

const THEMES = ["system", "light", "dark"];
const SIGNS = { system: "◐", light: "☀", dark: "☾" };

function setTheme(theme) {
  const button = document.getElementById("theme");
  if (theme === "system") document.documentElement.removeAttribute("data-theme");
  else document.documentElement.setAttribute("data-theme", theme);
  localStorage.setItem("lancelake-theme", theme);
  replace(button, h("span", { "aria-hidden": "true" }, SIGNS[theme]), h("span", {}, theme));
  button.setAttribute("aria-label", `Colour theme: ${theme}. Change it`);
  window.dispatchEvent(new Event("themechange"));
}

function begin() {
  takeToken();
  const stored = localStorage.getItem("lancelake-theme");
  setTheme(THEMES.includes(stored) ? stored : "system");
  document.getElementById("theme").addEventListener("click", () => {
    const now = localStorage.getItem("lancelake-theme");
    setTheme(THEMES[(THEMES.indexOf(now) + 1) % THEMES.length]);
  });
  document.getElementById("skip").addEventListener("click", (event) => {
    event.preventDefault();
    document.getElementById("main").focus();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => window.dispatchEvent(new Event("themechange")));
  window.addEventListener("hashchange", () => {
    takeToken();
    show();
  });
  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest("input, textarea, select, dialog");
    if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey) {
      const first = document.querySelector("main input[type=search], main textarea");
      if (first) {
        event.preventDefault();
        first.focus();
      }
    }
  });
  show(true);
}

begin();
