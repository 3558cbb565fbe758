// The front of a search: a table of equations, and the error against the size.

import { byId, drawn, list, make, r2Text, raised, say, show } from "./page.js";

const WIDTH = 320, HEIGHT = 220, LEFT = 52, BOTTOM = 36, TOP = 10, RIGHT = 10;

export function drawFront(fit, choose) {
  show("front-card", fit !== null);
  if (fit === null) return;
  const isRunning = fit.status === "running" || fit.status === "stopping";
  const pace = `${fit.n_evaluations.toLocaleString("en")} forms fitted in ${fit.elapsed.toFixed(0)} s`;
  const doing = {
    running: `Searching for ${fit.target}: ${pace} of ${fit.seconds} s.`,
    stopping: `Stopping after the round under way: ${pace}.`,
    done: `${fit.message} ${pace}.`,
    failed: fit.message,
  };
  say("pace", doing[fit.status]);
  const bar = byId("bar");
  bar.hidden = !isRunning;
  bar.value = Math.min(1, fit.elapsed / fit.seconds);
  list("fit-notes", fit.notes);
  show("fit-downloads", fit.has_model);
  byId("front-table").replaceChildren(fit.front.length ? table(fit, choose) : "");
  byId("front-plot").replaceChildren(...plot(fit.front));
  show("front-plot", fit.front.length > 0);
}

function table(fit, choose) {
  const isDone = fit.status === "done";
  const heads = ["Size", "R²", ...(isDone ? ["Lowest ν"] : []), "Equation", ...(isDone ? ["Report"] : [])];
  const head = make("tr", {}, ...heads.map((name) => make("th", { scope: "col", class: name === "Equation" || name === "Report" ? null : "number" }, name)));
  const rows = fit.front.map((row, index) => {
    const novelty = row.min_novelty === null ? "–" : row.min_novelty?.toFixed(2);
    const cells = [cell("size", String(row.complexity)), cell("R²", r2Text(row.r2))];
    if (isDone) cells.push(cell("ν", novelty));
    cells.push(make("td", { class: "equation-cell" }, make("code", {}, row.equation)));
    if (isDone) {
      const button = make("button", { type: "button", "aria-label": `Report of the equation of size ${row.complexity}` }, "Show");
      button.addEventListener("click", () => choose(index));
      cells.push(make("td", {}, row.is_best ? "shown below" : button));
    }
    return make("tr", { class: row.is_best ? "best" : null }, ...cells);
  });
  return make("table", { class: "list" }, make("thead", {}, head), make("tbody", {}, ...rows));
}

const cell = (name, words) => make("td", { class: "number", "data-name": name }, words);

function plot(front) {
  const points = front.filter((row) => row.r2 !== null)
    .map((row) => ({ size: row.complexity, error: Math.max(1 - row.r2, 1e-16), isBest: row.is_best }));
  if (!points.length) return [];
  const sizes = points.map((p) => p.size), exponents = points.map((p) => Math.log10(p.error));
  const low = Math.floor(Math.min(...exponents)), high = Math.max(low + 1, Math.ceil(Math.max(...exponents) - 0.01));
  const first = Math.min(...sizes) - 1, last = Math.max(...sizes) + 1;
  const x = (size) => LEFT + (WIDTH - LEFT - RIGHT) * (size - first) / (last - first);
  const y = (exponent) => TOP + (HEIGHT - BOTTOM - TOP) * (high - exponent) / (high - low);
  const parts = [drawn("path", { class: "frame", d: `M${LEFT} ${TOP}V${HEIGHT - BOTTOM}H${WIDTH - RIGHT}` })];
  const step = Math.max(1, Math.ceil((high - low) / 5));
  for (let k = low; k <= high; k += step) parts.push(text(LEFT - 6, y(k) + 4, "end", k === 0 ? "1" : `10${raised(k)}`));
  const stride = [1, 2, 5, 10, 20, 50].find((k) => (last - first) / k <= 7) ?? 100;
  for (let k = Math.ceil((first + 1) / stride) * stride; k < last; k += stride) parts.push(text(x(k), HEIGHT - BOTTOM + 15, "middle", String(k)));
  let line = "";
  points.forEach((p, k) => { line += k ? `H${x(p.size)}V${y(Math.log10(p.error))}` : `M${x(p.size)} ${y(Math.log10(p.error))}`; });
  parts.push(drawn("path", { class: "frame", d: line }));
  for (const p of points) {
    parts.push(drawn("circle", { class: p.isBest ? "low" : "high", cx: x(p.size), cy: y(Math.log10(p.error)), r: p.isBest ? 6 : 4 }));
  }
  parts.push(text((LEFT + WIDTH) / 2, HEIGHT - 5, "middle", "size", "name"));
  const label = text(12, (HEIGHT - BOTTOM + TOP) / 2, "middle", "1 − R²", "name");
  label.setAttribute("transform", `rotate(-90 12 ${(HEIGHT - BOTTOM + TOP) / 2})`);
  parts.push(label);
  const best = points.find((p) => p.isBest);
  const said = `Error against size of ${points.length} equations` + (best ? `; the marked one has size ${best.size}.` : ".");
  const svg = drawn("svg", { class: "fit", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": said }, ...parts);
  return [svg];
}

function text(x, y, anchor, words, kind = "") {
  return drawn("text", { x, y, "text-anchor": anchor, class: kind }, words);
}
