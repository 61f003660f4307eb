// Cells of rows: texts, numbers, images, vectors, bytes.

import { get, imageUrl } from "./api.js";
import { color, diverging } from "./colors.js";
import { h, openDialog, problem, table as grid } from "./dom.js";
import { arrowType, number, size } from "./format.js";

const STRIP = { width: 168, height: 18 };
const WIDE = { width: 720, height: 150 };

const arrived = new IntersectionObserver((entries) => {
  for (const entry of entries) {
    if (entry.isIntersecting) {
      arrived.unobserve(entry.target);
      entry.target.dispatchEvent(new Event("arrive"));
    }
  }
}, { rootMargin: "200px" });

// context: table, at (version and branch) of the rows; place: address and column, if the row has one
export function cell(found, context, place) {
  if (found === null) return h("span", { class: "null" }, "null");
  switch (found.kind) {
    case "number": return found.text;
    case "text": return text(found, context, place, "");
    case "nested": return text(found, context, place, "mono small");
    case "vector": return vector(found, place ? place.column : "vector");
    case "image": return place || found.base64 ? image(found, context, place || { column: "image" }) : bytes(found, `${found.media_type} `);
    case "blob": return blob(found, context, place);
    default: return bytes(found, "");
  }
}

function bytes(found, label) {
  return h("span", { class: "mono small" }, label, found.hex ? `${found.hex.slice(0, 23)}… ` : "",
    h("span", { class: "muted" }, size(found.size_bytes)));
}

function text(found, context, place, look) {
  const short = found.text.length > 140 || found.is_cut || found.text.split("\n").length > 3;
  const body = h("span", { class: `text ${look}` }, found.text, found.is_cut ? "…" : "");
  if (!short) return body;
  body.classList.add("clamp");
  return h("span", { class: "stack" }, body, h("button", {
    type: "button", class: "more",
    "aria-label": `Show the whole value${place ? ` of ${place.column}` : ""}`,
    onclick: () => whole(found, context, place),
  }, `more · ${number(found.length)} characters`));
}

async function whole(found, context, place) {
  const body = h("pre", { class: "whole", tabindex: "0" }, found.text);
  openDialog(place ? place.column : "Value", body);
  if (!found.is_cut || !place) {
    if (found.is_cut) body.after(h("p", { class: "muted" }, `The first of ${number(found.length)} characters.`));
    return;
  }
  try {
    const all = await get(`tables/${context.table}/text`, { ...context.at, ...place });
    body.textContent = all.text;
    if (all.is_cut) body.after(h("p", { class: "muted" }, `The first ${number(all.text.length)} of ${number(all.length)} characters.`));
  } catch (error) {
    body.after(problem(error));
  }
}

function image(found, context, place) {
  const picture = h("img", { alt: `${place.column}: ${found.media_type || "image"}, ${size(found.size_bytes)}`, class: "thumb" });
  const button = h("button", { type: "button", class: "picture", title: size(found.size_bytes), onclick: () => {
    if (!picture.src) return;
    openDialog(place.column, h("img", { class: "full", src: picture.src, alt: picture.alt }),
      h("p", { class: "muted num" }, `${picture.naturalWidth} × ${picture.naturalHeight} · ${size(found.size_bytes)}`));
  } }, picture);
  button.addEventListener("arrive", async () => {
    try {
      picture.src = found.base64 ? included(found) : await imageUrl(`tables/${context.table}/image`, { ...context.at, ...place });
    } catch (error) {
      button.replaceWith(bytes(found, error.problem ? "" : "image "));
    }
  });
  arrived.observe(button);
  return button;
}

function included(found) {
  const data = Uint8Array.from(atob(found.base64), (each) => each.charCodeAt(0));
  return URL.createObjectURL(new Blob([data], { type: found.media_type }));
}

function blob(found, context, place) {
  const label = h("span", { class: "mono small" }, "blob ", h("span", { class: "muted" }, size(found.size_bytes)));
  return place && found.size_bytes ? image(found, context, place) : label;
}

function vector(found, name) {
  const strip = h("canvas", { width: STRIP.width * 2, height: STRIP.height * 2, class: "strip", "aria-hidden": "true" });
  const draw = () => drawStrip(strip, found);
  draw();
  const listen = () => (strip.isConnected ? draw() : window.removeEventListener("themechange", listen));
  window.addEventListener("themechange", listen);
  const label = `${name}: vector of ${number(found.length)} numbers from ${short(found.min)} to ${short(found.max)}`;
  return h("button", { type: "button", class: "vector", "aria-label": `${label}. Show it`, title: label, onclick: () => showVector(found, name) },
    strip, h("span", { class: "muted small num" }, `${number(found.length)}d`));
}

function short(value) {
  return value === null ? "unknown" : Number(value.toPrecision(4)).toString();
}

function drawStrip(canvas, found) {
  const pen = canvas.getContext("2d");
  const most = Math.max(Math.abs(found.min ?? 0), Math.abs(found.max ?? 0)) || 1;
  const wide = canvas.width / found.values.length;
  pen.clearRect(0, 0, canvas.width, canvas.height);
  found.values.forEach((value, i) => {
    if (value === null) return;
    pen.fillStyle = diverging(Math.max(-1, Math.min(1, value / most)));
    pen.fillRect(Math.floor(i * wide), 0, Math.ceil(wide), canvas.height);
  });
}

function showVector(found, name) {
  const canvas = h("canvas", { width: WIDE.width * 2, height: WIDE.height * 2, class: "line", role: "img",
    "aria-label": `Line of ${number(found.values.length)} values` });
  const strip = h("canvas", { width: WIDE.width * 2, height: 36, class: "strip wide", "aria-hidden": "true" });
  drawStrip(strip, found);
  const pen = canvas.getContext("2d");
  const low = Math.min(0, found.min ?? 0);
  const high = Math.max(0, found.max ?? 0);
  const y = (value) => canvas.height - 8 - ((value - low) / (high - low || 1)) * (canvas.height - 16);
  pen.strokeStyle = color("--line");
  pen.lineWidth = 2;
  pen.beginPath();
  pen.moveTo(0, y(0));
  pen.lineTo(canvas.width, y(0));
  pen.stroke();
  pen.strokeStyle = color("--accent");
  pen.lineWidth = 2.5;
  pen.lineJoin = "round";
  pen.beginPath();
  let isDown = false;
  found.values.forEach((value, i) => {
    const x = (i / Math.max(1, found.values.length - 1)) * canvas.width;
    if (value === null) isDown = false;
    else if (isDown) pen.lineTo(x, y(value));
    else {
      pen.moveTo(x, y(value));
      isDown = true;
    }
  });
  pen.stroke();
  const cut = found.values.length < found.length ? ` The first ${number(found.values.length)} are shown.` : "";
  openDialog(name, strip, canvas,
    h("p", { class: "muted num" }, `${number(found.length)} numbers · minimum ${short(found.min)} · maximum ${short(found.max)} · norm ${short(found.norm)}.${cut}`),
    h("pre", { class: "whole", tabindex: "0" }, found.values.map((value) => (value === null ? "–" : String(value))).join("  ")));
}

// Scores of a search come first.
function scoresFirst(found) {
  const order = found.columns.map((_, i) => i);
  const isScore = (i) => ["_distance", "_score", "_relevance_score"].includes(found.columns[i].name);
  order.sort((a, b) => isScore(b) - isScore(a) || a - b);
  return { ...found, columns: order.map((i) => found.columns[i]), rows: found.rows.map((row) => order.map((i) => row[i])) };
}

export function rowsTable(answer, context, action) {
  const found = scoresFirst(answer);
  const heads = [...(action ? [{ name: "" }] : []), ...found.columns.map((column) => ({
    name: column.name, note: arrowType(column.type), is_number: column.is_number,
  }))];
  const at = { version: found.version, branch: found.branch };
  const rows = found.rows.map((row, i) => [
    ...(action ? [action(i)] : []),
    ...row.map((value, j) => cell(value, { table: context.table, at }, found.addresses && !found.columns[j].name.startsWith("_")
      ? { address: found.addresses[i], column: quoted(found.columns[j].name) } : null)),
  ]);
  return grid("Rows", heads, rows, { class: "rows cards" });
}

function quoted(name) {
  return /[.`]/.test(name) ? `\`${name.replaceAll("`", "``")}\`` : name;
}
