// Elements from values. Content is always set as text: nothing of a table becomes markup.

const SVG = "http://www.w3.org/2000/svg";

export function h(tag, props = {}, ...children) {
  return filled(document.createElement(tag), props, children);
}

export function svg(tag, props = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), props, children);
}

function filled(node, props, children) {
  for (const [name, value] of Object.entries(props)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "value") node.value = value;
    else if (name === "style") for (const [key, each] of Object.entries(value)) node.style.setProperty(key, each);
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  append(node, children);
  return node;
}

function append(node, children) {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    if (Array.isArray(child)) append(node, child);
    else node.append(child instanceof Node ? child : String(child));
  }
}

export function replace(node, ...children) {
  node.replaceChildren();
  append(node, children);
}

export function say(text) {
  document.getElementById("status").textContent = text;
}

export function problem(error) {
  return h("div", { class: "notice bad", role: "alert" },
    h("strong", {}, error.problem || error.message || "The request failed."),
    error.place ? h("p", { class: "mono small" }, error.place) : null,
    error.next_step ? h("p", {}, error.next_step) : null);
}

export function table(caption, heads, rows, props = {}) {
  const columns = heads.map((head) => (typeof head === "string" ? { name: head } : head));
  const cells = (row) => row.map((cell, i) => h(columns[i].is_head ? "th" : "td", {
    class: columns[i].is_number ? "num" : null,
    scope: columns[i].is_head ? "row" : null,
    "data-label": columns[i].name,
  }, cell));
  return h("div", { class: `scroll ${props.class || ""}`, tabindex: "0", role: "region", "aria-label": caption },
    h("table", {},
      h("caption", { class: "visually-hidden" }, caption),
      h("thead", {}, h("tr", {}, columns.map((column) => h("th", {
        scope: "col", class: column.is_number ? "num" : null,
      }, column.name, column.note ? h("span", { class: "note" }, column.note) : null)))),
      h("tbody", {}, rows.map((row) => h("tr", {}, cells(row))))));
}

export function section(title, ...children) {
  return h("section", { class: "panel", "aria-label": title }, h("h2", {}, title), children);
}

export function tile(name, value, note) {
  return h("div", { class: "tile" },
    h("dt", {}, name), h("dd", {}, value, note ? h("span", { class: "note" }, note) : null));
}

export function copyable(text) {
  const button = h("button", { type: "button", class: "quiet small" }, "Copy");
  button.setAttribute("aria-label", `Copy: ${text}`);
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
      say("Copied");
    } catch {
      say("The text cannot be copied; select it instead.");
    }
  });
  return h("div", { class: "command" }, h("code", {}, text), button);
}

export function openDialog(title, ...children) {
  const dialog = document.getElementById("dialog");
  const close = h("button", { type: "button", class: "quiet", onclick: () => dialog.close() }, "Close");
  replace(dialog, h("div", { class: "dialog-head" }, h("h2", { id: "dialog-title" }, title), close),
    h("div", { class: "dialog-body" }, children));
  if (!dialog.open) dialog.showModal();
  close.focus();
  return dialog;
}

export function pager(label, state, go) {
  const { offset, limit, total, hasMore } = state;
  const last = total === null ? offset + state.shown : Math.min(total, offset + limit);
  const of = total === null ? "" : ` of ${total.toLocaleString("en")}`;
  const first = state.shown === 0 ? 0 : offset + 1;
  return h("nav", { class: "pager", "aria-label": label },
    h("button", { type: "button", disabled: offset === 0, onclick: () => go(Math.max(0, offset - limit)) },
      state.back || "Previous"),
    h("span", { class: "num muted" }, `${first.toLocaleString("en")}–${last.toLocaleString("en")}${of}`),
    h("button", { type: "button", disabled: !hasMore, onclick: () => go(offset + limit) },
      state.forward || "Next"));
}
