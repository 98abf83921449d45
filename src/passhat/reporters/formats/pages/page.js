"use strict";
document.documentElement.classList.add("js");
const oneOf = (selector) => document.querySelector(selector);
const allOf = (selector) => document.querySelectorAll(selector);

oneOf("[data-theme-switch]")?.addEventListener("click", () => {
  const root = document.documentElement.dataset;
  const preferred = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  // Back at what the browser prefers, it decides again.
  if (root.theme && root.theme !== preferred) delete root.theme;
  else root.theme = preferred === "dark" ? "light" : "dark";
});

// The search, the choice, the order and k are in the address, so that a link to them can be sent.
const state = new URLSearchParams(location.search);
const remember = (key, value) => {
  if (value) state.set(key, value);
  else state.delete(key);
  const kept = state.toString();
  history.replaceState(history.state, "", location.pathname + (kept && `?${kept}`) + location.hash);
};

// Only for pages with: data-tasks
const order = new Intl.Collator(undefined, { numeric: true });
for (const [place, section] of allOf("[data-tasks]").entries()) {
  const named = (key) => key + (place || "");
  const rows = [...section.querySelectorAll("[data-row]")];
  const groups = [...section.querySelectorAll(".group")];
  const opened = new Map(groups.map((group) => [group, group.open]));
  const text = section.querySelector("input[type=search]");
  const label = section.querySelector("select:not([data-order])");
  const arranged = section.querySelector("select[data-order]");
  const count = section.querySelector("output");
  const words = new Map(rows.map((row) => [row, (row.querySelector(".name") ?? row).textContent.toLowerCase()]));

  const filter = () => {
    const wanted = text.value.toLowerCase();
    const fits = (row) => words.get(row).includes(wanted) && (!label?.value || row.dataset.label === label.value);
    let shown = 0;
    for (const row of rows) {
      row.hidden = !fits(row);
      shown += !row.hidden;
    }
    // What was found is shown, whatever it is folded into; afterwards folds are as they were.
    for (const group of groups) {
      const found = group.querySelector("[data-row]:not([hidden])");
      group.hidden = !found;
      group.open = wanted ? !!found : opened.get(group);
    }
    count.value = `${shown.toLocaleString("en")} of ${rows.length.toLocaleString("en")} task${rows.length === 1 ? "" : "s"}`;
  };
  text.value = state.get(named("find")) ?? "";
  if (label) label.value = state.get(named("label")) ?? "";
  text.addEventListener("input", () => (filter(), remember(named("find"), text.value)));
  label?.addEventListener("change", () => (filter(), remember(named("label"), label.value)));

  // In another order than by passes, all rows are one list.
  if (arranged) {
    const homes = new Map(rows.map((row) => [row, row.parentElement]));
    const flat = section.querySelector("[data-flat]");
    const orders = {
      name: (a, b) => order.compare(a.dataset.row, b.dataset.row),
      score: (a, b) => a.dataset.score - b.dataset.score,
    };
    const arrange = () => {
      const by = orders[arranged.value];
      for (const row of by ? rows.toSorted(by) : rows) (by ? flat : homes.get(row)).append(row);
      flat.hidden = !by;
      filter();
    };
    arranged.value = state.get(named("sort")) ?? "";
    if (arranged.selectedIndex < 0) arranged.value = "";
    arranged.addEventListener("change", () => (arrange(), remember(named("sort"), arranged.value)));
    if (arranged.value) arrange();
  }
  filter();

  const table = section.querySelector("table");
  const heads = [...section.querySelectorAll("thead th")];
  heads.forEach((head, column) => {
    const button = head.querySelector("button");
    if (!button) return;
    const sort = () => {
      const body = table.tBodies[0];
      const down = head.getAttribute("aria-sort") === "ascending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const texts = rows.map((row) => row.cells[column].textContent);
      const numbers = texts.every((text) => text !== "" && !isNaN(text));
      const keys = new Map(rows.map((row, i) => [row, numbers ? +texts[i] : texts[i]]));
      const compare = numbers
        ? (a, b) => keys.get(a) - keys.get(b)
        : (a, b) => order.compare(keys.get(a), keys.get(b));
      rows.sort((a, b) => (down ? compare(b, a) : compare(a, b)));
      // Out of the page while rows move: it is laid out once, when they are back.
      body.remove();
      body.append(...rows);
      table.append(body);
      remember(named("sort"), (down ? "-" : "") + button.textContent);
    };
    button.addEventListener("click", sort);
    const wanted = state.get(named("sort"));
    if (wanted && wanted.replace(/^-/, "") === button.textContent) {
      sort();
      if (wanted.startsWith("-")) sort();
    }
  });
}

// Only for pages with: data-k-slider
// The slider of k moves the answer, the number, its gauge, the table and a line in the curve.
const hero = oneOf("[data-hero]");
const slider = oneOf("[data-k-slider]");
if (slider) {
  const several = [...allOf("[data-at-k]")];
  const ks = hero ? JSON.parse(hero.dataset.hero) : [...new Set(several.map((one) => +one.dataset.atK))].sort((a, b) => a - b).map((k) => ({ k }));
  const at = (name) => hero.querySelector(`[data-${name}]`);
  const place = (box, ends) => {
    box.setAttribute("x", ends ? `${100 * ends[0]}%` : 0);
    box.setAttribute("width", ends ? `${100 * (ends[1] - ends[0])}%` : 0);
  };
  const answer = oneOf("[data-answer]");
  const chip = oneOf("[data-chip]");
  // Pieces of text, each with its class, as the page has them at the k it opens with.
  const spans = (pieces) => pieces.map(([kind, text]) => Object.assign(document.createElement("span"), { className: kind, textContent: text }));
  const curve = oneOf("[data-figure=decay] svg, [data-figure=curves] svg");
  const mark = curve && curve.appendChild(document.createElementNS("http://www.w3.org/2000/svg", "path"));
  if (mark) mark.setAttribute("class", "axis");
  const showOne = (one) => {
    hero.classList.toggle("model", !!one.model);
    at("name").textContent = one.name;
    at("value").textContent = one.shown;
    const measured = [["suite", "these tasks "], ["like", "similar tasks "]].filter(([scope]) => one[scope]);
    at("intervals").replaceChildren(...spans(one.model ? [["", one.model]] : measured.map(([scope, words]) => [scope, words + one[scope][2]])));
    place(hero.querySelector(".suite"), one.suite);
    place(hero.querySelector(".like"), one.like);
    hero.querySelector(".value").setAttribute("cx", `${100 * one.value}%`);
    answer.replaceChildren(...spans(one.answer));
    chip.className = "chip " + one.chip[0];
    chip.textContent = one.chip[1];
  };
  const show = () => {
    const one = ks[+slider.value];
    oneOf("[data-k-shown]").value = one.k;
    oneOf("[data-k-note]").textContent = `${one.shown ? `${one.shown}, ` : ""}${one.model ? "a model, not measured" : "measured"}`;
    slider.setAttribute("aria-valuetext", one.k === 1 ? "once" : `${one.k} times in a row`);
    if (hero) showOne(one);
    for (const part of several) part.hidden = +part.dataset.atK !== one.k;
    if (mark) mark.setAttribute("d", placeOf(one.k));
    for (const row of allOf("tr[data-k]")) row.classList.toggle("at", +row.dataset.k === one.k);
  };
  // An upright line where k is on the axis of the curve.
  const axis = curve?.querySelector("[data-axis]");
  const placeOf = (k) => {
    const [low, high, kind] = axis.dataset.axis.split(" ");
    const [start, floor, stop] = axis.getAttribute("d").match(/[\d.]+/g).map(Number);
    const along = kind === "doublings" ? Math.log : Number;
    const share = (along(k) - along(low)) / (along(high) - along(low));
    return `M${start + share * (stop - start)} 32V${floor}`;
  };
  slider.addEventListener("input", () => (show(), remember("k", String(ks[+slider.value].k))));
  const asked = ks.findIndex((one) => String(one.k) === state.get("k"));
  if (asked >= 0) slider.value = asked;
  show();
}

// Only for pages with: data-follow
// One agent is followed through the tables and pictures of several; its name is in the address.
const followed = oneOf("[data-follow]");
if (followed) {
  const drawn = [...allOf("[data-of]")].map((part) => [part, part.dataset.of]);
  const rows = [...allOf(".agents tbody tr")].map((row) => [row, row.cells[0].textContent]);
  const follow = () => {
    document.body.classList.toggle("following", !!followed.value);
    for (const [part, name] of [...drawn, ...rows]) part.classList.toggle("on", name === followed.value);
  };
  const choose = (name) => {
    followed.value = name;
    if (followed.selectedIndex < 0) followed.value = "";
    follow();
  };
  followed.addEventListener("change", () => (follow(), remember("follow", followed.value)));
  document.addEventListener("click", (event) => {
    const part = event.target.closest("svg [data-of]");
    if (!part) return;
    choose(part.dataset.of === followed.value ? "" : part.dataset.of);
    remember("follow", followed.value);
  });
  if (state.get("follow")) choose(state.get("follow"));
}

// Only for pages with: data-columns=
// Arrow keys walk through the cells of a matrix, which are read out; so is the one pointed at.
const cells = oneOf("[data-figure=matrix] [data-columns]");
if (cells) {
  const grid = cells.closest("figure"), svg = cells.closest("svg");
  const [heads, ...tasks] = JSON.parse(grid.dataset.rows);
  const [left, wide, gap, top, tall, ...sizes] = cells.dataset.columns.split(" ").map(Number);
  const grouped = sizes.flatMap((size, i) => Array(size).fill(gap * i)).map((apart, i) => left + wide * i + apart);
  const columns = tasks.map((_, i) => i);
  let lefts = grouped, placed = columns;
  const said = grid.appendChild(document.createElement("output"));
  let at = null;
  const percent = new Map(cells.dataset.words.split(" ").map((one) => one.split("=")).map(([share, words]) => [+share, words]));
  const show = (column, row) => {
    at = [Math.min(Math.max(column, 0), tasks.length - 1), Math.min(Math.max(row, 0), heads.length - 2)];
    const [task, ...shares] = tasks[placed[at[0]]], share = shares[at[1]];
    cells.setAttribute("d", `M${lefts[at[0]]} ${top + tall * at[1] + 1}h${wide}v${tall - 2}h${-wide}z`);
    said.value = `${heads[at[1] + 1]}, ${task}: ${share === null ? "no trial" : `passed ${percent.get(share)} of its trials`}`;
  };
  const steps = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] };
  grid.addEventListener("keydown", (event) => {
    const step = steps[event.key];
    if (!step || event.target !== grid) return;
    event.preventDefault();
    if (at) show(at[0] + step[0], at[1] + step[1]);
    else show(0, 0);
  });
  svg.addEventListener("pointermove", (event) => {
    const { x, y } = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
    const [column, row] = [lefts.findLastIndex((edge) => edge <= x), Math.floor((y - top) / tall)];
    if (column >= 0 && x <= lefts[column] + wide && row >= 0 && row < heads.length - 1) show(column, row);
  });
  // In the other order the columns are those of the picture, moved: easiest first, in one stretch.
  const parts = [...svg.querySelectorAll("[data-of] path")].map((path) => [path, path.getAttribute("d")]);
  const [, , width, whole] = svg.getAttribute("viewBox").split(" ");
  const orders = grid.querySelector(".orders"), buttons = [...orders.querySelectorAll("button")];
  const mean = ([, ...shares]) => {
    const known = shares.filter((share) => share !== null);
    return known.reduce((sum, share) => sum + share, 0) / Math.max(known.length, 1);
  };
  const easiest = columns.toSorted((a, b) => mean(tasks[b]) - mean(tasks[a]));
  const arrange = (chosen) => {
    const moved = chosen === "easiest";
    [lefts, placed] = moved ? [columns.map((i) => left + wide * i), easiest] : [grouped, columns];
    const place = columns.map((i) => placed.indexOf(i));
    const shift = (x) => {
      const column = grouped.findLastIndex((edge) => edge <= x + 0.06);
      return x + lefts[place[column]] - grouped[column];
    };
    for (const [path, d] of parts) {
      const ground = path.matches(".l0") && d.match(/^M[\d.]+ ([\d.]+)h[\d.]+v([\d.]+)/);
      path.setAttribute("d", !moved ? d : ground ? `M${left} ${ground[1]}h${wide * tasks.length}v${ground[2]}H${left}z` : d.replace(/M([\d.]+)/g, (_, x) => `M${shift(+x).toFixed(1)}`));
    }
    svg.classList.toggle("ungrouped", moved);
    const height = moved ? top + tall * (heads.length - 1) + 30 : whole;
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    svg.setAttribute("height", height);
    for (const button of buttons) button.setAttribute("aria-pressed", button.dataset.columnsOrder === chosen);
    cells.setAttribute("d", "M0 0");
    at = null;
    said.value = "";
  };
  orders.hidden = false;
  orders.addEventListener("click", (event) => {
    const chosen = event.target.closest("button")?.dataset.columnsOrder;
    if (chosen === undefined) return;
    arrange(chosen);
    remember("columns", chosen);
  });
  if (state.get("columns") === "easiest") arrange("easiest");
}

// Only for pages with: data-copy-text
const copyText = async (text, button) => {
  try {
    await navigator.clipboard.writeText(text);
  } catch { // not offered where the connection is not encrypted
    const box = Object.assign(document.createElement("textarea"), { value: text });
    document.body.append(box);
    box.select();
    document.execCommand("copy");
    box.remove();
    button.focus();
  }
};
for (const button of allOf("[data-copy-text]")) {
  button.hidden = false;
  button.addEventListener("click", async () => {
    await copyText(button.dataset.copyText, button);
    button.textContent = "Copied";
    setTimeout(() => (button.textContent = "Copy"), 2000);
  });
}

// Only for pages with: <html
const named = (hash) => (hash ? document.getElementById(decodeURIComponent(hash.slice(1))) : null);

// A link to a task or a system opens what it is folded into.
const reveal = () => {
  const target = named(location.hash);
  if (!target || target.matches(".trial")) return;
  for (let fold = target.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
  // On a reload the browser would go back to where it was, which may be another place.
  history.scrollRestoration = "manual";
  target.scrollIntoView();
};
addEventListener("hashchange", reveal);
reveal();

// Only for pages with: data-save, <figure
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
  const added = (tag, text) => copy.insertBefore(document.createElementNS("http://www.w3.org/2000/svg", tag), copy.firstChild).append(text);
  added("rect", "");
  for (const [name, value] of [["width", "100%"], ["height", "100%"], ["fill", "#fff"]]) copy.firstChild.setAttribute(name, value);
  added("desc", figure.querySelector("figcaption").textContent);
  added("title", figure.querySelector(".of-figure").textContent);
  copy.removeAttribute("aria-labelledby");
  copy.setAttribute("font-family", "Helvetica, Arial, sans-serif");
  copy.setAttribute("font-size", "12");
  return new XMLSerializer().serializeToString(copy);
};
for (const figure of allOf("figure[id]")) {
  const kinds = [["svg", "SVG"], ["png", "PNG"], ...(figure.dataset.rows ? [["rows", "CSV"]] : [])];
  const buttons = kinds.map(([kind, name]) => `<button type="button" class="plain" data-save="${kind}">${name}</button>`);
  figure.insertAdjacentHTML("beforeend", `<p class="tools saves">${buttons.join("")}<a href="#${figure.id}">Link</a></p>`);
}
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
    const section = button.closest("[data-tasks]");
    const rows = [...section.querySelectorAll("thead tr, tbody tr[data-row]:not([hidden])")];
    const lines = rows.map((row) => [...row.cells].map((cell) => cell.textContent.trim()));
    const listed = [...section.querySelectorAll("li[data-row]:not([hidden])")];
    const said = (row, part) => row.querySelector(part)?.textContent.trim() ?? "";
    if (listed.length) lines.push(["task", "label", "passed", "score", "trials"], ...listed.map((row) => [row.dataset.row, row.dataset.label, said(row, ".n"), row.dataset.score ?? "", said(row, ".runs")]));
    save("tasks.csv", asCsv(lines), "text/csv");
  },
};
document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-save]");
  if (button) saved[button.dataset.save](button);
});

// Only for pages with: class="drawer", data-drawers, data-row=
// Transcripts that are not written out stay packed until one of them is opened. A block holds
// pieces of this very page, escaped when it was made.
const stored = document.getElementById("transcripts");
const blocks = stored && JSON.parse(stored.textContent);
const unpacked = new Map();
const unpack = async (packed) => {
  const bytes = Uint8Array.from(atob(packed), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return JSON.parse(await new Response(stream).text());
};
const filled = async (trial) => {
  const said = trial.querySelector(".said");
  if (trial.dataset.transcript) {
    const [block, number] = trial.dataset.transcript.split(".").map(Number);
    trial.dataset.transcript = "";
    if (!unpacked.has(block)) unpacked.set(block, unpack(blocks[block]));
    said.innerHTML = (await unpacked.get(block))[number];
  }
  return said;
};

// Every mark of a trial is a link, also one without a transcript here: it leads to what else is
// known of the trial. Marks come as text, which is lighter, and turn into links as they come in sight.
const OUTCOMES = { "●": ["passed", "good", "✓"], "○": ["failed", "bad", "✕"], "×": ["errored", "none", "×"] };
const make = (tag, className, textContent, ...parts) => {
  const made = Object.assign(document.createElement(tag), { className, textContent });
  made.append(...parts);
  return made;
};
const cellsOf = (row) => {
  const cells = [...row.querySelectorAll(".runs, .together td:not(.name)")];
  const agents = row.closest("[data-agents]")?.dataset.agents.split(" ");
  return cells.map((cell, i) => [cell, (row.dataset.base ?? row.id) + (agents ? `-${agents[i]}` : "")]);
};
const numbers = new Map();
const linkMarks = (row) => {
  for (const [cell, base] of cellsOf(row)) {
    // In a long table they have no colours until then.
    if (/^[●○×]+$/.test(cell.textContent.trim()) && !cell.children.length) cell.replaceChildren(make("b", "", cell.textContent.trim()));
    const bare = [...cell.children].filter((part) => part.matches("b, i, u"));
    if (bare.length) {
      const marks = make("span", "marks");
      bare[0].before(marks);
      marks.append(...bare);
    }
    const marks = cell.querySelector(".marks");
    let place = 0;
    for (const part of marks?.querySelectorAll("a, b, i, u") ?? []) {
      if (part.matches("a")) place++;
      else
        part.replaceWith(
          ...[...part.textContent].map((letter) => {
            const number = numbers.get(base)?.[place] ?? place + 1;
            place++;
            const mark = make("a", OUTCOMES[letter][0], letter);
            mark.setAttribute("href", `#${base}-trial-${number}`);
            mark.setAttribute("aria-label", `Trial #${number}, ${OUTCOMES[letter][0]}`);
            return mark;
          }),
        );
    }
    marks?.classList.toggle("many", place > 12);
  }
  // The name leads to the trial to read first.
  const marks = [...row.querySelectorAll(".marks a")], name = row.querySelector(".name");
  const first = marks.find((mark) => !mark.matches(".passed")) ?? marks[0];
  if (!first || !name) return;
  if (!name.querySelector("a")) name.replaceChildren(make("a", "", "", ...name.childNodes));
  const link = name.querySelector("a");
  if (!link.hasAttribute("href") || link.getAttribute("href") === `#${row.id}`) link.setAttribute("href", first.getAttribute("href"));
};
const known = document.getElementById("trials");
const facts = known && unpack(JSON.parse(known.textContent));
facts?.then((all) => Object.entries(all).forEach(([base, one]) => one.number && numbers.set(base, one.number))).finally(() => watch());
const watch = () => {
  const inSight = new IntersectionObserver((seen) => {
    for (const one of seen) if (one.isIntersecting) (inSight.unobserve(one.target), linkMarks(one.target));
  }, { rootMargin: "50%" });
  for (const row of allOf("[data-row]")) inSight.observe(row);
};
if (!facts) watch();
// The marks of an agent's trials at a task, where its row is; and whose they are.
const marksAt = (base) => {
  const row = document.getElementById(base) ?? document.getElementById(base.replace(/-[0-9a-f]{4}$/, ""));
  if (!row?.matches("[data-row]")) return {};
  linkMarks(row);
  const place = cellsOf(row).findIndex(([, own]) => own === base);
  const agent = row.closest("[data-agents]")?.querySelectorAll("[data-agent]")[place]?.textContent ?? "";
  return { row, agent, marks: cellsOf(row)[place]?.[0].querySelector(".marks") };
};
// The drawer of a trial without a transcript: all trials of its task, and what this one took.
const madeTrial = async (hash) => {
  const [, base, number] = decodeURIComponent(hash).match(/^#(.+)-trial-(\d+)$/) ?? [];
  if (!base) return null;
  const took = (await facts)?.[base] ?? {};
  const { row, agent, marks } = marksAt(base);
  const links = [...(marks?.children ?? [])];
  const place = links.findIndex((link) => link.getAttribute("href") === `#${base}-trial-${number}`);
  if (place < 0 || location.hash !== hash) return null;
  const [outcome, tone, sign] = OUTCOMES[links[place].textContent];
  const close = make("a", "close", "✕");
  close.setAttribute("href", `#${row.id}`);
  close.setAttribute("aria-label", "Close");
  const title = make("h2", "", row.dataset.row.replace(/^(?=\d+$)/, "Task "), " ", make("span", "soft", agent));
  const head = make("h3", "", `Trial #${number} `, make("span", `chip ${tone}`, `${sign} ${outcome}`));
  head.tabIndex = -1;
  const told = Object.entries(took).filter(([name, values]) => name !== "number" && values[place] !== null);
  const list = told.map(([name, values]) => make("div", "", "", make("dt", "", name.replace("_", " ")), make("dd", "", values[place])));
  const card = list.length ? [make("div", "card", "", make("dl", "", "", ...list))] : [];
  const said = make("div", "said", "", ...card, make("p", "soft", "What was said in this trial is not on this page."));
  const trial = Object.assign(make("article", "trial on", "", head, said), { id: `${base}-trial-${number}` });
  const drawer = make("section", "drawer on", "", make("header", "", "", title, close, make("p", "others", "", make("span", "marks"))), trial);
  drawer.setAttribute("aria-label", `Trials of ${row.dataset.row}`);
  drawer.dataset.made = "";
  document.body.append(drawer);
  return trial;
};

// Only for pages with: <html
// Keys for those who want them. Single letters can be turned off, as speech input and screen readers
// may send them; focus moves only to what it could be moved to by Tab, or by reading on.
const sheet = document.getElementById("keys");
const keysButton = oneOf("[data-keys]");
const keysOn = () => !sheet?.open && (sheet?.querySelector("input").checked ?? true);
if (sheet && keysButton) {
  const choice = sheet.querySelector("input");
  try { choice.checked = localStorage.getItem("passhat-keys") !== "off"; } catch { /* then they are on */ }
  choice.addEventListener("change", () => {
    try { localStorage.setItem("passhat-keys", choice.checked ? "on" : "off"); } catch { /* for this page only */ }
  });
  keysButton.hidden = false;
  keysButton.addEventListener("click", () => sheet.showModal());
  const shown = (one) => one.getClientRects().length > 0;
  // Messages of a trial, or else the first link of each row.
  const stops = () => {
    const cards = [...allOf("main .run .card")].filter(shown);
    if (cards.length) return cards;
    const rows = [...allOf("main tbody tr, main li[data-row], main .hits li")].filter(shown);
    return rows.map((row) => row.querySelector("a[href]")).filter(Boolean);
  };
  const walk = (step) => {
    const all = stops();
    const now = all.findIndex((one) => one === document.activeElement || one.contains(document.activeElement));
    const next = all[now < 0 ? (step > 0 ? 0 : all.length - 1) : now + step];
    if (!next) return;
    if (!next.matches("a")) next.tabIndex = -1;
    next.focus();
    next.scrollIntoView({ block: "nearest" });
  };
  const way = (rel) => oneOf(`main a[rel=${rel}]`)?.click();
  const keys = {
    "/": () => [...allOf("input[type=search]")].find(shown)?.focus(),
    "?": () => sheet.showModal(),
    j: () => walk(1),
    k: () => walk(-1),
    "]": () => way("next"),
    "[": () => way("prev"),
  };
  document.addEventListener("keydown", (event) => {
    const field = event.target.closest("input:not([type=checkbox]), select, textarea");
    if (event.key === "Escape" && field) field.blur();
    if (field || event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    // In the drawer of a trial they walk through trials and messages.
    if (!keysOn() || (event.key !== "?" && oneOf(".drawer:has(.trial:target), .drawer.on"))) return;
    const own = oneOf(`main [accesskey="${CSS.escape(event.key)}"]`);
    if (!keys[event.key] && !own) return;
    event.preventDefault();
    if (own) own.click();
    else keys[event.key]();
  });
}

// Only for pages with: class="drawer", data-drawers, data-row=
// The address of a trial opens it in the drawer, also without a script. With one, focus moves there
// and back, the page stays where it was, and keys walk through trials and messages.
if (oneOf(".drawer, [data-drawers], [data-row]")) {
  let opener = null, scrolled = 0;
  const shown = () => oneOf(".drawer:has(.trial:target), .drawer.on");
  // Only for pages with: beside-link
  // Beside another trial: both in two columns, with a mark where their calls part.
  const beside = async (trial, other) => {
    const sides = await Promise.all([trial, other].map(filled));
    const calls = sides.map((side) => [...side.querySelectorAll(".card.call")]);
    const words = (card) => card && ["code", "dl", ".words"].map((part) => card.querySelector(part)?.textContent).join();
    const most = Math.max(...calls.map((all) => all.length));
    let at = 0;
    while (at < most && words(calls[0][at]) === words(calls[1][at])) at++;
    const both = Object.assign(document.createElement("div"), { className: "sides" });
    const halves = sides.map((side, i) => {
      const cards = [...side.children].map((card) => card.cloneNode(true));
      const cut = calls[i][at] ? [...side.children].indexOf(calls[i][at]) : cards.length;
      return [cards.slice(0, cut), cards.slice(cut)];
    });
    const column = (...parts) => {
      const box = document.createElement("div");
      box.append(...parts);
      return box;
    };
    const agent = (one) => (trial.closest(".drawer") === other.closest(".drawer") ? "" : one.closest(".drawer").querySelector("h2 .soft").textContent + ": ");
    const heading = (one) => Object.assign(document.createElement("h4"), { textContent: agent(one) + one.querySelector("h3").firstChild.textContent + (one.querySelector("h3 .chip")?.textContent ?? "") });
    both.append(...[trial, other].map((one, i) => column(heading(one), ...halves[i][0])));
    both.append(Object.assign(document.createElement("p"), { className: "fork", textContent: at < most ? "≠ Here they part" : "Their calls are the same" }));
    both.append(...halves.map((half) => column(...half[1])));
    trial.append(both);
  };
  // Only for pages with: class="drawer", data-drawers, data-row=
  const turn = async () => {
    for (const one of allOf(".drawer .on, .drawer.on, .pair-view")) one.classList.remove("on", "pair-view");
    for (const one of allOf(".drawer .sides")) one.remove();
    for (const one of allOf(".said[hidden]")) one.hidden = false;
    for (const one of allOf("[data-made]")) one.remove();
    const pair = location.hash && [...allOf(".beside-link")].find((one) => one.hash === location.hash);
    const trial = pair ? pair.closest(".trial") : named(location.hash) ?? (await madeTrial(location.hash));
    for (const one of allOf(".drawer [aria-current]")) one.removeAttribute("aria-current");
    if (!trial?.matches(".trial")) return;
    const drawer = trial.closest(".drawer");
    // The rail has every trial of the task, also those whose transcript is not here.
    const { marks } = marksAt(trial.id.replace(/-trial-\d+$/, ""));
    if (marks && !marks.querySelector("a:not([href^='#'])")) drawer.querySelector(".others .marks")?.replaceChildren(...marks.cloneNode(true).children);
    [...drawer.querySelectorAll(".others a")].find((one) => one.getAttribute("href") === `#${trial.id}`)?.setAttribute("aria-current", "true");
    scrollTo(0, scrolled);
    if (pair) {
      drawer.classList.add("on", "pair-view");
      trial.classList.add("on");
      trial.querySelector(".said").hidden = true;
      await beside(trial, document.getElementById(pair.dataset.beside));
    } else await filled(trial);
    drawer.scrollTop = 0;
    trial.querySelector("h3").focus({ preventScroll: true });
  };
  const close = () => {
    if (!shown()) return;
    // The target changes with an address that is gone to, not with one that is set.
    location.hash = "";
    history.replaceState(null, "", location.pathname + location.search);
    turn();
    scrollTo(0, scrolled);
    opener?.focus({ preventScroll: true });
  };
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[href^='#'], [data-drawers] .marks a");
    if (!link) return;
    if (link.matches(".close")) {
      event.preventDefault();
      close();
    } else if (!link.closest(".drawer")) {
      [opener, scrolled] = [link, scrollY];
    }
  });
  addEventListener("hashchange", turn);
  document.addEventListener("keydown", (event) => {
    const drawer = shown();
    if (!drawer || event.target.closest("input, select, textarea") || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.closest("dialog")) return;
    if (event.key === "Escape") close();
    if (!keysOn()) return;
    const rail = [...drawer.querySelectorAll(".others a")];
    const way = { "]": 1, "[": -1 }[event.key];
    const now = rail.findIndex((one) => one.hasAttribute("aria-current"));
    if (way && rail[now + way]) location.hash = rail[now + way].getAttribute("href");
    const step = { j: 1, k: -1 }[event.key];
    if (!step) return;
    const cards = [...drawer.querySelectorAll(".card, .checks")].filter((card) => card.getClientRects().length);
    const edge = drawer.querySelector("header").getBoundingClientRect().bottom + 12;
    const tops = cards.map((card) => card.getBoundingClientRect().top - edge);
    const next = step > 0 ? tops.find((top) => top > 4) : tops.findLast((top) => top < -4);
    if (next !== undefined) drawer.scrollBy(0, next);
  });
  turn();
}
