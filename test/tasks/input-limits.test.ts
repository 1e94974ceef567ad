/** A task's input at the edge of each limit. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { write } from "../support/vault.ts";
import { run, type Stage, startStage } from "./support.ts";

setDefaultTimeout(60_000);

let stage: Stage;
beforeAll(async () => {
  stage = await startStage({ tiers: { 1: ["a"] } });
  stage.upstream.script("a", { chunks: ["Read."] });
  await stage.gateway.agent("reader");
});
afterAll(() => stage.stop());

const MIB = 1024 * 1024;
const text = (length: number, letter = "a") => ({ type: "text", text: letter.repeat(length) });
const file = (bytes: number) => ({
  ...{ type: "file", media_type: "text/plain", data: Buffer.alloc(bytes, "b").toString("base64") },
});
const asked = (...content: readonly object[]) => ({
  agent: "reader",
  prompt: undefined,
  messages: [{ role: "user", content }],
});
const post = async (body: object) => {
  const { status, body: answer } = await stage.gateway.call("POST", "/v1/tasks", { body });
  return { status, code: answer.code, errors: answer.errors };
};

describe("the text and files of a task", () => {
  test("may have 1,000,000 characters and 6 MiB together", async () => {
    const task = await run(stage.gateway, asked(text(1_000_000), file(6 * MIB)));
    expect(task).toMatchObject({ status: "succeeded", output: "Read." });
  });

  test("may be split in any way: padding does not count", async () => {
    const files = Array.from({ length: 6 }, (_, at) => file(MIB + (at % 2 === 0 ? 1 : -1)));
    expect((await run(stage.gateway, asked(...files))).status).toBe("succeeded");
  });

  test("may not have more, and the refusal names the limit", async () => {
    expect(await post(asked(text(1_000_000), text(1)))).toMatchObject({
      ...{ status: 422, code: "validation_failed" },
      errors: [{ path: "/messages", message: expect.stringContaining("1000000 characters") }],
    });
    expect(await post(asked(text(1), file(6 * MIB + 1)))).toMatchObject({
      ...{ status: 422, code: "validation_failed" },
      errors: [{ path: "/messages", message: expect.stringContaining("6 MiB") }],
    });
  });

  test("must fit into a body of 10 MiB, whatever the alphabet", async () => {
    expect(await post(asked(text(1_000_000, "ற"), file(6 * MIB)))).toMatchObject({
      ...{ status: 413, code: "body_too_large" },
    });
    expect((await run(stage.gateway, asked(text(690_000, "ற"), file(6 * MIB)))).status).toBe("succeeded");
  });
});

describe("the documents of a task", () => {
  const LONG = "a long story ".repeat(40_000);
  const named = (...ids: readonly string[]) => ids.map((document) => ({ type: "file", document }));

  test("count each time they are named", async () => {
    const { id } = await write(stage.gateway, { title: "Long", text: LONG });
    expect((await run(stage.gateway, asked(...named(id)))).status).toBe("succeeded");
    expect(await post(asked(...named(id, id)))).toMatchObject({
      ...{ status: 422, errors: [{ path: "/messages/0/content/1/document" }] },
    });
  });

  test("that have grown beyond the limit are left out of a continued conversation", async () => {
    const long = await write(stage.gateway, { title: "Long", text: LONG });
    const grown = await write(stage.gateway, { title: "Growing", text: "a short story" });
    const first = await run(stage.gateway, asked(...named(long.id, grown.id)));
    await write(stage.gateway, { id: grown.id, title: "Growing", text: LONG });
    await run(stage.gateway, { agent: "reader", prompt: "And?", continues: first.id });
    const sent = JSON.stringify(stage.upstream.requests.at(-1)?.body.messages);
    expect(sent.split("a long story").length - 1).toBe(40_000);
    expect(sent).toContain("no longer available");
  });

  test("cannot be images, and the refusal says what to send", async () => {
    const { id } = await write(stage.gateway, { text: "a short story" });
    expect(await post(asked({ type: "image", document: id }))).toMatchObject({
      status: 422,
      errors: [{ path: "/messages/0/content/0/type", message: expect.stringContaining("must be file") }],
    });
  });
});
