
const theme = document.getElementById("theme");
if (theme) {
  theme.value = document.documentElement.dataset.theme ?? "auto";
  theme.addEventListener("change", () => {
    if (theme.value === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme.value;
    try { localStorage.setItem("passhat-theme", theme.value); } catch { /* for this page only */ }
  });
}

// The start address holds the token; only a form may spend it.
const entrance = document.querySelector("form[data-enter]");
if (entrance) {
  history.replaceState(null, "", entrance.action);
  entrance.submit();
}

const live = document.querySelector("[data-live]");
if (live) {
  const at = (name) => live.querySelector(`[data-at=${name}]`);
  const marks = { P: "●", F: "○", E: "×" };
  const words = { P: "passed", F: "failed", E: "errored" };
  const cell = (row, text, kind) => {
    const made = row.insertCell();
    // A long name may be broken at its seams, as the page does.
    const pieces = text.length > 16 ? text.split(/(?<=[ _/.:-])(?=[^ _/.:-])/) : [text];
    made.append(...pieces.flatMap((piece, i) => (i ? [document.createElement("wbr"), piece] : [piece])));
    made.className = kind;
    return made;
  };
  // A link to a page of the run; what comes from data is quoted in its address.
  const address = (page, query) => Object.assign(document.createElement("a"), { href: `${live.dataset.run}/${page}?${new URLSearchParams(query)}` });
  // A row is found by what it is about; text from data is only ever set as text.
  const rowOf = (body, key, make) => {
    let row = [...body.rows].find((one) => one.dataset.key === key);
    if (!row) {
      row = body.insertRow();
      row.dataset.key = key;
      make(row);
    }
    return row;
  };
  const tell = (news) => {
    at("status").textContent = news.status;
    at("done").textContent = news.done.toLocaleString("en");
    at("sofar").textContent = news.so_far;
    at("left").textContent = news.left ?? "–";
    at("spent").textContent = news.spent ?? "–";
    at("all").textContent = news.in_all;
    live.querySelectorAll("[data-gate]").forEach((words, i) => (words.textContent = news.gates[i]));
    at("total").textContent = news.total && `of ${news.total}`;
    if (at("none")) at("none").hidden ||= news.recent.length > 0;
    if (at("progress")) at("progress").value = news.done;
    // A picture that the server drew: what it takes from data is escaped there.
    at("funnel").innerHTML = news.funnel;
    at("flying").textContent = Math.max(0, news.launched - news.done).toLocaleString("en");
    for (const [name, passed, failed, errored] of news.systems) {
      const row = rowOf(at("systems"), name, (made) => {
        for (let i = 0; i < 6; i++) cell(made, i ? "" : name, i ? "n" : "name");
      });
      const all = passed + failed + errored;
      const rate = (100 * passed / all).toFixed(1);
      [passed, failed, errored, rate, news.intervals[name]].forEach((number, i) => {
        row.cells[i + 1].textContent = number;
      });
    }
    for (const [system, task, runs, numbers] of news.tasks) {
      const row = rowOf(at("tasks"), system + "\n" + task, (made) => {
        const name = cell(made, task, "name");
        const link = address("task", { system, task });
        link.append(...name.childNodes);
        name.append(link);
        cell(made, system, "name");
        cell(made, "", "runs").append(Object.assign(document.createElement("span"), { className: "marks" }));
      });
      row.cells[2].querySelector(".marks").replaceChildren(...[...runs].map((letter, i) => {
        // Of very many trials the page of the task has the links.
        const mark = numbers.length ? address("trial", { system, task, trial: numbers[i] }) : document.createElement("span");
        mark.className = words[letter];
        mark.textContent = marks[letter];
        if (numbers.length) mark.setAttribute("aria-label", `${task} #${numbers[i] + 1} ${words[letter]}`);
        return mark;
      }));
    }
    const item = ([system, task, trial, letter]) => {
      const made = document.createElement("li");
      const link = address("trial", { system, task, trial });
      link.textContent = `${marks[letter]} ${task} #${trial + 1} ${words[letter]} (${system})`;
      made.append(link);
      return made;
    };
    for (const one of news.recent) at("recent").prepend(item(one));
    at("failing").replaceChildren(...news.failing.map(item));
    while (at("recent").children.length > 20) at("recent").lastChild.remove();
  };
  const source = new EventSource(live.dataset.live);
  source.addEventListener("news", (event) => tell(JSON.parse(event.data)));
  // The page turns into the result: its verdict, which the server made and escaped.
  source.addEventListener("end", (event) => {
    source.close();
    at("hero").innerHTML = JSON.parse(event.data).hero;
  });
}

// A link to this very run, whatever name or filter it was opened by.
for (const button of document.querySelectorAll("[data-copy]")) {
  button.hidden = false;
  button.addEventListener("click", async () => {
    const address = new URL(button.dataset.copy, location.href).href;
    await copyText(address, button);
    button.textContent = "Copied";
    setTimeout(() => (button.textContent = "Copy link"), 2000);
  });
}
