#!/usr/bin/env python3
"""The providers' own Python SDKs against the corpus.

They read every recorded stream, from a server on this machine, and have to make the turn of it that stands beside the stream; and what they send
for the request of `requests/` is compared with it, field by field. Needs `openai`, `anthropic`, `google-genai` and `ollama`; where one is missing
its grammar is left out, and said so. Reaches nothing but 127.0.0.1.

    python3 models/wire/tests/sdk.py
"""

import base64
import json
import pathlib
import re
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

HERE = pathlib.Path(__file__).parent
STREAMS = HERE / "streams"
TYPES = {".sse": "text/event-stream", ".ndjson": "application/x-ndjson", ".json": "application/json"}


class Server(BaseHTTPRequestHandler):
    """Answers `/GRAMMAR/STEM/...` with that file of the corpus, in pieces of seven bytes, and keeps what it was sent."""

    protocol_version = "HTTP/1.1"
    seen = None

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        path, _, query = self.path.partition("?")
        _, grammar, stem, rest = path.split("/", 3)
        Server.seen = {"path": rest, "query": query, "headers": dict(self.headers), "body": json.loads(body)}
        file = next(f for f in (STREAMS / grammar).glob(stem + ".*") if not f.name.endswith(".turn.json") and f.stem == stem)
        data = file.read_bytes()
        status = stem.rpartition(".")[2]
        self.send_response(int(status) if status.isdigit() else 200)
        self.send_header("content-type", TYPES[file.suffix])
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        pieces = [data[at : at + 7] for at in range(0, len(data), 7)] + [b""]
        try:
            for piece in pieces:
                self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
        except ConnectionError:  # An SDK that has read enough hangs up.
            self.close_connection = True

    def handle(self):
        try:
            super().handle()
        except ConnectionError:
            pass

    def log_message(self, *_):
        pass


class Turn:
    """A turn in the making, as the corpus has it."""

    def __init__(self):
        self.parts = []
        self.end = None
        self.reported = {}

    def text(self, kind, text):
        if text:
            if self.parts and kind in self.parts[-1]:
                self.parts[-1][kind] += text
            else:
                self.parts.append({kind: text})

    def call(self, call, name, arguments):
        self.parts.append({"call": {"id": call, "name": name, "arguments": arguments}})

    def state(self, value):
        self.parts.append({"state": value})

    def report(self, **numbers):
        self.reported.update({key: number for key, number in numbers.items() if number is not None})


# --------------------------------------------------------------------------- reading


def chat(base, stem, streamed):
    import openai

    client = openai.OpenAI(base_url=f"{base}/chat/{stem}", api_key="k", max_retries=0)
    turn, calls, details = Turn(), {}, []

    def usage(of):
        if of:
            inner, outer = of.prompt_tokens_details, of.completion_tokens_details
            turn.report(input=of.prompt_tokens, output=of.completion_tokens, cached=inner and inner.cached_tokens,
                        cache_written=inner and inner.cache_write_tokens, reasoning=outer and outer.reasoning_tokens)

    def reason(word):
        if word:
            turn.end = {"length": "cut_off:tokens", "content_filter": "refused"}.get(word, "complete")

    def say(message):
        turn.text("thinking", getattr(message, "reasoning_content", None) or getattr(message, "reasoning", None))
        details.extend(getattr(message, "reasoning_details", None) or [])
        turn.text("text", message.content)
        if message.refusal:
            turn.text("text", message.refusal)
            turn.refused = True

    arguments = dict(model="m", messages=[{"role": "user", "content": "x"}])
    try:
        if not streamed:
            whole = client.chat.completions.create(**arguments)
            say(whole.choices[0].message)
            for call in whole.choices[0].message.tool_calls or []:
                turn.call(call.id, call.function.name, call.function.arguments)
            reason(whole.choices[0].finish_reason)
            usage(whole.usage)
        else:
            for chunk in client.chat.completions.create(**arguments, stream=True):
                usage(getattr(chunk, "usage", None))
                for choice in chunk.choices or []:
                    say(choice.delta)
                    for call in choice.delta.tool_calls or []:
                        if call.index not in calls:
                            calls[call.index] = len(turn.parts)
                            turn.call(call.id, call.function.name, "")
                        turn.parts[calls[call.index]]["call"]["arguments"] += call.function.arguments or ""
                    reason(choice.finish_reason)
    except openai.APIError as error:
        turn.end = "failed"
        turn.message = str(error)
    if details:
        turn.state({"reasoning_details": details})
    if getattr(turn, "refused", False) and turn.end == "complete":
        turn.end = "refused"
    return turn


def anthropic(base, stem, streamed):
    import anthropic as sdk

    client = sdk.Anthropic(base_url=f"{base}/anthropic/{stem}", api_key="k", max_retries=0)
    turn = Turn()
    arguments = dict(model="m", max_tokens=10, messages=[{"role": "user", "content": "x"}])
    message, inputs = None, {}
    try:
        if not streamed:
            message = client.messages.create(**arguments)
        else:
            with client.messages.stream(**arguments) as stream:
                for event in stream:
                    message = stream.current_message_snapshot
                    if event.type == "content_block_delta" and event.delta.type == "input_json_delta":
                        inputs[event.index] = inputs.get(event.index, "") + event.delta.partial_json
    except sdk.APIError as error:
        turn.end = "failed"
        turn.message = str(error)
    for index, block in enumerate(message.content if message else []):
        if block.type == "text":
            turn.text("text", block.text)
        elif block.type == "tool_use":
            turn.call(block.id, block.name, inputs.get(index) or json.dumps(block.input))
        elif block.type == "thinking":
            turn.text("thinking", block.thinking)
            turn.state({"type": "thinking", "thinking": block.thinking, "signature": block.signature})
        elif block.type == "redacted_thinking":
            turn.state({"type": "redacted_thinking", "data": block.data})
    if message:
        of = message.usage
        cached, written = of.cache_read_input_tokens, of.cache_creation_input_tokens
        turn.report(input=of.input_tokens + (cached or 0) + (written or 0), output=of.output_tokens, cached=cached,
                    cache_written=written, reasoning=of.output_tokens_details and of.output_tokens_details.thinking_tokens)
        ends = {"max_tokens": "cut_off:tokens", "refusal": "refused", None: None}
        turn.end = turn.end or ends.get(message.stop_reason, "complete")
    return turn


def responses(base, stem, streamed):
    import openai

    client = openai.OpenAI(base_url=f"{base}/responses/{stem}", api_key="k", max_retries=0)
    turn, items, refused, last = Turn(), {}, False, None
    arguments = dict(model="m", input="x")
    try:
        if not streamed:
            last = client.responses.create(**arguments)
            items = {at: {"item": item} for at, item in enumerate(last.output)}
        else:
            for event in client.responses.create(**arguments, stream=True):
                place = items.setdefault(getattr(event, "output_index", None), {"said": ""})
                if event.type in ("response.output_item.added", "response.output_item.done"):
                    place["item"] = event.item
                elif event.type in ("response.output_text.delta", "response.refusal.delta"):
                    place["said"] += event.delta
                elif event.type in ("response.completed", "response.incomplete", "response.failed"):
                    last = event.response
                elif event.type == "error":
                    turn.end, turn.message = "failed", event.message
    except openai.APIError as error:
        turn.end, turn.message = "failed", str(error)
    for place in [items[at] for at in sorted(at for at in items if at is not None)]:
        item = place.get("item")
        if item is None:
            continue
        if item.type == "reasoning":
            turn.text("thinking", "".join(part.text for part in item.summary))
            turn.state(json.loads(item.to_json(exclude_unset=True)) if item.encrypted_content else None)
        elif item.type == "function_call":
            turn.call(item.call_id, item.name, item.arguments)
        elif item.type == "message":
            said = "".join(getattr(part, "text", None) or getattr(part, "refusal", "") for part in item.content)
            refused |= any(part.type == "refusal" for part in item.content)
            turn.text("text", said or place.get("said"))
    if last:
        if last.usage:
            of = last.usage
            turn.report(input=of.input_tokens, output=of.output_tokens, cached=of.input_tokens_details.cached_tokens,
                        cache_written=of.input_tokens_details.cache_write_tokens, reasoning=of.output_tokens_details.reasoning_tokens)
        why = last.incomplete_details and last.incomplete_details.reason
        ends = {"completed": "refused" if refused else "complete", "failed": "failed",
                "incomplete": {"content_filter": "refused"}.get(why, "cut_off:tokens")}
        turn.end = turn.end or ends.get(last.status)
    return turn


def gemini(base, stem, streamed):
    from google import genai
    from google.genai import errors, types

    client = genai.Client(api_key="k", http_options=types.HttpOptions(base_url=f"{base}/gemini/{stem}"))
    turn = Turn()

    def take(chunk):
        of = chunk.usage_metadata
        if of:
            said = [of.candidates_token_count, of.thoughts_token_count]
            output = sum(filter(None, said)) if any(number is not None for number in said) else None
            turn.report(input=of.prompt_token_count, output=output, cached=of.cached_content_token_count, reasoning=of.thoughts_token_count)
        if chunk.prompt_feedback and chunk.prompt_feedback.block_reason:
            turn.end = "refused"
        for candidate in chunk.candidates or []:
            for part in (candidate.content and candidate.content.parts) or []:
                if part.thought_signature:
                    turn.state({"thoughtSignature": base64.b64encode(part.thought_signature).decode()})
                if part.function_call:
                    turn.call(part.function_call.id, part.function_call.name, json.dumps(part.function_call.args))
                else:
                    turn.text("thinking" if part.thought else "text", part.text)
            if candidate.finish_reason:
                ends = {"STOP": "complete", "MAX_TOKENS": "cut_off:tokens", "MALFORMED_FUNCTION_CALL": "failed"}
                turn.end = ends.get(candidate.finish_reason.name, "refused")

    try:
        if streamed:
            for chunk in client.models.generate_content_stream(model="m", contents="x"):
                take(chunk)
        else:
            take(client.models.generate_content(model="m", contents="x"))
    except errors.APIError as error:
        turn.end, turn.message = "failed", str(error)
    return turn


def ollama(base, stem, streamed):
    import ollama as sdk

    client = sdk.Client(host=f"{base}/ollama/{stem}")
    turn = Turn()

    def take(chunk):
        turn.text("thinking", chunk.message.thinking)
        turn.text("text", chunk.message.content)
        for call in chunk.message.tool_calls or []:
            turn.call(None, call.function.name, json.dumps(dict(call.function.arguments)))
        turn.report(input=chunk.prompt_eval_count, output=chunk.eval_count)
        if chunk.done:
            turn.end = "cut_off:tokens" if chunk.done_reason == "length" else "complete"

    arguments = dict(model="m", messages=[{"role": "user", "content": "x"}])
    try:
        if streamed:
            for chunk in client.chat(**arguments, stream=True):
                take(chunk)
        else:
            take(client.chat(**arguments))
    except sdk.ResponseError as error:
        turn.end, turn.message = "failed", error.error
    return turn


# --------------------------------------------------------------------------- comparing


def our_name(wire):
    """As `wire_name` of the crate, backwards."""
    return "".join("." if c == "Z" else "." + c.lower() if c.isupper() else c for c in wire)


def plain(turn):
    """A turn without what an SDK cannot say: ids that were made up, the spelling of JSON."""
    parts = []
    for part in turn["parts"]:
        if "call" in part:
            call = part["call"]
            made_up = not call["id"] or call["id"].startswith("call-7-")
            try:
                arguments = json.loads(call["arguments"] or "{}")
            except json.JSONDecodeError:
                arguments = call["arguments"]
            parts.append({"call": {"id": None if made_up else call["id"], "name": call["name"], "arguments": arguments}})
        elif "state" in part:
            state = part["state"]
            parts.append({"state": json.loads(state) if isinstance(state, str) else state})
        else:
            parts.append(part)
    end = turn["end"].split(":")[0] if turn["end"].startswith("failed") else turn["end"]
    return {"parts": parts, "end": end, "reported": turn["reported"]}


def compare_streams(base, grammar, read):
    checked = failed = 0
    left_out = []
    for beside in sorted((STREAMS / grammar).glob("*.turn.json")):
        stem = beside.name.removesuffix(".turn.json")
        expected = json.loads(beside.read_text())
        if "sdk" in expected:
            left_out.append(f"{stem} (the SDK {expected['sdk']})")
            continue
        streamed = (STREAMS / grammar / f"{stem}.json").exists() is False
        turn = read(base, stem, streamed)
        for part in turn.parts:
            if "call" in part:
                part["call"]["name"] = our_name(part["call"]["name"])
        # An SDK does not say that a stream broke off; it only has no end.
        got = plain({"parts": turn.parts, "end": turn.end or "cut_off:stream", "reported": turn.reported})
        wanted = plain(expected)
        # Ollama's names no call.
        if grammar == "ollama":
            for part in wanted["parts"]:
                part.get("call", {}).update(id=None)
        # Of a call that was cut off an SDK has what could be read of it.
        if wanted["end"] != "complete":
            for side in (got, wanted):
                for part in side["parts"]:
                    part.get("call", {}).pop("arguments", None)
        if wanted["end"] == "failed" and wanted["reported"] and not got["reported"]:
            wanted["reported"] = {}
        # The SDKs raise at an error in the middle, with what came before it shown or not.
        if wanted["end"] == "failed" and not got["parts"]:
            wanted["parts"] = []
        checked += 1
        if got != wanted:
            failed += 1
            print(f"  {grammar}/{stem} differs:\n    SDK    {got}\n    corpus {wanted}")
    print(f"{grammar}: {checked - failed} of {checked} streams are read alike" + (f"; left out: {', '.join(left_out)}" if left_out else ""))
    return failed


# --------------------------------------------------------------------------- sending


def forced(value):
    """What pydantic validates only when it is asked for."""
    if isinstance(value, dict):
        return {key: forced(item) for key, item in value.items()}
    if isinstance(value, (str, bytes, int, float, type(None))):
        return value
    return [forced(item) for item in value]


def typed(kind, body):
    """The body as the SDK's types have it: a field that they do not know is gone."""
    import pydantic

    adapter = pydantic.TypeAdapter(kind)  # Has to live for as long as its iterators.
    return forced(adapter.validate_python(body))


def send_chat(base, body):
    import openai
    from openai.types.chat.completion_create_params import CompletionCreateParamsStreaming as Params

    client = openai.OpenAI(base_url=f"{base}/chat/text", api_key="k", max_retries=0)
    client.chat.completions.create(**body).close()
    for message in body["messages"]:
        message.pop("reasoning_details", None)  # OpenRouter's own
    return typed(Params, body)


def send_responses(base, body):
    import openai
    from openai.types.responses.response_create_params import ResponseCreateParamsStreaming as Params

    client = openai.OpenAI(base_url=f"{base}/responses/text", api_key="k", max_retries=0)
    client.responses.create(**body).close()
    return typed(Params, body)


# Where a request is another than the SDK's, and why.
ON_PURPOSE = {
    "anthropic": {
        ".temperature": "the SDK sends version 2026-10-21, which has none; it is left out where a model refuses it",
        "the header anthropic-version": "2023-06-01 has temperature, and is the same otherwise",
        "the key: x-api-key": "both versions take it, and proxies expect it; the SDK sends a bearer",
    },
    "gemini": {"the path": "v1beta has all that v1 has, which the SDK sends"},
    "ollama": {
        ".tools[0].function.parameters.properties.n.maximum": "the SDK's types know few words of JSON schema",
        ".tools[1].function.parameters.properties.n.maximum": "the same",
    },
}


def send_anthropic(base, body):
    import anthropic as sdk
    from anthropic.types.message_create_params import MessageCreateParamsStreaming as Params

    client = sdk.Anthropic(base_url=f"{base}/anthropic/text", api_key="k", max_retries=0)
    body.pop("temperature")
    client.messages.create(**body).close()
    return typed(Params, body)


def send_gemini(base, body):
    from google import genai
    from google.genai import types

    client = genai.Client(api_key="k", http_options=types.HttpOptions(base_url=f"{base}/gemini/text"))
    contents = [types.Content.model_validate(content) for content in body["contents"]]
    config = types.GenerateContentConfig.model_validate(
        {**body["generationConfig"], "tools": body["tools"], "systemInstruction": body["systemInstruction"],
         "automaticFunctionCalling": {"disable": True}})
    for _ in client.models.generate_content_stream(model="vendor/model-1", contents=contents, config=config):
        pass
    return body


def send_ollama(base, body):
    import ollama as sdk

    list(sdk.Client(host=f"{base}/ollama/text").chat(**body))
    return body


def spelt(value, key=""):
    """As Google's JSON may be spelt either way: names in camel case, bytes in the standard alphabet."""
    if isinstance(value, dict):
        camel = lambda name: re.sub("_([a-z])", lambda found: found[1].upper(), name)
        return {camel(name): spelt(item, camel(name)) for name, item in value.items()}
    if isinstance(value, list):
        return [spelt(item) for item in value]
    return value.replace("-", "+").replace("_", "/") if key == "thoughtSignature" else value


def same(ours, theirs, at=""):
    """The places where two JSON values differ; null and nothing are the same."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        keys = {key for side in (ours, theirs) for key, value in side.items() if value is not None}
        return [place for key in sorted(keys) for place in same(ours.get(key), theirs.get(key), f"{at}.{key}")]
    if isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        return [place for n, pair in enumerate(zip(ours, theirs)) for place in same(*pair, f"{at}[{n}]")]
    return [] if ours == theirs else [f"{at}: ours {json.dumps(ours)[:160]}, the SDK's {json.dumps(theirs)[:160]}"]


def compare_request(base, grammar, send):
    kept = json.loads((HERE / "requests" / f"{grammar}.json").read_text())
    fitted = send(base, json.loads(json.dumps(kept["body"])))
    seen = Server.seen
    if grammar == "gemini":
        seen["body"] = spelt(seen["body"])
    if grammar == "ollama":
        for message in seen["body"]["messages"]:
            message.setdefault("content", "")
    differ = same(kept["body"], seen["body"])
    ours = json.loads(json.dumps(kept["body"]))
    for message in ours.get("messages", []):
        message.pop("reasoning_details", None)
    differ += [f"{place} (not in the SDK's types)" for place in same(ours, fitted)]
    headers = {key.lower(): value for key, value in seen["headers"].items()}
    header, _, before = kept["auth"].partition(": ")
    if grammar != "ollama" and not (header in headers and headers[header].startswith(before)):
        differ.append(f"the key: {header}")
    path = kept["path"].replace("%2F", "/") if grammar == "gemini" else kept["path"]
    if seen["path"].replace("%2F", "/") not in (path, path.replace("models/vendor", "vendor")) or seen["query"] != kept["query"]:
        differ.append(f"the path: ours {kept['path']}?{kept['query']}, the SDK's {seen['path']}?{seen['query']}")
    for name, value in kept["headers"].items():
        if name not in ("accept", "content-type") and headers.get(name) != value:
            differ.append(f"the header {name}: ours {value}, the SDK's {headers.get(name)}")
    known = ON_PURPOSE.get(grammar, {})
    for place, why in known.items():
        if not any(found.startswith(place) for found in differ):
            differ.append(f"no longer another on purpose: {place}")
        else:
            print(f"  {grammar}: on purpose: {place}: {why}")
    differ = [found for found in differ if not any(found.startswith(place) for place in known)]
    for place in differ:
        print(f"  {grammar}: {place}")
    print(f"{grammar}: the request is " + (f"another in {len(differ)} places" if differ else "the same"))
    return len(differ)


def main():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    base = f"http://127.0.0.1:{server.server_address[1]}"
    failed = 0
    for grammar, module, read, send in [
        ("chat", "openai", chat, send_chat),
        ("responses", "openai", responses, send_responses),
        ("anthropic", "anthropic", anthropic, send_anthropic),
        ("gemini", "google.genai", gemini, send_gemini),
        ("ollama", "ollama", ollama, send_ollama),
    ]:
        try:
            version = __import__(module, fromlist=["_"])
        except ImportError:
            print(f"{grammar}: left out, since `{module}` is not installed")
            continue
        print(f"{module} {getattr(version, '__version__', '')}".strip())
        failed += compare_streams(base, grammar, read)
        failed += compare_request(base, grammar, send)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
