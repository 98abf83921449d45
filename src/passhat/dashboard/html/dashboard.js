
// The theme is that of every page of the site, from now on.
document.querySelector("[data-theme-switch]")?.addEventListener("click", () => {
  try { localStorage.setItem("passhat-theme", document.documentElement.dataset.theme ?? "auto"); } catch { /* for this page only */ }
});

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
      [passed, failed, errored, news.rates[name], news.intervals[name]].forEach((number, i) => {
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
    at("closing").textContent = "How the interval closed in";
  });
}

// What is chosen with the mouse is shown at once. With the keys a choice changes at each of them, so
// that there the button shows it.
for (const form of document.querySelectorAll("form.choose")) {
  let pointed = false;
  form.addEventListener("pointerdown", () => (pointed = true));
  form.addEventListener("keydown", () => (pointed = false));
  form.addEventListener("change", (event) => pointed && event.target.matches("select") && form.requestSubmit());
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

// On the page of a run the mark of a trial opens it in the drawer: what was said in all trials of its
// task is fetched once. A mark is a link to the page of its trial, where nothing can be fetched.
if (document.querySelector("[data-drawers]")) {
  const asked = new Map();
  const drawerOf = (mark) => {
    const query = new URLSearchParams(mark.search);
    query.delete("trial");
    const address = `${mark.pathname.replace(/trial$/, "drawer")}?${query}`;
    if (!asked.has(address)) {
      asked.set(address, fetch(address).then(async (answer) => {
        if (!answer.ok) throw new Error(answer.statusText);
        // The server made it of templates of ours, which escape what comes from data.
        document.body.insertAdjacentHTML("beforeend", await answer.text());
      }));
      asked.get(address).catch(() => asked.delete(address));
    }
    return asked.get(address);
  };
  document.addEventListener("click", async (event) => {
    const mark = event.target.closest("[data-drawers] .marks a");
    if (!mark || event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    await drawerOf(mark).catch(() => {});
    const own = [...document.querySelectorAll(".trial .own")].find((one) => one.href === mark.href);
    if (own) location.hash = own.closest(".trial").id;
    else location.assign(mark.href);
  });
  // An address that names a trial: its task is the row whose name it begins with.
  const follow = async () => {
    const wanted = decodeURIComponent(location.hash.slice(1));
    if (!wanted || document.getElementById(wanted)) return;
    const rows = [...wanted.matchAll(/-trial-\d/g)].map((found) => document.getElementById(wanted.slice(0, found.index)));
    const mark = rows.find(Boolean)?.querySelector(".marks a");
    if (!mark) return;
    await drawerOf(mark).catch(() => {});
    // What came after the address is its target only when it is gone to again.
    location.replace(location.hash);
    dispatchEvent(new Event("hashchange"));
  };
  addEventListener("hashchange", (event) => event.isTrusted && follow());
  follow();
}
