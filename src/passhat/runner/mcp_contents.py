"""What MCP servers return, as text and attachments: tool results, resources, prompts."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from passhat.runner.mcp_stdio import LONGEST_MESSAGE
from passhat.runner.models.exchange import Attachment


def blocks_text(blocks: Iterable[Any]) -> str:
    """Content blocks as text: what is not text is named, not shown."""
    return "\n".join(map(_block_text, blocks))


def result_text(result: Any) -> str:
    """The result of a tool call as text."""
    if not result.content and result.structured_content is not None:
        return msgspec.json.encode(result.structured_content).decode()
    return blocks_text(result.content)


def attachments(blocks: Iterable[Any]) -> Iterator[Attachment]:
    """The images and sounds among content blocks, for models that take them."""
    total = 0
    for block in blocks:
        mime, data = _media(block)
        total += len(data)
        if data and total <= LONGEST_MESSAGE:
            yield Attachment(mime=mime or "image/png", data=data)


def resource_text(contents: Iterable[Any]) -> str:
    """The contents of a resource as text, each between marks with its address."""
    return "\n".join(
        f'<resource uri="{part.uri}">\n{_contents_text(part)}\n</resource>' for part in contents
    )


def resource_attachments(contents: Iterable[Any]) -> Iterator[Attachment]:
    """The images and sounds among the contents of a resource."""
    for part in contents:
        if _is_media(part) and len(part.blob) <= LONGEST_MESSAGE:
            yield Attachment(mime=part.mime_type, data=part.blob)


def prompt_turns(result: Any) -> str:
    """The messages of a prompt as JSON: `[{"role": "user", "text": "..."}]`."""
    turns = [
        {"role": message.role, "text": _block_text(message.content)} for message in result.messages
    ]
    return msgspec.json.encode(turns).decode()


def _block_text(block: Any) -> str:
    if block.type == "text":
        return str(block.text)
    if block.type == "resource":
        return _contents_text(block.resource)
    if block.type == "resource_link":
        return f"[{block.uri}]"
    return f"[{block.type} {getattr(block, 'mime_type', '')}]".replace(" ]", "]")


def _contents_text(part: Any) -> str:
    if hasattr(part, "text"):
        return str(part.text)
    if (part.mime_type or "").startswith(("text/", "application/json")):
        return base64.b64decode(part.blob).decode("utf-8", "replace")
    return f"[{part.mime_type or 'binary data'}]"


def _media(block: Any) -> tuple[str | None, str]:
    """The type and the data of an image or a sound, also of one embedded as a resource."""
    if block.type in ("image", "audio"):
        return block.mime_type, block.data
    resource = getattr(block, "resource", None)
    if resource is not None and _is_media(resource):
        return resource.mime_type, resource.blob
    return None, ""


def _is_media(part: Any) -> bool:
    return hasattr(part, "blob") and (part.mime_type or "").startswith(("image/", "audio/"))
