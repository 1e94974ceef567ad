/**
 * A model makes up names of tools. Its task shows them, but the ledger, which is permanent, contains none of them.
 */
import { Database } from "bun:sqlite";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createSecret } from "../../src/access/secret.ts";
import { systemRandom } from "../../src/base/ids.ts";
import { redact } from "../../src/base/log.ts";
import { databasePath } from "../../src/store/directory.ts";
import { ledger, run, type Stage, startStage, unsettled } from "./support.ts";

let stage: Stage;
beforeAll(async () => {
  stage = await startStage({ isOnFiles: true, tiers: { 1: ["a"] } });
  await stage.gateway.agent("plain");
});
afterAll(async () => {
  expect(unsettled(await ledger(stage.gateway))).toEqual([]);
  await stage.stop();
});

/** Every byte of every entry, in all workspaces. */
function bytes(): string {
  const file = new Database(databasePath(stage.gateway.dataDir), { readonly: true });
  const rows = file.query<{ bytes: string }, []>("SELECT bytes FROM ledger").all();
  file.close();
  return rows.map((row) => row.bytes).join("\n");
}

/** Runs a task whose model makes this call once and then answers. */
async function callOnce(name: string) {
  stage.upstream.script("a", (_request, index) =>
    index === 0 ? { toolCalls: [{ name, arguments: {} }] } : { chunks: ["Done."] },
  );
  const task = await run(stage.gateway, { agent: "plain", tools: ["time.now"] });
  const entries = (await ledger(stage.gateway)).filter((entry) => entry.task === task.id);
  return { task, calls: entries.filter(({ action }) => action === "tool.call") };
}

const SECRET = createSecret(systemRandom);

describe("a tool that a model makes up is denied, its task names it, and the ledger does not:", () => {
  test.each([
    ["words", "please erase everything of Mrs Miller", "Miller"],
    ["a secret", SECRET, SECRET],
    ["a tool's name with a secret in it", `time__${SECRET}`, SECRET],
    ["a secret as a connector", `${SECRET}.now`, SECRET],
    ["a line break", "time__now\nx-injected", "injected"],
    ["marks", '"},"tool":"<script>', "<script>"],
    ["a name in another alphabet", "время", "время"],
  ])("%s", async (_, name, trace) => {
    const { task, calls } = await callOnce(name);
    expect(task).toMatchObject({ status: "succeeded", output: "Done." });
    expect(task.tools_called).toMatchObject([{ tool: redact(name), status: "denied" }]);
    expect(calls).toMatchObject([{ phase: "single", outcome: "denied", code: "unknown_tool", tool: null }]);
    expect([bytes().includes(trace), bytes().includes(JSON.stringify(name))]).toEqual([false, false]);
  });

  test("only the beginning of a name that is too long is shown in the task", async () => {
    const name = "long ".repeat(100);
    const { task, calls } = await callOnce(name);
    expect(task.tools_called).toMatchObject([{ tool: name.slice(0, 128), status: "denied" }]);
    expect(calls).toMatchObject([{ outcome: "denied", tool: null }]);
    expect(bytes().includes("long long")).toBe(false);
  });

  test("nothing is left of a secret that truncation would split", async () => {
    const { task, calls } = await callOnce(`${"x".repeat(113)}${SECRET}`);
    expect(task.tools_called[0]?.tool).toBe(`${"x".repeat(113)}gth_[redacted]`);
    expect(calls).toMatchObject([{ outcome: "denied", tool: null }]);
    expect(bytes().includes(SECRET.slice(0, 15))).toBe(false);
  });
});

test("a valid tool name is shown, although no such tool exists", async () => {
  const { task, calls } = await callOnce("rm_rf");
  expect(task.tools_called).toMatchObject([{ tool: "rm_rf", status: "denied" }]);
  expect(calls).toMatchObject([{ phase: "single", outcome: "denied", code: "unknown_tool", tool: "rm_rf" }]);
});
