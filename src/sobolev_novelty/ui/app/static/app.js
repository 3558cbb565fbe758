// The page of 'sobolev app'. All state is on the server: what is drawn here is what /api/state says.

import { drawFront } from "./front.js";
import { byId, list, make, r2Text, say, show } from "./page.js";

const POLL = 400; // milliseconds between two looks at a running search
const NO_ANSWER = "The app does not answer. Is ‘sobolev app’ still running in its terminal?";
let state = null;
let tableFile = null; // the last table that was chosen, to be read again in another way
let shownReport = null;
let timer = null;

// The token has done its work: it must not stay in the history. The key came with the page and stays in this tab.
if (location.search) history.replaceState(null, "", "/");
const given = document.querySelector("meta[name=key]").content;
if (given) sessionStorage.setItem("key", given);
const KEY = sessionStorage.getItem("key") ?? "";
const withKey = (path) => `${path}${path.includes("?") ? "&" : "?"}key=${encodeURIComponent(KEY)}`;

// --- asking the server

async function ask(path, options = {}) {
  let answer;
  try {
    answer = await fetch(path, { credentials: "same-origin", ...options, headers: { "X-Sobolev-Key": KEY, ...options.headers } });
  } catch {
    throw new Error(NO_ANSWER);
  }
  const content = await answer.json();
  if (content.error) throw new Error(content.error);
  return content;
}

function post(path, body, headers = {}) {
  return ask(path, { method: "POST", headers, body });
}

// What a report or a pruning leads to: these may take minutes and can be cancelled.
const CANCELLABLE = ["report-card", "pruned-card", "next-card"];
const errors = ["table-error", "equation-error", "fit-error"];

// Do something that takes a moment: say so, show what came of it (on a narrow page: go there), or why nothing did.
async function act(errorId, words, work, resultId = null) {
  errors.forEach((id) => say(id, ""));
  say("status", words);
  show("cancel", CANCELLABLE.includes(resultId));
  document.body.classList.add("busy");
  const buttons = ["report", "prune", "next", "fit", "example", "take-pruned"].map(byId);
  buttons.forEach((button) => { button.disabled = true; });
  try {
    draw(await work());
    if (resultId && !matchMedia("(min-width:64rem)").matches) byId(resultId).scrollIntoView();
  } catch (error) {
    say(errorId, error.message);
  } finally {
    say("status", "");
    show("cancel", false);
    document.body.classList.remove("busy");
    buttons.forEach((button) => { button.disabled = false; });
    if (state) byId("fit").disabled = isRunning();
  }
}

function question() {
  const boxes = [...byId("inputs").querySelectorAll("input")];
  const chosen = boxes.filter((box) => box.checked && box.value !== byId("target").value).map((box) => box.value);
  const all = boxes.every((box) => box.checked === (box.dataset.numeric === "yes"));
  return {
    equation: byId("equation").value, target: byId("target").value, features: all ? null : chosen,
    dialect: byId("dialect").value, variables: byId("variables").value,
  };
}

const asked = (more = {}) => JSON.stringify({ ...question(), ...more });

const number = (id) => (byId(id).value === "" ? null : Number(byId(id).value));

// --- files

function tooLarge(file) {
  if (!state || file.size <= state.limit) return "";
  const megabytes = (size) => `${Math.round(size / 2 ** 20).toLocaleString("en")} MB`;
  return `‘${file.name}’ has ${megabytes(file.size)}; the app takes ${megabytes(state.limit)} at most. Start it with a larger --limit, or use ‘sobolev report’ or ‘sobolev fit’, which read files of any size.`;
}

function openTable(file) {
  tableFile = file;
  byId("read-again").disabled = false;
  const headers = {
    "X-File-Name": encodeURIComponent(file.name), "X-Table-Separator": byId("separator").value,
    "X-Table-Decimal": byId("decimal").value, "X-Table-Encoding": encodeURIComponent(byId("encoding").value),
    "X-Table-Header": byId("no-header").checked ? "no" : "yes",
  };
  return act("table-error", `Reading ${file.name} …`, () => {
    const words = tooLarge(file);
    if (words) throw new Error(words);
    return post("/api/table", file, headers);
  });
}

function openModel(file) {
  return act("equation-error", `Reading ${file.name} …`, () => {
    const words = tooLarge(file);
    if (words) throw new Error(words);
    return post("/api/model", file, { "X-File-Name": encodeURIComponent(file.name) });
  });
}

const looksLikeModel = (name) => /\.json$|hall_of_fame/i.test(name);

function takeDrops() {
  const cards = { "table-card": openTable, "equation-card": openModel };
  const over = (target) => Object.keys(cards).find((id) => byId(id).contains(target));
  addEventListener("dragover", (event) => {
    event.preventDefault();
    for (const id of Object.keys(cards)) byId(id).classList.toggle("over", over(event.target) === id);
  });
  addEventListener("dragleave", (event) => {
    if (!event.relatedTarget) for (const id of Object.keys(cards)) byId(id).classList.remove("over");
  });
  // A file that misses its card must not take the place of the page.
  addEventListener("drop", (event) => {
    event.preventDefault();
    for (const id of Object.keys(cards)) byId(id).classList.remove("over");
    const [file] = event.dataTransfer.files;
    if (!file) return;
    const open = cards[over(event.target)] ?? (looksLikeModel(file.name) ? openModel : openTable);
    open(file);
  });
}

// --- drawing

const isRunning = () => state.fit !== null && ["running", "stopping"].includes(state.fit.status);

// What a user has typed and not sent yet is not touched by news from the server that nobody asked for.
function draw(found, isNews = false) {
  const before = state;
  state = found;
  drawTable(before);
  drawEquation(before, isNews);
  drawFront(state.fit, (index) => act("fit-error", "Computing the report …", () => post("/api/choose", JSON.stringify({ index })), "report-card").then(() => byId("front-table").focus({ preventScroll: true })));
  drawPruned();
  drawNext();
  drawReport();
  show("stop", isRunning());
  byId("stop").disabled = isRunning() && state.fit.status === "stopping";
  byId("fit").disabled = isRunning();
  show("welcome", state.report === null && state.fit === null);
  clearTimeout(timer);
  if (isRunning()) timer = setTimeout(poll, POLL);
}

async function poll() {
  try {
    draw(await ask("/api/state"), true);
    if (byId("fit-error").textContent === NO_ANSWER) say("fit-error", "");
  } catch (error) {
    say("fit-error", error.message);
    timer = setTimeout(poll, 5 * POLL);
  }
}

function drawTable(before) {
  const table = state.table;
  show("columns", table !== null);
  show("table-facts", table !== null);
  show("table-hint", table === null);
  show("example", table === null);
  if (table === null) return;
  const key = (t) => JSON.stringify([t.table, t.target, t.features]);
  if (before && key(before) === key(state)) return; // what the user is choosing stays
  say("table-facts", `${table.name}: ${table.n_rows.toLocaleString("en")} rows, ${table.columns.length} columns`);
  byId("table-button").querySelector("span").textContent = "Choose another table";
  list("table-notes", table.notes);
  const head = table.columns.slice(0, table.preview[0]?.length ?? 0);
  byId("preview").replaceChildren(make("table", { class: "small" },
    make("thead", {}, make("tr", {}, ...head.map((c) => make("th", { scope: "col" }, c.name)))),
    make("tbody", {}, ...table.preview.map((row) => make("tr", {}, ...row.map((entry) => make("td", {}, entry)))))));
  const numeric = table.columns.filter((column) => column.is_numeric);
  byId("target").replaceChildren(make("option", { value: "" }, "none"),
    ...numeric.map((c) => make("option", { value: c.name, selected: c.name === state.target }, c.name)));
  const legend = byId("inputs").querySelector("legend");
  byId("inputs").replaceChildren(legend, ...table.columns.map((column) => {
    const checked = state.features ? state.features.includes(column.name) : column.is_numeric;
    const box = make("input", { type: "checkbox", value: column.name, checked, "data-numeric": column.is_numeric ? "yes" : "no" });
    return make("label", { class: "check" }, box, column.is_numeric ? column.name : `${column.name} (not numeric)`);
  }));
}

function drawEquation(before, isNews) {
  const isEdited = before && byId("equation").value !== before.equation;
  if (!before || (before.equation !== state.equation && !(isNews && isEdited))) byId("equation").value = state.equation;
  if (!before || before.dialect !== state.dialect) byId("dialect").value = state.dialect;
  if (!before || before.variables !== state.variables) byId("variables").value = state.variables;
  const file = state.model_file;
  show("choices", file !== null && file.equations.length > 1);
  if (file === null || JSON.stringify(before?.model_file) === JSON.stringify(file)) return;
  say("model-hint", `From ${file.name}.`);
  byId("choice").replaceChildren(...file.equations.map((equation) =>
    make("option", { value: equation, selected: equation === state.equation }, equation.length > 90 ? `${equation.slice(0, 89)}…` : equation)));
}

function drawPruned() {
  const pruned = state.pruned;
  show("pruned-card", pruned !== null);
  if (pruned === null) return;
  const facts = (r2, nodes) => `R² ${r2Text(r2)}, ${nodes} nodes`;
  const isShorter = pruned.after !== pruned.before;
  const parts = [["Before", pruned.before, facts(pruned.r2_before, pruned.complexity_before)]];
  if (isShorter) parts.push(["After", pruned.after, facts(pruned.r2_after, pruned.complexity_after)]);
  const rows = parts.flatMap(([name, equation, words]) => [
    make("dt", {}, name), make("dd", {}, make("code", {}, equation), make("span", { class: "left" }, words))]);
  const deleted = pruned.deleted.map((step) => step.term);
  const words = deleted.length
    ? `Deleted: ${deleted.join(", ")}.`
    : isShorter ? "No term was deleted; the coefficients were refitted." : "Nothing was deleted: every term is needed.";
  byId("pruned").replaceChildren(make("p", {}, words), make("dl", { class: "change" }, ...rows));
  show("take-pruned", isShorter);
}

function drawNext() {
  show("next-card", state.next !== null);
  if (state.next === null) return;
  const cells = (kind, row) => make("tr", {}, ...row.map((value) => make(kind, {}, String(value))));
  const body = state.next.rows.map((row) => cells("td", row.map((value) => Number(value.toPrecision(6)))));
  byId("next-table").replaceChildren(...(body.length ? [make("table", {}, make("thead", {}, cells("th", state.next.columns)), make("tbody", {}, ...body))] : []));
  byId("next-words").replaceChildren(...state.next.words.map((words) => make("li", {}, words)));
}

function drawReport() {
  show("report-card", state.report !== null);
  if (state.report === null || shownReport === state.report.number) return;
  shownReport = state.report.number;
  byId("report-frame").src = withKey(`/report?number=${shownReport}`);
}

// The frame is as high as its report, so that only one thing scrolls.
function fitFrame() {
  const frame = byId("report-frame");
  const inner = frame.contentDocument?.body;
  if (!inner) return;
  const grow = () => { frame.style.height = `${inner.scrollHeight + 2}px`; };
  grow();
  new ResizeObserver(grow).observe(inner);
}

// --- events

byId("table-file").addEventListener("change", (event) => { if (event.target.files[0]) openTable(event.target.files[0]); event.target.value = ""; });
byId("model-file").addEventListener("change", (event) => { if (event.target.files[0]) openModel(event.target.files[0]); event.target.value = ""; });
byId("read-again").addEventListener("click", () => openTable(tableFile));
byId("example").addEventListener("click", () => act("table-error", "Computing the report …", () => post("/api/example", "{}"), "report-card"));
byId("report").addEventListener("click", () => act("equation-error", "Computing the report …", () => post("/api/report", asked()), "report-card"));
byId("prune").addEventListener("click", () => act("equation-error", "Pruning …", () => post("/api/prune", asked()), "pruned-card"));
byId("next").addEventListener("click", () => act("equation-error", "Choosing rows …", () => post("/api/next", asked()), "next-card"));
byId("take-pruned").addEventListener("click", () => act("equation-error", "Computing the report …", () => post("/api/pruned", "{}"), "report-card"));
byId("fit").addEventListener("click", () => act("fit-error", "Starting the search …", () =>
  post("/api/fit", asked({ seconds: number("seconds"), max_complexity: number("max_complexity"), select: byId("select").value })), "front-card"));
byId("stop").addEventListener("click", () => act("fit-error", "", () => post("/api/stop", "{}")));
// The request that is cancelled says so itself; that nothing was under way any more is no news.
byId("cancel").addEventListener("click", () => post("/api/cancel", "{}").catch(() => {}));
byId("choice").addEventListener("change", (event) => { byId("equation").value = event.target.value; });
byId("equation").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); byId("report").click(); }
});
byId("save-as").addEventListener("change", (event) => { byId("save").href = withKey(`/download/${event.target.value}`); });
for (const link of document.querySelectorAll("a[download]")) link.href = withKey(link.getAttribute("href"));
byId("report-frame").addEventListener("load", fitFrame);
takeDrops();
ask("/api/state").then(draw).catch((error) => say("table-error", error.message));
