"""The colours of pictures and pages, on light and on dark ground."""

from __future__ import annotations

from collections.abc import Mapping

# Blue for good and vermilion for bad, which people with red-green blindness tell apart, with ochre
# between; each has 4.5 : 1 on its ground. Colour is never alone: series differ in dash, outcomes in
# shape. `band` is the interval of this suite, outlined in the colour of its series.
LIGHT = {
    "ink": "#14181f", "soft": "#535c69", "rule": "#d9dee4",
    "a": "#0b5cad", "b": "#ad3a06", "c": "#007a5a", "d": "#8f4a7d", "e": "#7d5600",
    "band": "#9cc3ea",
    "l0": "#eef1f4", "l1": "#c3d9ef", "l2": "#8db8e3", "l3": "#4585c8", "l4": "#0a4a8f",
}  # fmt: skip
DARK = {
    "ink": "#e9ecf0", "soft": "#a4aebb", "rule": "#2d343e",
    "a": "#72b5ff", "b": "#ff9560", "c": "#2fc79a", "d": "#d99ac5", "e": "#e4b84e",
    "band": "#2c5f95",
    "l0": "#1b2027", "l1": "#26476a", "l2": "#30659f", "l3": "#5596da", "l4": "#abd5ff",
}  # fmt: skip


def variables(colours: Mapping[str, str]) -> str:
    """Colours as variables of a style sheet."""
    return ";".join(f"--{name}:{colour}" for name, colour in colours.items())
