// Elements by their ids, made from text only: nothing that a user or a file brings is ever read as HTML.

export const byId = (id) => document.getElementById(id);

export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

export function drawn(tag, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

export const show = (id, visible) => { byId(id).hidden = !visible; };

export function say(id, words) {
  const element = byId(id);
  element.textContent = words;
  if (element.getAttribute("role") === "alert") element.hidden = !words;
}

export function list(id, sentences) {
  byId(id).replaceChildren(...sentences.map((sentence) => make("li", {}, sentence)));
}

// An exponent.
export const raised = (k) => String(k).replace("-", "⁻").replace(/\d/g, (d) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[d]);

// R² as far as it is not 1: three nines say more than a rounded one.
export function r2Text(r2) {
  if (r2 === null) return "–";
  const rest = 1 - r2;
  if (rest > 0 && rest < 0.001) {
    const [digits, exponent] = rest.toExponential(1).split("e");
    return `1 − ${digits} × 10${raised(exponent)}`;
  }
  return r2.toFixed(4).replace(/^-(?=0\.0+$)/, "").replace("-", "−");
}
