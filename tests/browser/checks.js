// What a machine can see of a page that is hard to use: text with little contrast, controls without a name, and a page
// that scrolls sideways. Returns sentences; none is good.
() => {
  const faults = [];
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const parse = (color) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = color;
    canvas.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
    return [r, g, b, a / 255];
  };
  const over = (top, below) => [0, 1, 2].map((k) => top[k] * top[3] + below[k] * (1 - top[3])).concat(1);
  const luminance = (c) => {
    const [r, g, b] = c.slice(0, 3).map((v) => v / 255).map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const contrast = (a, b) => {
    const [high, low] = [luminance(a), luminance(b)].sort((x, y) => y - x);
    return (high + 0.05) / (low + 0.05);
  };
  const isDark = matchMedia("(prefers-color-scheme: dark)").matches;
  const background = (element) => {
    const layers = [];
    for (let e = element; e; e = e.parentElement) layers.push(parse(getComputedStyle(e).backgroundColor));
    return layers.reverse().reduce((below, layer) => over(layer, below), isDark ? [18, 18, 18, 1] : [255, 255, 255, 1]);
  };
  // The fill under a text of a drawing: the last shape before it that lies under its middle.
  const shapeUnder = (text) => {
    const box = text.getBoundingClientRect();
    const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
    let found = null;
    for (const shape of text.ownerSVGElement.querySelectorAll("rect")) {
      if (!(shape.compareDocumentPosition(text) & Node.DOCUMENT_POSITION_FOLLOWING)) continue;
      const r = shape.getBoundingClientRect();
      if (r.left <= x && x <= r.right && r.top <= y && y <= r.bottom) found = shape;
    }
    return found;
  };
  const isShown = (element) => {
    const box = element.getBoundingClientRect();
    const style = getComputedStyle(element);
    return box.width > 1 && box.height > 1 && style.visibility !== "hidden" && element.checkVisibility?.() !== false;
  };

  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const seen = new Set();
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.textContent.trim() || seen.has(element) || !isShown(element)) continue;
    if (["SCRIPT", "STYLE", "NOSCRIPT"].includes(element.tagName) || element.closest(":disabled")) continue;
    seen.add(element);
    const style = getComputedStyle(element);
    const isDrawn = element.ownerSVGElement !== null && element.ownerSVGElement !== undefined;
    let below = background(element);
    if (isDrawn) {
      const shape = shapeUnder(element);
      if (shape) {
        const fill = parse(getComputedStyle(shape).fill);
        fill[3] *= Number(getComputedStyle(shape).fillOpacity) * Number(getComputedStyle(shape).opacity);
        below = over(fill, below);
      }
    }
    const color = over(parse(isDrawn ? style.fill : style.color), below);
    const size = parseFloat(style.fontSize), isLarge = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    const ratio = contrast(color, below);
    if (ratio < (isLarge ? 3 : 4.5)) faults.push(`contrast ${ratio.toFixed(2)} of "${element.textContent.trim().slice(0, 40)}"`);
  }

  const name = (control) => control.getAttribute("aria-label") || control.labels?.[0]?.textContent || control.textContent || control.title;
  for (const control of document.querySelectorAll("input, select, textarea, button, a[href], iframe, [role=group], progress, svg[role=img]")) {
    if (isShown(control) && !(name(control) || "").trim()) faults.push(`no name: <${control.tagName.toLowerCase()} id="${control.id}">`);
  }
  for (const control of document.querySelectorAll("[tabindex]")) {
    if (control.tabIndex > 0) faults.push(`order of its own: ${control.tagName}`);
  }
  const ids = [...document.querySelectorAll("[id]")].map((e) => e.id);
  if (new Set(ids).size < ids.length) faults.push("an id is used twice");
  if (!document.documentElement.lang) faults.push("the page does not say its language");
  if (document.querySelectorAll("h1").length !== 1) faults.push("not exactly one h1");
  const root = document.scrollingElement ?? document.documentElement;
  if (root.scrollWidth > window.innerWidth) {
    const widest = [...document.body.querySelectorAll("*")].find((e) => e.getBoundingClientRect().right > window.innerWidth + 1);
    faults.push(`scrolls sideways by ${root.scrollWidth - window.innerWidth} px: ${widest?.tagName} ${widest?.id} ${widest?.className}`);
  }
  return faults;
}
