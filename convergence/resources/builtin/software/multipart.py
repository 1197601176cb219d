"""``OS::Heat::MultipartMime``: several configurations as one message of many parts, as cloud-init reads it."""

# ruff: noqa: RUF009 - prop() and attr() make dataclass fields, like field()
from __future__ import annotations

import email
import json
import os.path
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from email.message import Message
from email.mime.multipart import MIMEMultipart
from email.mime.text import MIMEText

from typing_extensions import override

from convergence.core.model import Json
from convergence.core.software import DEFAULT_GROUP
from convergence.resources.builtin.software.configs import KeptConfig
from convergence.resources.builtin.waiting import short_token
from convergence.resources.constraints import AllowedValues
from convergence.resources.contract import Call
from convergence.resources.schema import prop
from convergence.resources.support import since

MULTIPART = 'multipart'


@dataclass(frozen=True)
class PartProperties:
    """One part."""

    config: str = prop(description='The content, or the id of a configuration that has it.')
    filename: str | None = prop(None, description='The name of the part as a file.')
    type: str = prop(
        'text',
        constraints=[AllowedValues(('text', MULTIPART))],
        description='Whether the content is a text, or a message whose parts are taken.',
    )
    subtype: str | None = prop(None, description='The subtype of a text; without it the name of the file says it.')


@dataclass(frozen=True)
class MultipartProperties:
    """See the descriptions of the fields."""

    parts: list[PartProperties] = prop([], description='The parts, in their order.')
    group: str = prop(
        DEFAULT_GROUP,
        support=since('14.0.0'),
        description='Which tool understands it: agents hand it to the tool of that name.',
    )


class MultipartMime(KeptConfig[MultipartProperties]):
    """Keeps a message of many parts, each a text or another configuration."""

    support = since('2014.1')
    Properties = MultipartProperties

    @override
    def group(self, call: Call[MultipartProperties]) -> str:
        """As the template says."""
        return call.properties.group

    @override
    def content(self, call: Call[MultipartProperties]) -> dict[str, Json]:
        """The message. Its boundary is no accident: made twice, it is the same."""
        parts = [message for part in call.properties.parts for message in _messages(call, part)]
        return {'config': MIMEMultipart(boundary=f'part-{short_token(call)}', _subparts=parts).as_string()}


def _messages(call: Call[MultipartProperties], part: PartProperties) -> Iterator[Message]:
    text = _text(call, part.config)
    if part.type != MULTIPART:
        yield _message(text, part.subtype, part.filename)
        return
    whole = email.message_from_string(text)
    if whole.is_multipart():
        for each in whole.get_payload():
            assert isinstance(each, Message)
            yield _message(str(each.get_payload()), each.get_content_subtype(), each.get_filename())


def _text(call: Call[MultipartProperties], config: str) -> str:
    """Return the content of a part: the configuration with that id, or the literal text."""
    try:
        kept = call.software.config(str(uuid.UUID(config)))
    except ValueError:
        return config
    if kept is None:
        return config
    content = kept.content.get('config')
    return content if isinstance(content, str) else json.dumps(content)


def _message(text: str, subtype: str | None, filename: str | None) -> Message:
    subtype = subtype or (os.path.splitext(filename)[0] if filename else None)
    message = MIMEText(text, subtype) if subtype else MIMEText(text)
    if filename:
        message.add_header('Content-Disposition', 'attachment', filename=filename)
    return message
