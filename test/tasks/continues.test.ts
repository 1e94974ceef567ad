/** `continues`: a task continues the conversation of a finished one, rebuilt from the stored texts at each run. */
import { afterEach, beforeEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import { cpSync, rmSync } from "node:fs";
import type { Behaviour, ChatMessage } from "../support/fake-model.ts";
import { startGateway } from "../support/gateway.ts";
import { ownConnection } from "../support/own-connection.ts";
import { write } from "../support/vault.ts";
import {
  dispatch,
  ended,
  gate,
  held,
  ledger,
  run,
  type Stage,
  startStage,
  until,
  yamlOf,
} from "./support.ts";

setDefaultTimeout(60_000);

let stage: Stage;

beforeEach(async () => {
  stage = await startStage({ isOnFiles: true, tiers: { 1: ["a"] } });
  await stage.gateway.agent("talker");
});
afterEach(() => stage.stop());

const TIME: Behaviour = { toolCalls: [{ name: "time__now", arguments: { time_zone: "Europe/Berlin" } }] };
const PNG = Buffer.from("a picture").toString("base64");

/** Runs a task with these answers of the model. */
function talk(request: object, ...answers: readonly (string | Behaviour)[]) {
  const from = stage.upstream.requests.length;
  stage.upstream.script("a", () => {
    const answer = answers[stage.upstream.requests.length - from - 1] ?? "";
    return typeof answer === "string" ? { chunks: [answer] } : answer;
  });
  return run(stage.gateway, { agent: "talker", ...request });
}

/** The messages that the model was last sent. */
const sent = (): readonly ChatMessage[] => stage.upstream.requests.at(-1)?.body.messages ?? [];
const outline = () =>
  sent().map(({ role, content }) => `${role}: ${typeof content === "string" ? content : "…"}`);
const continueWith = (id: string, more: object = {}) =>
  stage.gateway.call("POST", "/v1/tasks", {
    body: { agent: "talker", prompt: "And?", continues: id, ...more },
  });
const LEFT_OUT = /^user: \[An earlier part of this conversation was erased/;

async function erase(id: string): Promise<void> {
  const [entry] = (await ledger(stage.gateway)).filter((each) => each.task === id && each.phase === "intent");
  const answer = await stage.gateway.call("DELETE", `/v1/ledger/${entry?.seq}/payload`);
  expect(answer.status).toBe(204);
}

describe("a task that continues another", () => {
  test("sends the whole chain, oldest first, and shows and records what it continues", async () => {
    const first = await talk({ prompt: "My name is Ada." }, "Hello Ada.");
    const second = await talk({ prompt: "I like owls.", continues: first.id }, "Noted.");
    const third = await talk({ prompt: "What do I like?", continues: second.id }, "Owls.");
    expect(third).toMatchObject({ status: "succeeded", output: "Owls.", continues: second.id });
    expect(first.continues).toBeUndefined();
    expect(outline()).toEqual([
      ...["user: My name is Ada.", "assistant: Hello Ada."],
      ...["user: I like owls.", "assistant: Noted."],
      "user: What do I like?",
    ]);
    const intent = (await ledger(stage.gateway)).find((each) => each.task === third.id);
    expect(intent?.detail).toMatchObject({ continues: second.id });
  });

  test("sends tool calls with their results, and files again", async () => {
    const image = { type: "image", media_type: "image/png", data: PNG };
    const messages = [{ role: "user", content: [{ type: "text", text: "What time is it?" }, image] }];
    const first = await talk({ prompt: undefined, messages, tools: ["time.now"] }, TIME, "Noon.");
    await talk({ prompt: "Sure?", continues: first.id, tools: ["time.now"] }, "Yes.");
    expect(sent().map(({ role }) => role)).toEqual(["user", "assistant", "tool", "assistant", "user"]);
    expect(JSON.stringify(sent()[0])).toContain(PNG);
    expect(JSON.stringify(sent()[1])).toContain("Europe/Berlin");
    expect(String(sent()[2]?.content)).toContain("time_zone");
  });

  test("sends earlier calls as text if it has no tools, because some providers refuse them otherwise", async () => {
    const first = await talk({ prompt: "What time is it?", tools: ["time.now"] }, TIME, "Noon.");
    await talk({ prompt: "Sure?", continues: first.id }, "Yes.");
    expect(sent().map(({ role }) => role)).toEqual(["user", "user", "assistant", "user"]);
    expect(String(sent()[1]?.content)).toStartWith(
      '[The tool time.now was called with {"time_zone":"Europe/Berlin"}.',
    );
  });

  test("reads the documents of earlier messages with their current text", async () => {
    const { id } = await write(stage.gateway, { title: "Crates", text: "Crate seven." });
    const messages = [{ role: "user", content: [{ type: "file", document: id }] }];
    const first = await talk({ prompt: undefined, messages }, "Seven.");
    await write(stage.gateway, { id, title: "Crates", text: "Crate eight." });
    const second = await talk({ prompt: "Sure?", continues: first.id }, "Yes.");
    expect(JSON.stringify(sent()[0])).toContain("Crate eight.");
    const reads = (await ledger(stage.gateway)).filter(({ action }) => action === "vault.read");
    expect(reads.map(({ task }) => task)).toEqual([first.id, second.id]);
    await stage.gateway.call("DELETE", `/v1/vault/documents/${id}`);
    await talk({ prompt: "Sure?", continues: first.id }, "Yes.");
    expect(JSON.stringify(sent()[0])).toContain("no longer available");
  });

  test("may continue a failed task, and reports that it has no answer", async () => {
    const first = await talk({ prompt: "Try." }, { status: 400 });
    expect(first.status).toBe("failed");
    await talk({ prompt: "Again.", continues: first.id }, "Done.");
    expect(outline()[1]).toBe("assistant: [The task ended without an answer: failed.]");
  });

  test("leaves out erased texts, with one sentence for several", async () => {
    const first = await talk({ prompt: "My name is Ada." }, "Hello Ada.");
    const second = await talk({ prompt: "I like owls.", continues: first.id }, "Noted.");
    const third = await talk({ prompt: "I like rain.", continues: second.id }, "Noted too.");
    await erase(first.id);
    await erase(second.id);
    await talk({ prompt: "What do I like?", continues: third.id }, "Rain.");
    expect(outline()).toEqual([
      expect.stringMatching(LEFT_OUT),
      ...["user: I like rain.", "assistant: Noted too.", "user: What do I like?"],
    ]);
  });

  test("leaves out the oldest part of a conversation that is too long", async () => {
    const data = "AAAA".repeat(1_900_000);
    const messages = [{ role: "user", content: [{ type: "image", media_type: "image/png", data }] }];
    const first = await talk({ prompt: undefined, messages }, "One.");
    const second = await talk({ prompt: undefined, messages, continues: first.id }, "Two.");
    await talk({ prompt: "And?", continues: second.id }, "Three.");
    expect(outline()).toEqual([
      expect.stringMatching(LEFT_OUT),
      ...["user: …", "assistant: Two.", "user: And?"],
    ]);
  });
});

describe("a task that cannot be continued", () => {
  test("a task that has not finished: 409 task_not_finished", async () => {
    const hold = held();
    stage.upstream.script("a", hold.script);
    const id = await dispatch(stage.gateway, { agent: "talker" });
    const { status, body } = await continueWith(id);
    expect([status, body.code]).toEqual([409, "task_not_finished"]);
    hold.open();
    await ended(stage.gateway, id);
    expect((await continueWith(id)).status).toBe(202);
  });

  test("an unknown task, one of another agent, one of another workspace: 404", async () => {
    await stage.gateway.agent("other");
    const other = await run(stage.gateway, { agent: "other" });
    const token = await stage.gateway.workspace("elsewhere");
    await stage.gateway.call("POST", "/v1/agents", {
      token,
      body: { name: "talker", owner: "tests", memory_scope: "support" },
    });
    const mine = await run(stage.gateway, { agent: "talker" });
    for (const id of ["task_00000000000000000000000000", "nothing", other.id]) {
      const { status, body } = await continueWith(id);
      expect([status, body.code]).toEqual([404, "not_found"]);
    }
    const abroad = await stage.gateway.call("POST", "/v1/tasks", {
      token,
      body: { agent: "talker", prompt: "And?", continues: mine.id },
    });
    expect([abroad.status, abroad.body.code]).toEqual([404, "not_found"]);
  });

  test("a task of another token, without the right to read tasks: 403", async () => {
    const first = await talk({ prompt: "My name is Ada." }, "Hello Ada.");
    const token = await stage.gateway.token({ agent: "talker", scopes: ["tasks:write"] });
    const ask = (continues: string) =>
      stage.gateway.call("POST", "/v1/tasks", { token, body: { agent: "talker", prompt: "?", continues } });
    const { status, body } = await ask(first.id);
    expect([status, body.code]).toEqual([403, "scope_missing"]);
    const own = await stage.gateway.call("POST", "/v1/tasks", {
      token,
      body: { agent: "talker", prompt: "hi" },
    });
    await ended(stage.gateway, own.body.id);
    expect((await ask(own.body.id)).status).toBe(202);
  });
});

test("a conversation that names a document anywhere needs a token that may read the vault: 403", async () => {
  const document = await write(stage.gateway, { title: "Crates", text: "The quagga sleeps." });
  const messages = [{ role: "user", content: [{ type: "file", document: document.id }] }];
  const first = await talk({ prompt: undefined, messages }, "Noted.");
  const second = await talk({ prompt: "And?", continues: first.id }, "Noted too.");
  const without = await talk({ prompt: "Hello." }, "Hello.");
  const scopes = ["tasks:read", "tasks:write"];
  const token = await stage.gateway.token({ agent: "talker", scopes });
  const reader = await stage.gateway.token({ agent: "talker", scopes: [...scopes, "vault:read"] });
  const before = stage.upstream.requests.length;
  const ask = (continues: string, by: string) =>
    stage.gateway.call("POST", "/v1/tasks", {
      token: by,
      body: { agent: "talker", prompt: "What does it say?", continues },
    });
  for (const { id } of [first, second]) {
    const { status, body } = await ask(id, token);
    expect([status, body.code]).toEqual([403, "scope_missing"]);
  }
  expect(stage.upstream.requests).toHaveLength(before);
  expect((await ask(without.id, token)).status).toBe(202);
  expect((await ask(second.id, reader)).status).toBe(202);
});

test("a process that dies while such a task runs sends the same conversation again", async () => {
  const first = await talk({ prompt: "My name is Ada." }, "Hello Ada.");
  const hold = gate();
  stage.upstream.script("a", { gate: hold.opened, chunks: ["Ada."] });
  const before = stage.upstream.requests.length;
  const id = await dispatch(stage.gateway, { agent: "talker", prompt: "Who am I?", continues: first.id });
  await until(() => stage.upstream.requests.length === before + 1);
  const copy = `${stage.gateway.dataDir}-crashed`;
  cpSync(stage.gateway.dataDir, copy, { recursive: true });
  stage.upstream.script("a", { chunks: ["Ada."] });
  const second = await startGateway({
    isOnFiles: true,
    yaml: yamlOf(stage.upstream.url, { tiers: { 1: ["a"] } }),
    dataDir: copy,
  });
  try {
    expect(await ended(second, id)).toMatchObject({
      status: "succeeded",
      output: "Ada.",
      continues: first.id,
    });
    expect(outline()).toEqual(["user: My name is Ada.", "assistant: Hello Ada.", "user: Who am I?"]);
  } finally {
    await second.stop();
    hold.open();
    rmSync(copy, { recursive: true, force: true });
  }
});

describe("a conversation with rows that were changed in the file is not sent to a model", () => {
  const OUTPUT = "UPDATE payloads SET body = 'Forged.' WHERE kind = 'output' AND body = 'Hello Ada.'";
  test.each([
    ["the text of an answer", OUTPUT],
    [
      "the text of a question",
      "UPDATE payloads SET body = 'Forged.' WHERE kind = 'input' AND body LIKE 'My name%'",
    ],
    ["the entry of an end", "UPDATE tasks SET finish_seq = finish_seq - 1 WHERE continues IS NULL"],
    ["what a task continues", "UPDATE tasks SET continues = 'task_x' WHERE continues IS NULL"],
    [
      "the arguments of a call",
      "UPDATE payloads SET body = '{}' WHERE kind = 'input' AND body LIKE '%Berlin%'",
    ],
    ["the result of a call", "UPDATE payloads SET body = '1' WHERE kind = 'output' AND body LIKE '%Berlin%'"],
  ])("%s", async (_name, change) => {
    const first = await talk({ prompt: "My name is Ada.", tools: ["time.now"] }, TIME, "Hello Ada.");
    const before = stage.upstream.requests.length;
    ownConnection(stage.gateway.dataDir).run(change);
    const next = await talk({ prompt: "Who am I?", continues: first.id }, "Ada.");
    expect(next).toMatchObject({ status: "failed", error: { code: "interrupted" } });
    expect(stage.upstream.requests).toHaveLength(before);
  });
});
