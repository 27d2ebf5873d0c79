"""Convert Claude Code's output to output items."""

from collections.abc import Iterator
from typing import Any

from rekindle.documents.launches.launch_types import (
    CompactionReport,
    FinalReport,
    LimitReport,
    OutputItem,
    RefusedCall,
    RetryReport,
    SessionOpened,
    ToolCallFinished,
)
from rekindle.harnesses.claude_code.claude_messages import (
    is_denied,
    read_answer,
    read_denials,
)
from rekindle.harnesses.claude_code.claude_quota import read_quota
from rekindle.harnesses.untrusted_json import (
    parse_object,
    to_count,
    to_mapping,
    to_text,
    to_uuid,
    to_word,
)

_SPENT = ("inputTokens", "outputTokens", "cacheReadInputTokens", "cacheCreationInputTokens")


def read_stream(line: bytes) -> tuple[OutputItem, ...]:  # noqa: PLR0911 - one return per kind of line
    """Return the items in a line of output, or nothing if the line cannot be read.

    Messages from sub-agents are left out, because they use a different window.
    """
    record = parse_object(line)
    match record.get("type"), record.get("subtype"):
        case "system", "init":
            session = to_uuid(record.get("session_id"))
            model, version = (
                to_word(record.get("model")),
                to_word(record.get("claude_code_version")),
            )
            billed = _is_billed(record.get("apiKeySource"))
            return (SessionOpened(session, model, version, billed=billed),) if session else ()
        case "system", "api_retry":
            seconds = (to_count(record.get("retry_delay_ms")) or 0) / 1000
            return (RetryReport(to_count(record.get("error_status")), seconds),)
        case "system", "compact_boundary":
            sizes = to_mapping(record.get("compact_metadata"))
            return (
                CompactionReport(
                    to_count(sizes.get("pre_tokens")), to_count(sizes.get("post_tokens"))
                ),
            )
        case "rate_limit_event", _:
            limit = to_mapping(record.get("rate_limit_info"))
            # Other statuses also occur in ordinary turns, even with a rejected `overageStatus`.
            refused = limit.get("status") == "rejected"
            refusal = (LimitReport(to_count(limit.get("resetsAt"))),) if refused else ()
            return (*read_quota(limit), *refusal)
        case "assistant", _ if record.get("parent_tool_use_id") is None:
            return tuple(read_answer(to_mapping(record.get("message"))))
        case "user", _ if record.get("parent_tool_use_id") is None:
            return tuple(_read_results(to_mapping(record.get("message"))))
        case "result", _:
            return (*read_denials(record), read_final_report(record))
        case _:
            return ()


def _is_billed(source: object) -> bool | None:
    """Return whether the account is billed per token, which is the case with an API key.

    With a subscription or a cloud account, the CLI reports `none` instead of a key.
    """
    if not isinstance(source, str) or not source:
        return None
    return source not in {"none", "oauth"}


def _read_results(message: dict[str, Any]) -> Iterator[OutputItem]:
    content = message.get("content")
    for block in map(to_mapping, content if isinstance(content, list) else ()):
        if block.get("type") == "tool_result":
            call, refused = to_word(block.get("tool_use_id")), is_denied(block)
            yield ToolCallFinished(call, refused)
            if refused:
                yield RefusedCall(call=call)


def read_final_report(record: dict[str, Any]) -> FinalReport:
    errors, usd = record.get("errors"), record.get("total_cost_usd")
    models = {
        to_word(model): to_mapping(used)
        for model, used in to_mapping(record.get("modelUsage")).items()
    }
    windows = {
        model: size
        for model, used in models.items()
        if (size := to_count(used.get("contextWindow")))
    }
    spent = sum(to_count(used.get(name)) or 0 for used in models.values() for name in _SPENT)
    return FinalReport(
        session=to_uuid(record.get("session_id")),
        ok=record.get("subtype") == "success" and record.get("is_error") is False,
        reason=to_word(record.get("terminal_reason")) or to_word(record.get("subtype")),
        text=to_text(record.get("result")),
        errors=tuple(map(to_text, errors)) if isinstance(errors, list) else (),
        status=to_count(record.get("api_error_status")),
        usd=usd if isinstance(usd, float) else to_count(usd),
        tokens=spent or None,
        windows=windows,
    )
