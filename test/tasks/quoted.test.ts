/** `DELETE /v1/vault/documents/:id?payloads=true` also erases what tasks quote from the document. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { databasePath } from "../../src/store/directory.ts";
import { readFile } from "../faults/support.ts";
import { chainFaults } from "../ledger/support.ts";
import { allEvents, outline } from "../support/events.ts";
import type { Script } from "../support/fake-model.ts";
import { ownConnection } from "../support/own-connection.ts";
import { remove, write } from "../support/vault.ts";
import { leftovers } from "../vault/files-support.ts";
import {
  dispatch,
  ended,
  held,
  ledger,
  openEvents,
  run,
  type Stage,
  startStage,
  unsettled,
  until,
} from "./support.ts";

let stage: Stage;

beforeEach(async () => {
  stage = await startStage({ isOnFiles: true, tiers: { 1: ["a"] } });
  await stage.gateway.agent("finder");
});

afterEach(() => stage.stop());

const MARK = "the obnubilated quagga sleeps in the seventh crate";
const ANSWER = "You will find it within container number 7, I was told.";
const LATER = "a later question about crates";
const TOOLS = ["vault.search", "vault.read", "vault.write", "time.now"];

const quaggas = () => write(stage.gateway, { title: "Crates", text: `Note: ${MARK}.` });
const calls = (name: string, args: object) => ({ toolCalls: [{ name, arguments: args }] });
const searches = calls("vault__search", { query: "Where does the quagga sleep?" });

/** Scripts a task that searches, then searches for something else based on the result, and then answers. */
function script(): void {
  steps(
    { ...searches, chunks: ["Let me look. "] },
    { ...calls("vault__search", { query: LATER }), chunks: ["Aha, so it is. "] },
    { chunks: [...ANSWER].map((letter) => letter) },
  );
}

/** Scripts the model's answers, one for each call. */
function steps(...each: readonly Script[]): void {
  stage.upstream.script("a", (call, index) => {
    const step = each[index] ?? {};
    return typeof step === "function" ? step(call, index) : step;
  });
}

const whole = () => {
  const { rows, integrity } = readFile(databasePath(stage.gateway.dataDir));
  expect(integrity).toEqual([{ integrity_check: "ok" }]);
  expect(chainFaults(rows)).toEqual([]);
};

describe("with payloads", () => {
  test("the results, everything that the task wrote and requested afterwards, and its events are gone from the file", async () => {
    const { id } = await quaggas();
    script();
    const before = await run(stage.gateway, { agent: "finder", tools: TOOLS, prompt: "Where is it?" });
    expect(before).toMatchObject({ status: "succeeded", output: ANSWER });
    const needles = { MARK, LATER, ANSWER, aha: "Aha, so it is" };
    expect(leftovers(stage.gateway.dataDir, needles).length).toBeGreaterThanOrEqual(4);
    await remove(stage.gateway, id, "?payloads=true");
    expect(leftovers(stage.gateway.dataDir, needles)).toEqual([]);

    const { body: after } = await stage.gateway.call("GET", `/v1/tasks/${before.id}`);
    expect(after).toMatchObject({
      status: "succeeded",
      output: null,
      prompt: "Where is it?",
      usage: before.usage,
    });
    expect(after.tools_called).toMatchObject([
      { tool: "vault.search", status: "succeeded", arguments: { query: "Where does the quagga sleep?" } },
      { tool: "vault.search", status: "succeeded", arguments: null },
    ]);
    expect((await stage.gateway.call("GET", "/v1/tasks")).body.data[0].output).toBeNull();
  });

  test("its events can still be read from anywhere, and end in task.finished", async () => {
    const { id } = await quaggas();
    script();
    const task = await run(stage.gateway, { agent: "finder", tools: TOOLS });
    const before = await allEvents(await openEvents(stage.gateway, task.id));
    await remove(stage.gateway, id, "?payloads=true");
    const after = await allEvents(await openEvents(stage.gateway, task.id));
    expect(outline(after)).toEqual([
      "task.created",
      "task.started",
      "output.delta",
      "tool.call",
      "tool.result",
      "tool.call",
      "tool.result",
      "task.finished",
    ]);
    const { body } = await stage.gateway.call("GET", `/v1/tasks/${task.id}`);
    expect(after.at(-1)?.data).toEqual(body);
    expect(after.filter(({ event }) => event === "output.delta").map(({ data }) => data.text)).toEqual([
      "Let me look. ",
    ]);
    expect(after.map(({ id }) => id)).toEqual(after.map(({ id }) => id).toSorted((a, b) => a - b));
    for (const { id: last } of before) {
      const rest = await allEvents(await openEvents(stage.gateway, task.id, {}, `?after=${last}`));
      expect(rest).toEqual(after.filter((event) => event.id > last));
    }
  });

  test("the ledger verifies and records what was erased and for whom, and unquoted texts are kept", async () => {
    const { id } = await quaggas();
    const other = await write(stage.gateway, { title: "Other", text: "Nothing of that kind." });
    script();
    const quoting = await run(stage.gateway, { agent: "finder", tools: TOOLS });
    steps(calls("vault__read", { document_id: other.id }), { chunks: ["Fine."] });
    const plain = await run(stage.gateway, { agent: "finder", tools: TOOLS });
    await remove(stage.gateway, id, "?payloads=true");
    const entries = await ledger(stage.gateway);
    expect(unsettled(entries)).toEqual([]);
    expect(entries.find(({ action }) => action === "vault.delete")?.detail).toEqual({
      document: id,
      payloads: "erase",
    });
    const of = (action: string, phase: string) =>
      entries.filter((each) => each.task === quoting.id && each.action === action && each.phase === phase);
    const [first, second] = of("tool.call", "outcome");
    // A result, later arguments, their result and the answer.
    const erased = [
      `${first?.seq}.output`,
      `${of("tool.call", "intent")[1]?.seq}.input`,
      `${second?.seq}.output`,
      `${of("task.dispatch", "outcome")[0]?.seq}.output`,
    ];
    const detail = { document: id, payloads: erased.join(" "), reason: "document_deleted" };
    expect(entries.filter(({ action }) => action === "payload.erase")).toMatchObject([
      { phase: "single", outcome: "succeeded", task: quoting.id, detail },
    ]);
    const kept = (await stage.gateway.call("GET", `/v1/tasks/${plain.id}`)).body;
    expect(kept).toEqual(plain);
    whole();
  });

  test("a task that wrote the document loses the text among its arguments", async () => {
    steps(calls("vault__write", { title: "Crates", text: MARK }), { chunks: ["Written."] });
    const task = await run(stage.gateway, { agent: "finder", tools: TOOLS });
    expect(task.tools_called[0]).toMatchObject({ tool: "vault.write", status: "succeeded" });
    const id = (await stage.gateway.call("GET", "/v1/vault/documents")).body.data[0].id;
    await remove(stage.gateway, id, "?payloads=true");
    expect(leftovers(stage.gateway.dataDir, { MARK })).toEqual([]);
    const { body } = await stage.gateway.call("GET", `/v1/tasks/${task.id}`);
    expect(body).toMatchObject({ output: null, tools_called: [{ arguments: null }] });
    expect((await allEvents(await openEvents(stage.gateway, task.id))).at(-1)?.data).toEqual(body);
  });

  test("many tasks and large results are processed in slices", async () => {
    const { id } = await write(stage.gateway, {
      title: "Large",
      text: `${MARK}. ${"crate after crate ".repeat(4_000)}`,
    });
    for (let n = 0; n < 12; n++) {
      steps(calls("vault__read", { document_id: id }), { chunks: ["Read ", "it ", `${n} times.`] });
      await run(stage.gateway, { agent: "finder", tools: TOOLS });
    }
    for (let n = 0; n < 70; n++) await run(stage.gateway, { agent: "finder", prompt: `Plain ${n}` });
    await remove(stage.gateway, id, "?payloads=true");
    expect(leftovers(stage.gateway.dataDir, { MARK, end: "11 times." })).toEqual([]);
    const erased = (await ledger(stage.gateway)).filter(({ action }) => action === "payload.erase");
    expect(erased).toHaveLength(12);
    const { body } = await stage.gateway.call("GET", "/v1/tasks?limit=200");
    expect(body.data.filter(({ output }: { output: string | null }) => output === null)).toHaveLength(12);
  });

  test("a running task's quotes are erased at its end, and the ledger records that this is pending", async () => {
    const { id } = await quaggas();
    const hold = held({ chunks: [ANSWER] });
    steps(searches, hold.script);
    const task = await dispatch(stage.gateway, { agent: "finder", tools: TOOLS });
    await hold.asked;
    await remove(stage.gateway, id, "?payloads=true");
    const pending = (await ledger(stage.gateway)).filter(({ action }) => action === "payload.erase");
    expect(pending).toMatchObject([{ outcome: "pending", detail: { document: id, running: 1 } }]);
    hold.open();
    const events = await allEvents(await openEvents(stage.gateway, task));
    expect(events.at(-1)?.event).toBe("task.finished");
    await until(() => leftovers(stage.gateway.dataDir, { MARK, ANSWER }).length === 0);
    const after = await ended(stage.gateway, task);
    expect(after).toMatchObject({ status: "succeeded", output: null });
    const entries = await ledger(stage.gateway);
    const named = entries.filter((each) => each.task === task && each.phase === "outcome");
    const payloads = named.filter(({ action }) => action !== "model.call").map(({ seq }) => `${seq}.output`);
    expect(payloads).toHaveLength(2);
    expect(entries.findLast(({ action }) => action === "payload.erase")).toMatchObject({
      outcome: "succeeded",
      task,
      detail: { document: id, payloads: payloads.join(" "), reason: "document_deleted" },
    });
    whole();
  });

  test("unfinished erasures are completed by the next start", async () => {
    const { id } = await quaggas();
    const hold = held({ chunks: [ANSWER] });
    steps(searches, hold.script);
    const task = await dispatch(stage.gateway, { agent: "finder", tools: TOOLS });
    await hold.asked;
    await remove(stage.gateway, id, "?payloads=true");
    const { dataDir } = stage.gateway;
    await stage.gateway.gateway.stop();
    hold.open();
    const again = await startStage({
      isOnFiles: true,
      tiers: { 1: ["a"] },
      dataDir,
      upstream: stage.upstream,
    });
    // The task continues with what it had read, and is erased once it has ended.
    expect(await ended(again.gateway, task)).toMatchObject({ status: "succeeded" });
    await until(() => leftovers(dataDir, { MARK, ANSWER }).length === 0);
    await until(async () => (await ledger(again.gateway)).at(-1)?.action !== "payload.erase");
    expect(readFile(databasePath(dataDir)).entries.map(({ action }) => action)).toContain("payload.erase");
    await again.stop();
    const third = await startStage({
      isOnFiles: true,
      tiers: { 1: ["a"] },
      dataDir,
      upstream: stage.upstream,
    });
    const count = (await ledger(third.gateway)).filter(({ action }) => action === "payload.erase").length;
    // One pending entry from the deletion, one from the second start, and one after the task had ended. The third
    // start adds none.
    expect(count).toBe(3);
    await third.stop();
    stage = { ...stage, stop: () => stage.upstream.close() };
  });
});

test("quotes that the store refused to erase are erased by the next start, even in the middle of a task", async () => {
  const { id } = await quaggas();
  script();
  const task = await run(stage.gateway, { agent: "finder", tools: TOOLS });
  const { dataDir } = stage.gateway;
  const file = ownConnection(dataDir);
  // The events are erased by then, but not the first result, which is the only evidence that the task quotes the
  // document.
  file.run(
    "CREATE TEMP TRIGGER full BEFORE DELETE ON main.payloads WHEN OLD.body LIKE '%quagga%' BEGIN SELECT RAISE(ABORT, 'full'); END",
  );
  await remove(stage.gateway, id, "?payloads=true");
  expect(leftovers(dataDir, { MARK })).not.toEqual([]);
  await stage.gateway.gateway.stop();
  const again = await startStage({ isOnFiles: true, tiers: { 1: ["a"] }, dataDir, upstream: stage.upstream });
  await until(() => leftovers(dataDir, { MARK, LATER, ANSWER }).length === 0);
  const { body } = await again.gateway.call("GET", `/v1/tasks/${task.id}`);
  expect(body.output).toBeNull();
  expect((await allEvents(await openEvents(again.gateway, task.id))).at(-1)?.data).toEqual(body);
  await again.stop();
  stage = { ...stage, stop: () => stage.upstream.close() };
});

test("without payloads the quotes stay until they expire", async () => {
  const { id } = await quaggas();
  script();
  const task = await run(stage.gateway, { agent: "finder", tools: TOOLS });
  await remove(stage.gateway, id);
  expect((await stage.gateway.call("GET", `/v1/tasks/${task.id}`)).body).toEqual(task);
  expect(leftovers(stage.gateway.dataDir, { MARK })).not.toEqual([]);
});

test("another workspace's payloads are never read", async () => {
  const { id } = await quaggas();
  const admin = await stage.gateway.workspace("other");
  const agent = { name: "finder", owner: "tests", memory_scope: "/" };
  await stage.gateway.call("POST", "/v1/agents", { body: agent, token: admin });
  // The tool's result repeats the requested id.
  steps(calls("vault__read", { document_id: id }), { chunks: [`There is no ${id}.`] });
  const answer = await stage.gateway.call("POST", "/v1/tasks?stream=true", {
    token: admin,
    body: { agent: "finder", tools: TOOLS, prompt: "read it" },
  });
  const task = answer.headers.get("gatehouse-task-id");
  await remove(stage.gateway, id, "?payloads=true");
  const { body } = await stage.gateway.call("GET", `/v1/tasks/${task}`, { token: admin });
  expect(body).toMatchObject({ status: "succeeded", output: `There is no ${id}.` });
});
