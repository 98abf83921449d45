"use strict";
// Before the first paint, so that no page flashes in the wrong colours.
try {
  const saved = localStorage.getItem("passhat-theme");
  if (saved === "light" || saved === "dark") document.documentElement.dataset.theme = saved;
} catch { /* storage may be forbidden: then the browser's preference rules */ }
