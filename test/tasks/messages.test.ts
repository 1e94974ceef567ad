/** `messages` in place of `prompt`: from the request through the store to the provider, and back. */
import { afterEach, beforeEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { createSecret } from "../../src/access/secret.ts";
import { systemRandom } from "../../src/base/ids.ts";
import { allEvents } from "../support/events.ts";
import { startFakeModel } from "../support/fake-model.ts";
import { serve, tempDir } from "../support/process.ts";
import { remove, write } from "../support/vault.ts";
import { leftovers } from "../vault/files-support.ts";
import {
  dispatch,
  ended,
  gate,
  ledger,
  openEvents,
  run,
  type Stage,
  startStage,
  until,
  yamlOf,
} from "./support.ts";

setDefaultTimeout(60_000);

let stage: Stage;

beforeEach(async () => {
  stage = await startStage({ tiers: { 1: ["a"] } });
  await stage.gateway.agent("reader");
});
afterEach(() => stage.stop());

const PNG = Buffer.from("a picture of a heron").toString("base64");
const text = (words: string) => ({ type: "text", text: words });
const image = { type: "image", media_type: "image/png", data: PNG };
const asked = (...content: readonly object[]) => [{ role: "user", content }];
const sent = (index = 0) => stage.upstream.requests[index]?.body.messages ?? [];
const refused = (body: object) =>
  stage.gateway.call("POST", "/v1/tasks", { body: { agent: "reader", ...body } });

describe("messages", () => {
  test("reach the provider in their roles and order, with images and files", async () => {
    stage.upstream.script("a", { chunks: ["A heron."] });
    const messages = [
      { role: "user", content: "Hello" },
      { role: "assistant", content: [text("Hello."), text("What is it?")] },
      { role: "user", content: [text("What is this?"), image, text("And what is in the list?")] },
      {
        role: "user",
        content: [{ type: "file", media_type: "text/csv", data: Buffer.from("one,two").toString("base64") }],
      },
    ];
    const task = await run(stage.gateway, { agent: "reader", prompt: undefined, messages });
    expect(task).toMatchObject({ status: "succeeded", output: "A heron.", prompt: null, messages });
    expect(sent()).toEqual([
      { role: "user", content: "Hello" },
      { role: "assistant", content: "Hello.\n\nWhat is it?" },
      {
        role: "user",
        content: [
          { type: "text", text: "What is this?" },
          { type: "image_url", image_url: { url: `data:image/png;base64,${PNG}` } },
          { type: "text", text: "And what is in the list?" },
        ],
      },
      { role: "user", content: "one,two" },
    ]);
  });

  test("are shown in full to readers of the task, and with sizes in lists and events", async () => {
    const messages = asked(text("What is this?"), image);
    const task = await run(stage.gateway, { agent: "reader", prompt: undefined, messages });
    const briefly = asked(text("What is this?"), { type: "image", media_type: "image/png", size: 20 });
    expect(task.messages).toEqual(messages);
    const { body } = await stage.gateway.call("GET", "/v1/tasks");
    expect(body.data[0]).toEqual({ ...task, messages: briefly });
    const events = await allEvents(await openEvents(stage.gateway, task.id));
    expect(events.at(-1)?.data).toEqual(body.data[0]);
    expect(JSON.stringify(events)).not.toContain(PNG);
  });

  test("are the input of the dispatch: hashed in its entry, and stored once", async () => {
    const task = await run(stage.gateway, { agent: "reader", prompt: undefined, messages: asked(image) });
    const entries = await ledger(stage.gateway);
    const [intent] = entries.filter((each) => each.action === "task.dispatch" && each.task === task.id);
    expect(intent).toMatchObject({ phase: "intent", outcome: "allowed" });
    expect(intent).toHaveProperty("input_hash", expect.stringMatching(/^[0-9a-f]{64}$/));
    expect(JSON.stringify(entries)).not.toContain(PNG);
  });

  test("create one task per key, and another body with the same key is refused", async () => {
    const headers = { "idempotency-key": "k1" };
    const send = (messages: readonly object[]) =>
      stage.gateway.call("POST", "/v1/tasks", { headers, body: { agent: "reader", messages } });
    const first = await send(asked(text("one"), image));
    const again = await send(asked(text("one"), image));
    expect([again.status, again.body.id]).toEqual([202, first.body.id]);
    expect(again.headers.get("idempotency-replayed")).toBe("true");
    const other = await send(asked(text("two"), image));
    expect([other.status, other.body.code]).toEqual([409, "idempotency_conflict"]);
  });

  test.each([
    ["/prompt", {}],
    ["/messages", { prompt: "hi", messages: asked(text("hi")) }],
    ["/messages", { messages: [] }],
    ["/messages/0/role", { messages: [{ role: "assistant", content: "hi" }] }],
    ["/messages/0/role", { messages: [{ role: "system", content: "hi" }] }],
    ["/messages/0/content", { messages: [{ role: "user", content: [] }] }],
    ["/messages/0/content", { messages: [{ role: "user", content: "" }] }],
    ["/messages/0/content/0/text", { messages: asked({ type: "text" }) }],
    ["/messages/0/content/0/data", { messages: asked({ ...text("hi"), data: PNG }) }],
    ["/messages/0/content/0/media_type", { messages: asked({ type: "file", data: PNG }) }],
    ["/messages/0/content/0/media_type", { messages: asked({ ...image, media_type: "text/plain" }) }],
    ["/messages/0/content/0/media_type", { messages: asked({ ...image, media_type: "image" }) }],
    ["/messages/0/content/0/data", { messages: asked({ ...image, data: "no base64!" }) }],
    ["/messages/0/content/0/data", { messages: asked({ ...image, data: undefined }) }],
    ["/messages/0/content/0/type", { messages: asked({ type: "image", document: "doc_1" }) }],
    [
      "/messages/0/content/0/type",
      { messages: [{ role: "assistant", content: [image] }, ...asked(text("hi"))] },
    ],
    ["/messages", { messages: asked(text("a".repeat(600_000)), text("b".repeat(600_000))) }],
    ["/messages", { messages: asked({ ...image, data: "AAAA".repeat(2_100_000) }) }],
  ])("that are not valid are refused at %s, and cost nothing", async (path, body) => {
    const { status, body: problem } = await refused(body);
    expect([status, problem.code]).toEqual([422, "validation_failed"]);
    expect(problem.errors[0].path).toStartWith(path);
    expect(stage.upstream.requests).toHaveLength(0);
  });

  test("of 6 MiB of files and a million characters arrive whole", async () => {
    const data = "AAAA".repeat(2_000_000);
    const words = "w".repeat(1_000_000);
    stage.upstream.script("a", { chunks: ["read"] });
    const task = await run(stage.gateway, {
      agent: "reader",
      prompt: undefined,
      messages: asked(text(words), { ...image, data }),
    });
    expect([task.status, task.error]).toEqual(["succeeded", null]);
    const [message] = sent();
    const content = message?.content as readonly { text?: string; image_url?: { url: string } }[];
    expect([content[0]?.text?.length, content[1]?.image_url?.url.length]).toEqual([1_000_000, 8_000_022]);
  });
});

test("the texts of such a task are erased with its dispatch, from the task, its events and the file", async () => {
  stage.upstream.script("a", { chunks: ['{"bird":"heron"}'] });
  const task = await run(stage.gateway, {
    agent: "reader",
    prompt: undefined,
    messages: asked(text("What is the obnubilated bird?"), image),
    output_schema: { type: "object", title: "the form of a bird" },
  });
  expect(task).toMatchObject({ status: "succeeded", output_json: { bird: "heron" } });
  const [intent] = (await ledger(stage.gateway)).filter((each) => each.task === task.id);
  await stage.gateway.call("DELETE", `/v1/ledger/${intent?.seq}/payload`);
  const { body } = await stage.gateway.call("GET", `/v1/tasks/${task.id}`);
  const erased = { prompt: null, messages: null, output_schema: null, output: null, output_json: null };
  expect(body).toEqual({ ...task, ...erased });
  const events = await allEvents(await openEvents(stage.gateway, task.id));
  expect(events.at(-1)?.data).toEqual(body);
  expect(
    leftovers(stage.gateway.dataDir, {
      ...{ text: "obnubilated bird", image: PNG, schema: "the form of a bird" },
      ...{ output: '{"bird":"heron"}', escaped: '\\"heron' },
    }),
  ).toEqual([]);
});

describe("a document in the vault", () => {
  const named = (document: string) => asked(text("What does it say?"), { type: "file", document });

  test("is read inside the agent's boundary when the task runs, and each read is recorded", async () => {
    const { id } = await write(stage.gateway, { title: "Crates", text: "The quagga sleeps." });
    const task = await run(stage.gateway, { agent: "reader", prompt: undefined, messages: named(id) });
    expect(task).toMatchObject({ status: "succeeded", messages: named(id) });
    expect(JSON.stringify(sent())).toContain('Document \\"Crates\\":\\n\\nThe quagga sleeps.');
    const reads = ["task.events", "task.read"];
    const own = (await ledger(stage.gateway)).filter(
      ({ task: of, action }) => of === task.id && !reads.includes(action),
    );
    expect(own.map(({ action, phase }) => `${action} ${phase}`)).toEqual([
      "task.dispatch intent",
      "vault.read single",
      "model.call intent",
      "model.call outcome",
      "task.dispatch outcome",
    ]);
    expect(own[0]?.detail).toMatchObject({ documents: id });
    expect(own[1]).toMatchObject({ outcome: "succeeded", agent: "reader", detail: { document: id } });
  });

  test("outside the boundary, or unknown, is refused at the dispatch, with its place", async () => {
    const { id } = await write(stage.gateway, {
      title: "Secret",
      text: "The quagga sleeps.",
      scope: "legal",
    });
    for (const document of [id, "doc_0000000000000000000000000x", "nothing"]) {
      const { status, body } = await refused({ messages: named(document) });
      expect([status, body.code, body.errors[0].path]).toEqual([
        ...[422, "validation_failed"],
        "/messages/0/content/1/document",
      ]);
    }
  });

  test("needs a token that may read the vault", async () => {
    const { id } = await write(stage.gateway, { title: "Crates", text: "The quagga sleeps." });
    const token = await stage.gateway.token({ agent: "reader", scopes: ["tasks:read", "tasks:write"] });
    const body = { agent: "reader", messages: named(id) };
    const { status, body: problem } = await stage.gateway.call("POST", "/v1/tasks", { token, body });
    expect([status, problem.code]).toEqual([403, "scope_missing"]);
  });

  test("that is gone when the task runs ends the task as document_unavailable, and no model is called", async () => {
    const { id } = await write(stage.gateway, { title: "Crates", text: "The quagga sleeps." });
    const hold = gate();
    stage.upstream.script("a", { gate: hold.opened, chunks: ["held"] });
    await stage.gateway.call("PATCH", "/v1/workspace", {
      body: { limits: { concurrent_tasks: 1, enforcement: "enforced" } },
    });
    const first = await dispatch(stage.gateway, { agent: "reader" });
    await until(() => stage.upstream.requests.length === 1);
    const second = await dispatch(stage.gateway, { agent: "reader", prompt: undefined, messages: named(id) });
    await remove(stage.gateway, id);
    hold.open();
    await ended(stage.gateway, first);
    expect(await ended(stage.gateway, second)).toMatchObject({
      status: "failed",
      error: { code: "document_unavailable" },
      credits_consumed: 0,
    });
    expect(stage.upstream.requests).toHaveLength(1);
  });
});

test("after kill -9, a task with messages continues with all of its parts", async () => {
  const directory = tempDir();
  const upstream = startFakeModel();
  const hold = gate();
  upstream.script("a", (_request, index) =>
    index === 0
      ? { toolCalls: [{ name: "time__now", arguments: {} }] }
      : { ...(index === 1 ? { gate: hold.opened } : {}), chunks: ["done"] },
  );
  writeFileSync(join(directory.path, "gatehouse.yaml"), yamlOf(upstream.url, { tiers: { 1: ["a"] } }));
  const secret = createSecret(systemRandom);
  const options = { cwd: directory.path, env: { GATEHOUSE_ADMIN_TOKEN: secret } };
  // biome-ignore lint/suspicious/noExplicitAny: tests read arbitrary JSON.
  const call = async (url: string, path: string, body?: object): Promise<any> => {
    const headers = { authorization: `Bearer ${secret}`, "content-type": "application/json" };
    const init = body ? { method: "POST", body: JSON.stringify(body) } : {};
    const response = await fetch(url + path, { headers, ...init });
    return response.headers.get("content-type")?.includes("json")
      ? await response.json()
      : await response.text();
  };
  const messages = asked(text("What time is it, and what is this?"), image);
  let server = await serve(["--data", directory.path], options);
  try {
    await call(server.url, "/v1/agents", { name: "reader", owner: "tests", memory_scope: "support" });
    const { id } = await call(server.url, "/v1/tasks", { agent: "reader", messages, tools: ["time.now"] });
    await until(() => upstream.requests.length === 2);
    await server.end("SIGKILL");
    hold.open();
    server = await serve(["--data", directory.path], options);
    await call(server.url, `/v1/tasks/${id}/events`);
    const task = await call(server.url, `/v1/tasks/${id}`);
    expect(task).toMatchObject({ status: "succeeded", output: "done", messages });
    expect(upstream.requests).toHaveLength(3);
    expect(upstream.requests[2]?.body.messages).toEqual(upstream.requests[1]?.body.messages ?? []);
    expect(JSON.stringify(upstream.requests[2]?.body.messages)).toContain(PNG);
  } finally {
    hold.open();
    await server.end("SIGKILL");
    await upstream.close();
    directory.remove();
  }
});
