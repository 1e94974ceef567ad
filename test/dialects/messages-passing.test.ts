/** What passes through Messages is byte-identical. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import fc from "fast-check";
import { sse } from "../support/fake-messages.ts";
import { type MessagesStage, message, openMessagesStage, textEvents, USER } from "./messages-support.ts";

let stage: MessagesStage;
beforeAll(async () => {
  stage = await openMessagesStage();
});
afterAll(() => stage.stop());

test("a request's bytes are passed on except for the model's name", async () => {
  const answer = message([{ type: "text", text: "x" }], { input_tokens: 1, output_tokens: 1 });
  stage.upstream.script("any", { message: answer });
  await fc.assert(
    fc.asyncProperty(
      fc.dictionary(fc.string(), fc.jsonValue()),
      fc.nat({ max: 3 }),
      fc.constantFrom('"claude/any"', '"cl\\u0061ude/any"'),
      async (other, indent, name) => {
        const { model: _, stream: __, ...rest } = other;
        const text = JSON.stringify({ ...rest, model: "MODEL", messages: USER }, null, indent);
        const sent = text.replace('"MODEL"', () => name);
        const { response, bytes } = await stage.post(sent);
        expect(response.status).toBe(200);
        expect(stage.upstream.requests.at(-1)?.bytes.toString()).toBe(text.replace('"MODEL"', () => '"any"'));
        expect(bytes.toString()).toBe(JSON.stringify(answer));
      },
    ),
    { numRuns: 60 },
  );
});

test("a stream's bytes are passed back as they arrive, split at every byte", async () => {
  const bytes = Buffer.concat([
    Buffer.from(": a comment\n\n"),
    ...textEvents(["message_stop error ", "é€😀"], 3, 2).map(sse),
  ]);
  const body = JSON.stringify({ model: "claude/any", stream: true, messages: USER });
  const at = async (cuts: readonly number[]) => {
    const places = [0, ...cuts.toSorted((a, b) => a - b)];
    const parts = places.map((from, index) => bytes.subarray(from, places[index + 1]));
    stage.upstream.script("any", { parts });
    const { response, bytes: passed } = await stage.post(body);
    expect(passed.toString()).toBe(bytes.toString());
    const [, outcome] = await stage.entriesOf(response);
    expect(outcome).toMatchObject({ outcome: "succeeded", detail: { input_tokens: 3, output_tokens: 2 } });
  };
  for (let cut = 1; cut < bytes.length; cut++) await at([cut]);
  await at(Array.from({ length: bytes.length - 1 }, (_, index) => index + 1));
}, 120_000);

test("events with unknown fields and of unknown types are passed on and kept", async () => {
  await fc.assert(
    fc.asyncProperty(fc.jsonValue(), fc.boolean(), async (unknown, crlf) => {
      const events: object[] = textEvents(["x"], 3, 2).map((event) => ({ ...event, unknown }));
      events.splice(3, 0, { type: "novelty", unknown });
      const text = Buffer.concat(events.map(sse)).toString();
      const bytes = Buffer.from(crlf ? text.replaceAll("\n", "\r\n") : text);
      stage.upstream.script("any", { parts: [bytes] });
      const body = JSON.stringify({ model: "claude/any", stream: true, messages: USER });
      const { bytes: passed } = await stage.post(body);
      expect(passed.toString()).toBe(bytes.toString());
    }),
    { numRuns: 60 },
  );
});

test("the version, the beta and ?beta=true are passed on, and nothing else from the client", async () => {
  stage.upstream.script("any", { message: message([], { input_tokens: 1, output_tokens: 1 }) });
  const request = { model: "claude/any", max_tokens: 10, messages: USER };
  const options = { query: { beta: true }, headers: { "anthropic-beta": "context-management-2025-06-27" } };
  await stage.client().messages.create(request, options);
  const seen = stage.upstream.requests.at(-1);
  expect(seen?.path).toBe("/v1/messages?beta=true");
  expect(seen?.headers.get("anthropic-beta")).toBe("context-management-2025-06-27");
  expect(seen?.headers.get("anthropic-version")).toMatch(/^\d{4}-\d\d-\d\d$/);
  expect(seen?.headers.get("x-api-key")).toBe("sk-upstream");
  expect(seen?.headers.get("authorization")).toBeNull();
  const names = [...(seen?.headers.keys() ?? [])];
  expect(names.filter((name) => /stainless|gatehouse-(?!via)|x-app|cookie/.test(name))).toEqual([]);
  const headers = { "x-app": "cli", cookie: "a=b", "anthropic-version": "2023-01-01" };
  await stage.post(JSON.stringify(request), { path: "/v1/messages?beta=false", headers });
  const next = stage.upstream.requests.at(-1);
  expect([next?.path, next?.headers.get("anthropic-version")]).toEqual(["/v1/messages", "2023-01-01"]);
  expect([next?.headers.get("x-app"), next?.headers.get("cookie")]).toEqual([null, null]);
  await stage.post(JSON.stringify(request));
  expect(stage.upstream.requests.at(-1)?.headers.get("anthropic-version")).toBe("2023-06-01");
});
