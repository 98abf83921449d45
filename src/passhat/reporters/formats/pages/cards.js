// Cards out of a transcript in turns: lines at the margin are ours, what others wrote is indented.
// Everything is put in as text: nothing of it is ever markup.
function cardsOf(text) {
  const made = (tag, name, words) => {
    const element = document.createElement(tag);
    if (name) element.className = name;
    if (words !== undefined) element.textContent = words;
    return element;
  };
  const pretty = (words) => {
    try {
      const value = JSON.parse(words);
      return typeof value === "object" && value ? JSON.stringify(value, null, 2) : words;
    } catch {
      return words;
    }
  };
  const body = (words, fold) => {
    if (!fold) return made("div", "words", words);
    const details = made("details");
    details.append(made("summary", "soft", words.split("\n").length + " lines"), made("pre", "", words));
    return details;
  };
  const kinds = { user: "user", assistant: "agent", tool: "result", function: "result", system: "system", answer: "agent" };
  const titles = { user: "User", assistant: "Agent", tool: "Result", function: "Result", system: "System", answer: "Answer" };
  const card = ([head, ...lines]) => {
    const words = lines.map((line) => line.slice(2)).join("\n");
    const called = head.match(/^(\S+) calls (\S*) ?(.*)$/);
    const [role, ...rest] = head.split(" ");
    const broke = head.endsWith(" (error)") || role === "error";
    const article = made("article", "card " + (called ? "call" : kinds[role] || "other") + (broke ? " broke" : ""));
    const title = made("p", "", called ? "Agent calls " : (titles[role] || role) + " ");
    title.append(made("code", "", called ? called[2] : rest.join(" ")));
    const header = made("header");
    header.append(title);
    article.append(header);
    const shown = called ? pretty([called[3], ...lines].join("\n")) : pretty(words);
    const long = shown.length > 400 || shown !== words;
    if (shown) article.append(body(shown, !called && (role in kinds) && role !== "user" && role !== "assistant" && long));
    return article;
  };
  const checks = ([, ...lines]) => {
    const list = made("ul", "checks");
    for (const line of lines) {
      const [word, ...said] = line.trim().split(": ");
      const item = made("li", word === "held" ? "good" : word === "broke" ? "bad" : "");
      item.append(made("b", "", word === "held" ? "✓ held" : word === "broke" ? "✕ failed" : word), " " + said.join(": "));
      list.append(item);
    }
    return list;
  };
  const groups = [];
  for (const line of text.split("\n")) {
    if (groups.length && line.startsWith("  ")) groups[groups.length - 1].push(line);
    else groups.push([line]);
  }
  const pinned = groups.filter((group) => group[0] === "checks" && group.length > 1);
  const others = groups.filter((group) => !pinned.includes(group));
  return [...pinned.map(checks), ...others.map(card)];
}

// Runs open by their address, words are found, results unfold.
{
  // An address that names a run opens it.
  const openNamed = () => {
    const named = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (named && named.matches("details.run")) {
      named.open = true;
      named.scrollIntoView();
    }
  };
  addEventListener("hashchange", openNamed);
  openNamed();

  const find = document.querySelector("[data-find]");
  if (find) {
    const those = [...document.querySelectorAll(".card")];
    const said = those.map((card) => card.textContent.toLowerCase());
    const found = document.querySelector("[data-found]");
    find.addEventListener("input", () => {
      const wanted = find.value.trim().toLowerCase();
      let shown = 0;
      those.forEach((card, i) => {
        card.hidden = !said[i].includes(wanted);
        shown += !card.hidden;
      });
      for (const run of document.querySelectorAll("details.run")) {
        if (wanted && run.querySelector(".card:not([hidden])")) run.open = true;
      }
      found.value = wanted ? shown + " of " + those.length + " cards" : "";
    });
  }

  const unfold = document.querySelector("[data-unfold]");
  if (unfold) {
    unfold.addEventListener("click", () => {
      const folds = document.querySelectorAll(".card details");
      const open = ![...folds].every((fold) => fold.open);
      for (const fold of folds) fold.open = open;
      unfold.textContent = open ? "Fold all results" : "Open all results";
    });
  }

  // n and p go to the next and the previous run.
  document.addEventListener("keydown", (event) => {
    if (event.target.closest("input, select, textarea") || event.ctrlKey || event.metaKey || event.altKey) return;
    const open = [...document.querySelectorAll("details.run[open]")].pop();
    const way = { n: "next", p: "prev" }[event.key];
    const link = way && (open ? open.querySelector("a[rel=" + way + "]") : document.querySelector(".rail a:nth-child(2)"));
    if (!link) return;
    if (open) open.open = false;
    location.hash = link.getAttribute("href");
  });
}
