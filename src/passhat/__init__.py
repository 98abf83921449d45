"""passhat: can you depend on your AI agent every time?"""

from passhat._version import __version__

__all__ = ["__version__"]
