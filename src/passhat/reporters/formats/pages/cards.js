// Only for pages with: data-find
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
