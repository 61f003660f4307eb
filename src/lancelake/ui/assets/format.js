// Numbers, sizes and times as text.

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
const AGES = [["second", 60], ["minute", 60], ["hour", 24], ["day", 30.44], ["month", 12], ["year", Infinity]];
const relative = new Intl.RelativeTimeFormat("en", { numeric: "auto", style: "short" });

export function number(value) {
  return value === null || value === undefined ? "unknown" : value.toLocaleString("en");
}

export function size(bytes) {
  if (bytes === null || bytes === undefined) return "unknown";
  let value = bytes;
  let unit = 0;
  while (value >= 1024 && unit < UNITS.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${unit === 0 ? value : value.toFixed(value < 10 ? 2 : value < 100 ? 1 : 0)} ${UNITS[unit]}`;
}

export function age(text) {
  if (!text) return "";
  let value = (new Date(text) - Date.now()) / 1000;
  for (const [unit, most] of AGES) {
    if (Math.abs(value) < most) return relative.format(Math.round(value), unit);
    value /= most;
  }
  return text;
}

export function moment(text) {
  if (!text) return "unknown";
  return text.replace("T", " ");
}

export function plural(count, word) {
  return `${number(count)} ${count === 1 ? word : word.endsWith("x") ? `${word.slice(0, -2)}ices` : `${word}s`}`;
}

export function tableName(uri) {
  const parts = uri.replace(/\/+$/, "").split("/");
  return parts[parts.length - 1] || uri;
}

export function share(part, whole) {
  if (!whole) return "0 %";
  const value = (100 * part) / whole;
  return `${value > 0 && value < 0.1 ? "< 0.1" : value.toFixed(value < 10 && value > 0 ? 1 : 0)} %`;
}

export function arrowType(type) {
  const plain = type
    .replace(/fixed_size_list<\w+: (.*?)( not null)?>\[(\d+)\]/g, "$1[$3]")
    .replace(/list<\w+: /g, "list<");
  return plain.length > 26 ? `${plain.slice(0, 25)}…` : plain;
}

export function typeText(type) {
  const [kind, ...rest] = type.split(":");
  if (kind === "fixed_size_list") return `${typeText(rest.slice(0, -1).join(":"))}[${rest[rest.length - 1]}]`;
  if (kind === "timestamp") {
    const zone = rest.slice(1).join(":");
    return zone === "-" ? `timestamp[${rest[0]}]` : `timestamp[${rest[0]}, ${zone}]`;
  }
  if (kind === "decimal") return `decimal${rest[0]}(${rest[1]}, ${rest[2]})`;
  if (kind === "date32" || kind === "date64") return kind;
  return type.replace(/\.struct$/, "");
}
