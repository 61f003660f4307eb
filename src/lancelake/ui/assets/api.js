// Calls of the server. The token is in the fragment of the address that the command printed; it is
// kept by the browser for this origin, and sent in a header only.

const KEY = "lancelake-token";
const GIVEN = /^#token=([0-9a-f]{32,128})$/;

export function takeToken() {
  const found = GIVEN.exec(location.hash);
  if (!found) return;
  localStorage.setItem(KEY, found[1]);
  history.replaceState(null, "", "#/");
}

async function ask(path, options) {
  let response;
  try {
    response = await fetch(path, {
      ...options,
      headers: { ...options.headers, Authorization: `Bearer ${localStorage.getItem(KEY) || ""}` },
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw { problem: "The server does not answer.", next_step: "Start it again with `lancelake ui`, and open the address it prints." };
  }
  if (response.status === 401) {
    throw { problem: "This page has no valid token.", next_step: "Open the address that `lancelake ui` printed." };
  }
  return response;
}

function query(parameters) {
  const pairs = Object.entries(parameters).filter(([, value]) => value !== null && value !== undefined && value !== "");
  return pairs.length ? `?${new URLSearchParams(pairs)}` : "";
}

async function answer(response) {
  const body = await response.json();
  if (!response.ok) throw body;
  return body;
}

export async function get(path, parameters = {}, signal = undefined) {
  return answer(await ask(`/api/${path}${query(parameters)}`, { signal }));
}

export async function post(path, parameters, body, signal = undefined) {
  return answer(await ask(`/api/${path}${query(parameters)}`, {
    method: "POST", signal, body: JSON.stringify(body), headers: { "Content-Type": "application/json" },
  }));
}

const images = new Map();
const MOST_IMAGES = 400;

export async function imageUrl(path, parameters) {
  const key = `/api/${path}${query(parameters)}`;
  if (!images.has(key)) {
    if (images.size >= MOST_IMAGES) {
      const [oldest, url] = images.entries().next().value;
      images.delete(oldest);
      url.then(URL.revokeObjectURL, () => {});
    }
    images.set(key, ask(key, {}).then(async (response) => {
      if (!response.ok) throw await response.json();
      return URL.createObjectURL(await response.blob());
    }));
  }
  return images.get(key);
}
