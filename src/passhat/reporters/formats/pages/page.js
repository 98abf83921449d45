"use strict";
document.documentElement.classList.add("js");

// What was searched for, chosen and sorted by stands in the address, so that it can be sent.
const state = new URLSearchParams(location.hash.startsWith("#?") ? location.hash.slice(2) : "");
const remember = (key, value) => {
  if (value) state.set(key, value);
  else state.delete(key);
  const kept = state.toString();
  history.replaceState(null, "", location.pathname + location.search + (kept && `#?${kept}`));
};

for (const [place, section] of document.querySelectorAll("[data-tasks]").entries()) {
  const body = section.querySelector("tbody");
  const rows = [...body.rows].filter((row) => !row.classList.contains("said"));
  // What was said in a task's runs stands in a row of its own, and goes with the task.
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
    count.value = shown + " of " + rows.length + " tasks";
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
      const key = (row) => row.cells[column].dataset.v ?? row.cells[column].textContent;
      const compare = (a, b) => {
        const [x, y] = [key(a), key(b)];
        const numbers = x !== "" && y !== "" && !isNaN(x) && !isNaN(y);
        return numbers ? x - y : x.localeCompare(y, undefined, { numeric: true });
      };
      rows.sort((a, b) => (down ? compare(b, a) : compare(a, b)));
      body.append(...rows.flatMap((row) => (said.has(row) ? [row, said.get(row)] : [row])));
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

// The slider of k moves the number, its gauge, the row of the table and a line in the curve.
const hero = document.querySelector("[data-hero]");
const slider = document.querySelector("[data-k-slider]");
if (hero && slider) {
  const ks = JSON.parse(hero.dataset.hero);
  const percent = (share) => (100 * share).toFixed(1).replace(/\.0$/, "");
  const span = (ends) => `${percent(ends[0])} to ${percent(ends[1])} %`;
  const place = (box, ends) => {
    box.setAttribute("x", ends ? 100 * ends[0] : 0);
    box.setAttribute("width", ends ? 100 * (ends[1] - ends[0]) : 0);
  };
  const first = [hero.querySelector("[data-value]").textContent, hero.querySelector("[data-intervals]").textContent];
  const start = +slider.value;
  const curve = document.querySelector("[data-figure=decay] svg");
  const mark = curve && curve.appendChild(document.createElementNS("http://www.w3.org/2000/svg", "path"));
  if (mark) mark.setAttribute("class", "axis");
  const show = () => {
    const at = +slider.value;
    const one = ks[at];
    document.querySelector("[data-k-shown]").value = one.k;
    slider.setAttribute("aria-valuetext", one.k === 1 ? "once" : `${one.k} times in a row`);
    hero.classList.toggle("model", one.model);
    hero.querySelector("[data-name]").textContent = one.k === 1 ? "one try (pass^1)" : `${one.k} in a row (reliability@${one.k})`;
    // What was written when the page was made is exact; what is shown on the way is rounded here.
    hero.querySelector("[data-value]").textContent = at === start ? first[0] : `${one.model ? "\u2248 " : ""}${percent(one.value)} %`;
    hero.querySelector("[data-intervals]").textContent = at === start ? first[1] : one.model
      ? "extrapolated by a model, not measured"
      : [one.suite && `this suite ${span(one.suite)}`, one.like && `tasks like these ${span(one.like)}`].filter(Boolean).join("; ");
    place(hero.querySelector(".suite"), one.suite);
    place(hero.querySelector(".like"), one.like);
    hero.querySelector(".value").setAttribute("x", Math.min(100 * one.value - 0.5, 99));
    if (mark) mark.setAttribute("d", one.x === undefined ? "" : `M${one.x} 32V246`);
    for (const row of document.querySelectorAll("tr[data-k]")) row.classList.toggle("at", +row.dataset.k === one.k);
  };
  slider.addEventListener("input", show);
  show();
}

// A link to a task or a system opens what it is folded into.
const reveal = () => {
  const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!target) return;
  for (let fold = target.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
  target.scrollIntoView();
};
addEventListener("hashchange", reveal);
reveal();

// Pictures and tables can be taken away: colours are written into the copy of a picture.
const save = (name, text, type) => {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
};
const LOOK = ["fill", "stroke", "stroke-width", "stroke-dasharray", "stroke-opacity", "opacity", "font-weight", "text-anchor"];
const saved = {
  svg(button) {
    const shown = button.closest("figure").querySelector("svg");
    const copy = shown.cloneNode(true);
    const [from, to] = [shown, copy].map((one) => [one, ...one.querySelectorAll("*")]);
    from.forEach((one, i) => {
      const look = getComputedStyle(one);
      for (const name of LOOK) to[i].setAttribute(name, look.getPropertyValue(name));
    });
    copy.setAttribute("font-family", "Helvetica, Arial, sans-serif");
    copy.setAttribute("font-size", "12");
    save("passhat.svg", new XMLSerializer().serializeToString(copy), "image/svg+xml");
  },
  csv(button) {
    const quoted = (text) => `"${(/^[=+@-]/.test(text) ? "'" : "") + text.replaceAll('"', '""')}"`;
    const rows = [...button.closest("[data-tasks]").querySelectorAll("thead tr, tbody tr[data-row]:not([hidden])")];
    const lines = rows.map((row) => [...row.cells].map((cell) => quoted(cell.textContent.trim())).join(","));
    save("tasks.csv", lines.join("\r\n") + "\r\n", "text/csv");
  },
};
document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-save]");
  if (button) saved[button.dataset.save](button);
});

// Transcripts are data until somebody asks to read one.
const stored = document.getElementById("transcripts");
if (stored) {
  const transcripts = JSON.parse(stored.textContent);
  for (const details of document.querySelectorAll("details[data-transcript]")) {
    details.addEventListener("toggle", () => {
      const place = details.lastElementChild;
      if (!details.open || place.textContent) return;
      const text = transcripts[details.dataset.transcript];
      if ("turns" in details.dataset) place.append(...cardsOf(text));
      else place.textContent = text;
    });
  }
}
