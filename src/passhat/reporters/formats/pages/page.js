"use strict";
document.documentElement.classList.add("js");

for (const section of document.querySelectorAll("[data-tasks]")) {
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
        (!label.value || row.dataset.label === label.value);
      row.hidden = !fits;
      if (said.has(row)) said.get(row).hidden = !fits;
      shown += fits;
    }
    count.value = shown + " of " + rows.length + " tasks";
  };
  text.addEventListener("input", filter);
  label.addEventListener("change", filter);
  filter();

  const heads = [...section.querySelectorAll("thead th")];
  heads.forEach((head, column) => {
    const button = head.querySelector("button");
    if (!button) return;
    button.addEventListener("click", () => {
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
    });
  });
}

// Choosing a task anywhere marks it everywhere in the same system.
document.addEventListener("click", (event) => {
  const chosen = event.target.closest("[data-row]");
  const system = chosen && chosen.closest("[data-system]");
  if (!system) return;
  const on = !chosen.classList.contains("on");
  for (const mark of system.querySelectorAll("[data-row]")) {
    mark.classList.toggle("on", on && mark.dataset.row === chosen.dataset.row);
  }
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
