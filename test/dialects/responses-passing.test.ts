/** What passes through Responses is byte-identical. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import fc from "fast-check";
import { packSignature } from "../../src/dialects/translation/signatures.ts";
import { sse } from "../support/fake-messages.ts";
import {
  eventsOf,
  openResponsesStage,
  type ResponsesStage,
  responseOf,
  textItem,
} from "./responses-support.ts";

let stage: ResponsesStage;
beforeAll(async () => {
  stage = await openResponsesStage();
});
afterAll(() => stage.stop());

const READ = ["model", "stream", "background", "store", "previous_response_id", "conversation", "input"];

test("a request's bytes are passed on except for the model's name", async () => {
  const answer = responseOf([textItem("x")]);
  stage.upstream.script("any", { response: answer });
  await fc.assert(
    fc.asyncProperty(
      fc.dictionary(fc.string(), fc.jsonValue()),
      fc.nat({ max: 3 }),
      fc.constantFrom('"up/any"', '"up\\/any"', '"up/\\u0061ny"'),
      async (other, indent, name) => {
        const rest = Object.fromEntries(Object.entries(other).filter(([key]) => !READ.includes(key)));
        const asked = { ...rest, store: false, model: "MODEL", input: [{ role: "user", content: "hi" }] };
        const text = JSON.stringify(asked, null, indent);
        const { response, bytes } = await stage.post(text.replace('"MODEL"', () => name));
        expect(response.status).toBe(200);
        const { bytes: sent, path } = stage.upstream.requests.at(-1) ?? { path: "" };
        expect([path, sent?.toString()]).toEqual(["/v1/responses", text.replace('"MODEL"', () => '"any"')]);
        expect(bytes.toString()).toBe(JSON.stringify(answer));
      },
    ),
    { numRuns: 60 },
  );
});

test("a stream's bytes are passed back as they arrive, split at every byte", async () => {
  const whole = responseOf([textItem("response.completed error é€😀")], {
    usage: { input_tokens: 3, output_tokens: 20 },
  });
  const bytes = Buffer.concat([Buffer.from(": a comment\n\n"), ...eventsOf(whole).map(sse)]);
  const body = JSON.stringify({ model: "up/any", stream: true, input: "x", store: false });
  const at = async (cuts: readonly number[]) => {
    const places = [0, ...cuts.toSorted((a, b) => a - b)];
    const parts = places.map((from, index) => bytes.subarray(from, places[index + 1]));
    stage.upstream.script("any", { parts });
    const { response, bytes: passed } = await stage.post(body);
    expect(passed.toString()).toBe(bytes.toString());
    const [, outcome] = await stage.entriesOf(response);
    expect(outcome).toMatchObject({ outcome: "succeeded", detail: { input_tokens: 3, output_tokens: 20 } });
  };
  for (let cut = 1; cut < bytes.length; cut += 7) await at([cut]);
  await at(Array.from({ length: bytes.length - 1 }, (_, index) => index + 1));
}, 120_000);

test("events with unknown fields and of unknown types are passed on, and kept if the answer breaks off", async () => {
  await fc.assert(
    fc.asyncProperty(fc.jsonValue(), fc.boolean(), async (unknown, crlf) => {
      const events: object[] = eventsOf(responseOf([textItem("xyz")])).map((event) => ({
        ...event,
        unknown,
      }));
      events.splice(3, 0, { type: "response.novelty.delta", unknown });
      const text = Buffer.concat(events.map(sse)).toString();
      const bytes = Buffer.from(crlf ? text.replaceAll("\n", "\r\n") : text);
      stage.upstream.script("any", { parts: [bytes] });
      const body = JSON.stringify({ model: "up/any", stream: true, input: "x", store: false });
      expect((await stage.post(body)).bytes.toString()).toBe(bytes.toString());
      stage.upstream.script("any", { events: events.slice(0, -1) });
      const { response } = await stage.post(body);
      const outcome = (await stage.entriesOf(response)).at(-1);
      expect(stage.text(outcome, "output")).toContain("response.novelty.delta");
    }),
    { numRuns: 30 },
  );
});

test("only reasoning that Gatehouse signed for another provider is removed", async () => {
  stage.upstream.script("any", { response: responseOf([textItem("x")]) });
  const signed = packSignature({ kind: "google", provider: "gemini" }, { google: { thoughtSignature: "s" } });
  const reasoning = (encrypted: string) => ({
    ...{ type: "reasoning", id: "rs_1", summary: [], encrypted_content: encrypted },
  });
  const input = [{ role: "user", content: "hi" }, reasoning(signed), reasoning("sealed by OpenAI")];
  await stage.post(JSON.stringify({ unknown: 1, model: "up/any", store: false, input }));
  const sent = JSON.parse(stage.upstream.requests.at(-1)?.bytes.toString() ?? "");
  expect(sent).toEqual({ unknown: 1, model: "any", store: false, input: [input[0], input[2]] });

  // The rest of the input is passed on byte for byte.
  const item = '{ "role":"user","content":"h\\u0069","n":1.0,"n":12345678901234567890 }';
  const body = (first: string, last: string, model: string) =>
    `{"input":[${first}${item} ,{"b":2e0}${last}], "model":"${model}","store":false}`;
  const own = JSON.stringify(reasoning(signed));
  await stage.post(body(`${own}, ${own} ,`, ` , ${own}`, "up/any"));
  expect(stage.upstream.requests.at(-1)?.bytes.toString()).toBe(body("", " ", "any"));
});

test("no header of the client is passed on", async () => {
  stage.upstream.script("any", { response: responseOf([textItem("x")]) });
  await stage.client().responses.create({ model: "up/any", input: "x", store: false });
  const seen = stage.upstream.requests.at(-1)?.headers;
  expect(seen?.get("authorization")).toBe("Bearer sk-upstream");
  const names = [...(seen?.keys() ?? [])];
  expect(names.filter((name) => /stainless|gatehouse-(?!via)|x-app|cookie/.test(name))).toEqual([]);
});
