"""Pictures in transcripts: which of them may be kept, as text that a page can show."""

from __future__ import annotations

import re

LARGEST_PICTURE = 400_000
"""Characters of a picture that is kept: 300 kB, a screenshot; larger ones are only named."""

# Formats that cannot hold a script or load anything; SVG can do both.
_PICTURE = re.compile(r"data:image/(?:png|jpeg|gif|webp);base64,[A-Za-z0-9+/]+={0,2}")


def safe_picture(text: object) -> str | None:
    """A picture as a data URI, if it is of a plain format, complete, and not too large.

    >>> safe_picture("data:image/png;base64,iVBORw0KGgo=")
    'data:image/png;base64,iVBORw0KGgo='
    >>> safe_picture("data:image/svg+xml,<svg/>"), safe_picture("https://example.com/a.png")
    (None, None)
    """
    if not isinstance(text, str) or len(text) > LARGEST_PICTURE:
        return None
    return text if _PICTURE.fullmatch(text) else None
