"""Making the request body about one document, as a version asks for it.

Belongs here: putting prompt, document, schema and provider format together. Does not belong
here: the text (`render.py`), the template (`template.py`), a provider's format
(`resources/providers`), and which records are asked about (`prepare`, `canary`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from pipeline_assets.prompting.render import (
    DocumentRefused,
    Pages,
    RenderedDocument,
    render_documents,
)
from pipeline_assets.prompting.template import Template, parse_template
from pipeline_assets.providers import wire_of
from pipeline_assets.versions import OpenVersion, prompt_of, redaction_of
from resources.providers.port import Ask, Wire
from resources.providers.tokens import at_most_tokens, count_tokens


@dataclass(frozen=True)
class RequestMaker:
    """Makes request bodies for a version."""

    wire: Wire
    template: Template
    ask: Ask
    provider: str
    fixed_tokens: int
    document_tokens: int
    version: OpenVersion

    def body(self, name: str, text: str) -> bytes:
        """The exact body about one document."""
        system, user = self.template.render(name, text)
        return msgspec.json.encode(self.wire.body(replace(self.ask, system=system, user=user)))

    def render(
        self, documents: Sequence[tuple[str, Pages]]
    ) -> list[RenderedDocument | DocumentRefused]:
        """Documents (reference, pages) as they are sent, or why they are not."""
        return render_documents(
            documents, count_tokens, self.document_tokens, redaction_of(self.version)
        )

    def prompt_tokens(self, rendered: RenderedDocument) -> int:
        """Tokens of the whole prompt, on the side of too many."""
        return at_most_tokens(self.provider, self.fixed_tokens + rendered.tokens)


@dataclass(frozen=True)
class Changes:
    """What a recovery path changes of a version's requests; None leaves it as it is."""

    prompt: bytes | None = None
    output_tokens: int | None = None
    document_tokens: int | None = None


def make_request_maker(version: OpenVersion, changes: Changes | None = None) -> RequestMaker:
    """What makes the requests of a version.

    Args:
        version: the version.
        changes: what is asked otherwise than the version usually asks.

    Raises:
        InvalidPrompt: the version's prompt is no template for a model.
        SchemaUnsupported: the provider cannot be asked for the output schema.
        NotAProvider: the version's endpoint is none of the provider's.
    """
    spec = version.spec
    assert spec.request is not None  # noqa: S101 - the spec's own check
    changes = changes or Changes()
    template = parse_template(changes.prompt or prompt_of(version))
    schema: dict[str, Any] = msgspec.json.decode(version.workload.output_schema)
    ask = Ask(
        model=spec.model,
        system=template.instructions,
        user="",
        schema_name=str(schema.get("title") or spec.workload),
        schema=schema,
        output_tokens=changes.output_tokens or spec.request.output_tokens,
        parameters=spec.parameters,
    )
    wire = wire_of(version)
    wire.body(ask)  # a schema that cannot be asked for is told before anything is rendered
    frame = template.user + version.workload.output_schema.decode()
    return RequestMaker(
        wire=wire,
        template=template,
        ask=ask,
        provider=spec.provider,
        fixed_tokens=sum(count_tokens([template.instructions, frame])),
        document_tokens=changes.document_tokens or spec.request.document_tokens,
        version=version,
    )
