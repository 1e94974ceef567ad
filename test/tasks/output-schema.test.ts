/** `output_schema`: the output is JSON that validates, corrected by the model at most twice. */
import { afterEach, beforeEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import { cpSync, rmSync } from "node:fs";
import { allEvents, outline } from "../support/events.ts";
import type { Behaviour } from "../support/fake-model.ts";
import { startGateway } from "../support/gateway.ts";
import {
  dispatch,
  ended,
  gate,
  ledger,
  openEvents,
  run,
  type Stage,
  startStage,
  unsettled,
  until,
  yamlOf,
} from "./support.ts";

setDefaultTimeout(60_000);

const schema = {
  type: "object",
  properties: { city: { type: "string" }, celsius: { type: "number" } },
  required: ["city", "celsius"],
  additionalProperties: false,
};
const VALID = '{"city":"Bonn","celsius":21}';
const asked = { agent: "writer", prompt: "How warm is it in Bonn?", output_schema: schema };

let stage: Stage;

beforeEach(async () => {
  stage = await startStage({ isOnFiles: true, tiers: { 1: ["a"] } });
  await stage.gateway.agent("writer");
});
afterEach(() => stage.stop());

/** Scripts the model's answers, one for each call; the last is repeated. */
function script(...answers: readonly (string | Behaviour)[]): void {
  stage.upstream.script("a", (_call, index) => {
    const answer = answers[Math.min(index, answers.length - 1)] ?? "";
    return typeof answer === "string" ? { chunks: [answer] } : answer;
  });
}

test("a valid answer is the output, and its value output_json", async () => {
  script(VALID);
  const task = await run(stage.gateway, asked);
  expect(task).toMatchObject({
    status: "succeeded",
    prompt: asked.prompt,
    output: VALID,
    output_json: { city: "Bonn", celsius: 21 },
    output_schema: schema,
    usage: { steps: 1 },
  });
  const [request] = stage.upstream.requests;
  expect(request?.body.response_format).toMatchObject({
    type: "json_schema",
    json_schema: { schema, strict: false },
  });
  expect(JSON.stringify(request?.body.messages[0])).toContain("celsius");
  const events = await allEvents(await openEvents(stage.gateway, task.id));
  expect(events.at(-1)?.data).toEqual(task);
});

test("a task without a schema has neither", async () => {
  script(VALID);
  const task = await run(stage.gateway, { agent: "writer" });
  expect(task.output).toBe(VALID);
  expect(Object.keys(task)).not.toContain("output_schema");
  expect(Object.keys(task)).not.toContain("output_json");
});

test("an invalid answer is corrected, and each correction is a recorded step", async () => {
  script("In Bonn?", '{"city":"Bonn"}', VALID);
  const task = await run(stage.gateway, asked);
  expect(task).toMatchObject({ status: "succeeded", output: VALID, usage: { steps: 3 } });
  const entries = await ledger(stage.gateway);
  expect(unsettled(entries)).toEqual([]);
  const calls = entries.filter(({ action, phase }) => action === "model.call" && phase === "intent");
  expect(calls.map(({ detail }) => detail?.step)).toEqual([1, 2, 3]);
  const last = stage.upstream.requests[2]?.body.messages.at(-1);
  expect(last).toMatchObject({ role: "user", content: expect.stringContaining("/celsius: is required") });
});

test("the text of the last step is the output: earlier answers are withdrawn", async () => {
  script("In Bonn?", VALID);
  const { id } = await run(stage.gateway, asked);
  const events = await allEvents(await openEvents(stage.gateway, id));
  const reset = events.findLastIndex(({ event }) => event === "output.reset");
  const deltas = events.slice(reset).filter(({ event }) => event === "output.delta");
  expect(deltas.map(({ data }) => data.text).join("")).toBe(VALID);
  expect(outline(events.slice(0, reset))).toContain("output.delta");
});

test("after two corrections the task fails as output_invalid", async () => {
  script("never");
  expect(await run(stage.gateway, asked)).toMatchObject({
    status: "failed",
    error: { code: "output_invalid" },
    output: null,
    output_json: null,
    usage: { steps: 3 },
  });
  expect(stage.upstream.requests).toHaveLength(3);
});

test("tools may be called before the answer", async () => {
  script({ toolCalls: [{ name: "time__now", arguments: {} }] }, VALID);
  const task = await run(stage.gateway, { ...asked, tools: ["time.now"] });
  expect(task).toMatchObject({ status: "succeeded", output_json: { city: "Bonn", celsius: 21 } });
  expect(task.tools_called).toHaveLength(1);
});

describe("a schema", () => {
  test.each([
    ["with a pattern", { type: "string", pattern: "^a" }],
    ["that is recursive", { type: "object", properties: { next: { $ref: "#" } } }],
    ["that refers to another document", { $ref: "https://example.org/schema" }],
    ["with too many parts", { enum: Array.from({ length: 5_000 }, (_, index) => index) }],
    ["of too many characters", { description: "d".repeat(100_001) }],
  ])("%s cannot be checked, and is refused", async (_name, output_schema) => {
    const { status, body } = await stage.gateway.call("POST", "/v1/tasks", {
      body: { agent: "writer", prompt: "hi", output_schema },
    });
    expect([status, body.code, body.errors[0].path]).toEqual([422, "validation_failed", "/output_schema"]);
  });

  test("has formats as annotations, and references within itself", async () => {
    script('{"at":"soon","tags":["a"]}');
    const output_schema = {
      $schema: "https://json-schema.org/draft/2020-12/schema",
      $defs: { tag: { enum: ["a", "b"] } },
      type: "object",
      properties: {
        at: { type: "string", format: "date-time" },
        tags: { type: "array", items: { $ref: "#/$defs/tag" }, minItems: 1 },
      },
    };
    const task = await run(stage.gateway, { ...asked, output_schema });
    expect(task.output_json).toEqual({ at: "soon", tags: ["a"] });
  });

  test("may request any JSON value", async () => {
    script("[1,2]");
    const output_schema = { type: "array", items: { type: "integer" } };
    expect((await run(stage.gateway, { ...asked, output_schema })).output_json).toEqual([1, 2]);
  });

  test("is part of an idempotency key's fingerprint", async () => {
    const headers = { "idempotency-key": "k" };
    await dispatch(stage.gateway, asked, { headers });
    const other = { ...asked, output_schema: { type: "object" } };
    const { status } = await stage.gateway.call("POST", "/v1/tasks", { headers, body: other });
    expect(status).toBe(409);
  });
});

describe.each([1, 2])("a process that dies during correction %i", (correction) => {
  test("continues, repeats the request, and counts the earlier ones", async () => {
    const hold = gate();
    const answers: Behaviour[] = [{ chunks: ["one"] }, { chunks: ["two"] }, { chunks: [VALID] }];
    stage.upstream.script("a", (_call, index) => ({
      ...(answers[Math.min(index, correction)] ?? {}),
      ...(index === correction ? { gate: hold.opened } : {}),
    }));
    const id = await dispatch(stage.gateway, asked);
    await until(() => stage.upstream.requests.length === correction + 1);
    const copy = `${stage.gateway.dataDir}-crashed`;
    cpSync(stage.gateway.dataDir, copy, { recursive: true });
    stage.upstream.script("a", (_call, index) => answers[Math.min(correction + index, 2)] ?? {});
    const yaml = yamlOf(stage.upstream.url, { tiers: { 1: ["a"] } });
    const second = await startGateway({ isOnFiles: true, yaml, dataDir: copy });
    try {
      expect(await ended(second, id)).toMatchObject({
        status: "succeeded",
        output: VALID,
        usage: { steps: 3 },
      });
      const sent = stage.upstream.requests.map(({ body }) => body.messages);
      expect(sent[correction + 1]).toEqual(sent[correction] ?? []);
      expect(unsettled(await ledger(second))).toEqual([]);
    } finally {
      await second.stop();
      hold.open();
      rmSync(copy, { recursive: true, force: true });
    }
  });
});
