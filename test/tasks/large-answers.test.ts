/** Answers with large parts that are not output: the call fails at a limit of bytes, and the next model is asked. */
import { afterEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import { type EndlessModel, startEndlessModel } from "../support/endless-model.ts";
import { ledger, run, type Stage, startStage } from "./support.ts";

setDefaultTimeout(60_000);

const MIB = 1024 * 1024;
/** The bound is 64 MiB. An answer that is read further ends here without its last event, which is another failure. */
const ENOUGH = 160;

const large = (number: number): string => "u".repeat(MIB) + number;
const event = (data: object): string => `data: ${JSON.stringify(data)}\n\n`;
const begun = (first: string, rest: (number: number) => string) => (number: number) =>
  number === 0 ? first : rest(number);

/** By provider kind: parts that the SDK keeps until an answer ends, or passes on without text. */
const ANSWERS: readonly [kind: string, what: string, eventOf: (number: number) => string][] = [
  [
    "openai",
    "annotations of a text",
    begun(
      event({
        type: "response.created",
        response: { id: "r", created_at: 0, model: "m", service_tier: null },
      }) +
        event({
          type: "response.output_item.added",
          output_index: 0,
          item: { type: "message", id: "msg" },
        }),
      (number) =>
        event({
          type: "response.output_text.annotation.added",
          annotation: { type: "url_citation", start_index: 0, end_index: 1, url: "u", title: large(number) },
        }),
    ),
  ],
  [
    "google",
    "sources",
    (number) => {
      const groundingMetadata = { groundingChunks: [{ web: { uri: large(number), title: "t" } }] };
      return event({ candidates: [{ content: { parts: [], role: "model" }, groundingMetadata }] });
    },
  ],
  [
    "google",
    "files",
    (number) => {
      const inlineData = { mimeType: "image/png", data: `${large(number)}` };
      return event({ candidates: [{ content: { parts: [{ inlineData }], role: "model" } }] });
    },
  ],
  [
    "anthropic",
    "redacted thinking",
    begun(
      event({
        type: "message_start",
        message: { id: "m", model: "m", role: "assistant", usage: { input_tokens: 1, output_tokens: 1 } },
      }),
      (number) =>
        event({
          type: "content_block_start",
          index: number,
          content_block: { type: "redacted_thinking", data: large(number) },
        }),
    ),
  ],
  [
    "openai-compatible",
    "unknown fields",
    (number) =>
      event({
        choices: [{ index: 0, delta: { reasoning_details: [large(number)] }, finish_reason: null }],
      }),
  ],
];

let endless: EndlessModel;
let stage: Stage;
afterEach(async () => {
  await stage.stop();
  await endless.close();
});

async function start(kind: string, eventOf: (number: number) => string): Promise<void> {
  endless = startEndlessModel(eventOf, ENOUGH);
  const provider = `{ kind: ${kind}, base_url: "${endless.url}", api_key: abcdefgh }`;
  stage = await startStage({ tiers: { 1: ["wide/a", "b"] }, providers: { wide: provider } });
  stage.upstream.script("b", { chunks: ["I can."] });
  await stage.gateway.agent("clerk");
}

describe("a model's answer of more than 64 MiB is abandoned, and the next model answers", () => {
  test.each(ANSWERS)("of %s with large %s", async (kind, _what, eventOf) => {
    await start(kind, eventOf);
    const task = await run(stage.gateway, { agent: "clerk" });
    expect(task).toMatchObject({ status: "succeeded", output: "I can.", model: "up/b" });
    const calls = (await ledger(stage.gateway)).filter(
      ({ model, phase }) => model === "wide/a" && phase === "outcome",
    );
    expect(calls).toMatchObject([{ outcome: "failed", code: "answer_too_large" }]);
  });
});

test("signatures of a model's calls are output: they are counted, and the task ends at its limit", async () => {
  const signed = (number: number) => ({
    functionCall: { name: "time__now", args: {} },
    thoughtSignature: "s".repeat(300_000) + number,
  });
  await start("google", (number) =>
    event({ candidates: [{ content: { parts: [signed(number)], role: "model" } }] }),
  );
  const task = await run(stage.gateway, { agent: "clerk", tools: ["time.now"] });
  expect(task).toMatchObject({
    status: "failed",
    error: { code: "internal", message: "The models' output exceeded 1000000 characters." },
    tools_called: [],
  });
});
