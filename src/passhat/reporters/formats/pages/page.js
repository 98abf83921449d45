"use strict";
document.documentElement.classList.add("js");

document.querySelector("[data-theme-switch]")?.addEventListener("click", () => {
  const root = document.documentElement;
  const now = root.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  root.dataset.theme = now === "dark" ? "light" : "dark";
});

// The search, the choice and the order are in the address, so that a link to them can be sent.
const state = new URLSearchParams(location.hash.startsWith("#?") ? location.hash.slice(2) : "");
const remember = (key, value) => {
  if (value) state.set(key, value);
  else state.delete(key);
  const kept = state.toString();
  history.replaceState(null, "", location.pathname + location.search + (kept && `#?${kept}`));
};

const order = new Intl.Collator(undefined, { numeric: true });
for (const [place, section] of document.querySelectorAll("[data-tasks]").entries()) {
  const table = section.querySelector("table");
  const body = section.querySelector("tbody");
  const rows = [...body.rows].filter((row) => !row.classList.contains("said"));
  // The transcripts of a task are in the row below it, and move with it.
  const said = new Map([...body.querySelectorAll(".said")].map((row) => [row.previousElementSibling, row]));
  const text = section.querySelector("input[type=search]");
  const label = section.querySelector("select");
  const count = section.querySelector("output");

  const filter = () => {
    const wanted = text.value.toLowerCase();
    let shown = 0;
    for (const row of rows) {
      const fits = row.cells[0].textContent.toLowerCase().includes(wanted) &&
        (!label?.value || row.dataset.label === label.value);
      row.hidden = !fits;
      if (said.has(row)) said.get(row).hidden = !fits;
      shown += fits;
    }
    count.value = `${shown} of ${rows.length} task${rows.length === 1 ? "" : "s"}`;
  };
  text.value = state.get(`find${place}`) ?? "";
  if (label) label.value = state.get(`label${place}`) ?? "";
  text.addEventListener("input", () => (filter(), remember(`find${place}`, text.value)));
  label?.addEventListener("change", () => (filter(), remember(`label${place}`, label.value)));
  filter();

  const heads = [...section.querySelectorAll("thead th")];
  heads.forEach((head, column) => {
    const button = head.querySelector("button");
    if (!button) return;
    const sort = () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const texts = rows.map((row) => row.cells[column].dataset.v ?? row.cells[column].textContent);
      const numbers = texts.every((text) => text !== "" && !isNaN(text));
      const keys = new Map(rows.map((row, i) => [row, numbers ? +texts[i] : texts[i]]));
      const compare = numbers
        ? (a, b) => keys.get(a) - keys.get(b)
        : (a, b) => order.compare(keys.get(a), keys.get(b));
      rows.sort((a, b) => (down ? compare(b, a) : compare(a, b)));
      // Out of the page while rows move: it is laid out once, when they are back.
      body.remove();
      body.append(...rows.flatMap((row) => (said.has(row) ? [row, said.get(row)] : [row])));
      table.append(body);
      remember(`sort${place}`, (down ? "-" : "") + button.textContent);
    };
    button.addEventListener("click", sort);
    const wanted = state.get(`sort${place}`);
    if (wanted && wanted.replace(/^-/, "") === button.textContent) {
      sort();
      if (wanted.startsWith("-")) sort();
    }
  });
}

// The slider of k moves the answer, the number, its gauge, the table and a line in the curve.
const hero = document.querySelector("[data-hero]");
const slider = document.querySelector("[data-k-slider]");
if (slider) {
  const several = [...document.querySelectorAll("[data-at-k]")];
  const ks = hero ? JSON.parse(hero.dataset.hero) : [...new Set(several.map((one) => +one.dataset.atK))].sort((a, b) => a - b).map((k) => ({ k }));
  const at = (name) => hero.querySelector(`[data-${name}]`);
  const place = (box, ends) => {
    box.setAttribute("x", ends ? `${100 * ends[0]}%` : 0);
    box.setAttribute("width", ends ? `${100 * (ends[1] - ends[0])}%` : 0);
  };
  const answer = document.querySelector("[data-answer]");
  const chip = document.querySelector("[data-chip]");
  // Pieces of text, each with its class, as the page has them at the k it opens with.
  const spans = (pieces) => pieces.map(([kind, text]) => Object.assign(document.createElement("span"), { className: kind, textContent: text }));
  const curve = document.querySelector("[data-figure=decay] svg, [data-figure=curves] svg");
  const mark = curve && curve.appendChild(document.createElementNS("http://www.w3.org/2000/svg", "path"));
  if (mark) mark.setAttribute("class", "axis");
  const showOne = (one) => {
    hero.classList.toggle("model", one.model);
    at("name").textContent = one.name;
    at("value").textContent = one.shown;
    at("intervals").replaceChildren(...spans(one.intervals));
    place(hero.querySelector(".suite"), one.suite);
    place(hero.querySelector(".like"), one.like);
    hero.querySelector(".value").setAttribute("cx", `${100 * one.value}%`);
    answer.replaceChildren(...spans(one.answer));
    chip.className = "chip " + one.chip[0];
    chip.textContent = one.chip[1];
  };
  const show = () => {
    const one = ks[+slider.value];
    document.querySelector("[data-k-shown]").value = one.k;
    document.querySelector("[data-k-note]").textContent = one.model ? "beyond the runs: a model, not measured" : "measured";
    slider.setAttribute("aria-valuetext", one.k === 1 ? "once" : `${one.k} times in a row`);
    if (hero) showOne(one);
    for (const part of several) part.hidden = +part.dataset.atK !== one.k;
    if (mark) mark.setAttribute("d", placeOf(one.k) === null ? "" : `M${placeOf(one.k)} 32V${curve.viewBox.baseVal.height - 44}`);
    for (const row of document.querySelectorAll("tr[data-k]")) row.classList.toggle("at", +row.dataset.k === one.k);
  };
  // Where the curve has a dot at k, as the drawing says.
  const placeOf = (k) => {
    const found = curve.querySelector(`circle[data-x="${k}"]`);
    return found ? found.getAttribute("cx") : ks.find((one) => one.k === k).x ?? null;
  };
  slider.addEventListener("input", show);
  show();
}

// A link to a task or a system opens what it is folded into.
const reveal = () => {
  const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!target) return;
  for (let fold = target.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
  // On a reload the browser would go back to where it was, which may be another place.
  history.scrollRestoration = "manual";
  target.scrollIntoView();
};
addEventListener("hashchange", reveal);
reveal();

// Pictures and tables can be saved. A saved picture has light colours on white written into it,
// also on a dark page, so that it can be read wherever it is shown.
const save = (name, text, type) => {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(text instanceof Blob ? text : new Blob([text], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
};
const LOOK = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray", "stroke-opacity", "opacity", "font-weight", "text-anchor"];
const plainSvg = (figure) => {
  const shown = figure.querySelector("svg");
  const copy = shown.cloneNode(true);
  const theme = document.documentElement.dataset.theme;
  document.documentElement.dataset.theme = "light";
  const [from, to] = [shown, copy].map((one) => [one, ...one.querySelectorAll("*")]);
  from.forEach((one, i) => {
    const look = getComputedStyle(one);
    for (const name of LOOK) to[i].setAttribute(name, look.getPropertyValue(name));
  });
  if (theme) document.documentElement.dataset.theme = theme;
  else delete document.documentElement.dataset.theme;
  const ground = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  for (const [name, value] of [["width", "100%"], ["height", "100%"], ["fill", "#fff"]]) ground.setAttribute(name, value);
  copy.prepend(ground);
  copy.setAttribute("font-family", "Helvetica, Arial, sans-serif");
  copy.setAttribute("font-size", "12");
  return new XMLSerializer().serializeToString(copy);
};
const fileName = (figure) => `passhat-${(figure.dataset.figure || "figure").replace(/[^\w-]+/g, "-")}`;
// A cell that a spreadsheet would compute is quoted as text.
const quoted = (text) => `"${(/^[=+@-]/.test(text) && isNaN(text) ? "'" : "") + text.replaceAll('"', '""')}"`;
const asCsv = (rows) => rows.map((row) => row.map((cell) => quoted(String(cell ?? ""))).join(",")).join("\r\n") + "\r\n";
const saved = {
  svg(button) {
    const figure = button.closest("figure");
    save(fileName(figure) + ".svg", plainSvg(figure), "image/svg+xml");
  },
  png(button) {
    const figure = button.closest("figure");
    const { width, height } = figure.querySelector("svg").viewBox.baseVal;
    const image = new Image();
    image.onload = () => {
      const canvas = document.createElement("canvas");
      [canvas.width, canvas.height] = [2 * width, 2 * height];
      canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
      canvas.toBlob((blob) => save(fileName(figure) + ".png", blob), "image/png");
    };
    image.src = "data:image/svg+xml," + encodeURIComponent(plainSvg(figure));
  },
  rows(button) {
    const figure = button.closest("figure");
    save(fileName(figure) + ".csv", asCsv(JSON.parse(figure.dataset.rows)), "text/csv");
  },
  csv(button) {
    const rows = [...button.closest("[data-tasks]").querySelectorAll("thead tr, tbody tr[data-row]:not([hidden])")];
    save("tasks.csv", asCsv(rows.map((row) => [...row.cells].map((cell) => cell.textContent.trim()))), "text/csv");
  },
};
document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-save]");
  if (button) saved[button.dataset.save](button);
});

// Transcripts that are not written out stay packed until one of them is opened. A block holds
// pieces of this very page, escaped when it was made.
const stored = document.getElementById("transcripts");
if (stored) {
  const blocks = JSON.parse(stored.textContent);
  const opened = new Map();
  const unpack = async (packed) => {
    const bytes = Uint8Array.from(atob(packed), (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
    return JSON.parse(await new Response(stream).text());
  };
  for (const details of document.querySelectorAll("details[data-transcript]:not([data-transcript=''])")) {
    details.addEventListener("toggle", async () => {
      const place = details.lastElementChild;
      if (!details.open || place.childElementCount) return;
      const [block, number] = details.dataset.transcript.split(".").map(Number);
      if (!opened.has(block)) opened.set(block, unpack(blocks[block]));
      place.innerHTML = (await opened.get(block))[number];
    });
  }
}
