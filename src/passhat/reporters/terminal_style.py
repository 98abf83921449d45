"""Terminal styles in the reader's own colours, or none at all."""

from __future__ import annotations

from passhat.dataclass import dataclass
from passhat.reporters.text_bars import ASCII, UNICODE, Pen

# The eight named colours follow the reader's theme, light or dark; yellow and the bright ones
# vanish on a white background and are not used.
_CODES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "magenta": "35", "cyan": "36"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ink:
    """Where text goes: how wide it may be, whether in colour, and with which characters."""

    width: int = 80
    color: bool = False
    unicode: bool = True

    @property
    def pen(self) -> Pen:
        """The characters that pictures are drawn with: Unicode or ASCII."""
        return UNICODE if self.unicode else ASCII

    def style(self, text: str, *names: str) -> str:
        r"""`text` in a style; plain if there is no colour.

        >>> Ink(color=True).style("ok", "bold", "green")
        '\x1b[1;32mok\x1b[0m'
        """
        if not (self.color and text and names):
            return text
        return f"\x1b[{';'.join(_CODES[name] for name in names)}m{text}\x1b[0m"

    def finish(self, lines: list[str]) -> str:
        """The lines as one text, trimmed, in characters that the terminal has."""
        text = "\n".join(line.rstrip() for line in lines) + "\n"
        return text if self.unicode else _plain(text)


def _plain(text: str) -> str:
    for fancy, plain in (("×", "x"), ("±", "+-"), ("…", "~")):
        text = text.replace(fancy, plain)
    return text.encode("ascii", "backslashreplace").decode("ascii")
