// Colours of the theme, and scales between them.

const STEPS = 64;
const known = new Map();

window.addEventListener("themechange", () => known.clear());

function rgb(name) {
  const probe = document.getElementById("status");
  probe.style.color = `var(${name})`;
  const found = getComputedStyle(probe).color.match(/[\d.]+/g).slice(0, 3).map(Number);
  probe.style.color = "";
  return found;
}

export function color(name) {
  return `rgb(${rgb(name).join(" ")})`;
}

function between(from, to) {
  return Array.from({ length: STEPS + 1 }, (_, i) => `rgb(${from.map((value, k) => Math.round(value + ((to[k] - value) * i) / STEPS)).join(" ")})`);
}

// A colour for a part from 0 to 1.
export function heat(part) {
  if (!known.has("heat")) known.set("heat", between(rgb("--heat-0"), rgb("--heat-1")));
  return known.get("heat")[Math.round(STEPS * part)];
}

// A colour for a part from -1 to 1.
export function diverging(part) {
  if (!known.has("low")) {
    known.set("low", between(rgb("--mid"), rgb("--low")));
    known.set("high", between(rgb("--mid"), rgb("--high")));
  }
  return known.get(part < 0 ? "low" : "high")[Math.round(STEPS * Math.abs(part))];
}
