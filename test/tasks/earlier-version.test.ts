/** Tasks accepted by a version without messages: their rows lack the later columns, but keep their seals. */
import { Database } from "bun:sqlite";
import { afterEach, beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import { cpSync, rmSync } from "node:fs";
import { databasePath } from "../../src/store/directory.ts";
import { TASK_MESSAGES } from "../../src/store/sqlite/migrations/019-task-messages.ts";
import { versionOf } from "../../src/store/sqlite/migrations/index.ts";
import { startGateway } from "../support/gateway.ts";
import { WITHOUT_TASK_MESSAGES } from "../support/older-schema.ts";
import { run as runProgram } from "../support/process.ts";
import { dispatch, ended, held, run, type Stage, startStage, yamlOf } from "./support.ts";

setDefaultTimeout(60_000);

let stage: Stage;
let copy: string;

beforeEach(async () => {
  stage = await startStage({ isOnFiles: true, tiers: { 1: ["a"] } });
  await stage.gateway.agent("plain");
  copy = `${stage.gateway.dataDir}-earlier`;
});
afterEach(async () => {
  await stage.stop();
  rmSync(copy, { recursive: true, force: true });
});

/** Copies the directory as if the process had been killed, and as the earlier version would have written it. */
function copyAsEarlier(): void {
  cpSync(stage.gateway.dataDir, copy, { recursive: true });
  using database = new Database(databasePath(copy));
  for (const statement of WITHOUT_TASK_MESSAGES) database.run(statement);
  database.run(`PRAGMA user_version = ${versionOf(TASK_MESSAGES) - 1}`);
}

test("an open task runs after the upgrade, and a finished task can be continued", async () => {
  stage.upstream.script("a", { chunks: ["Hello Ada."] });
  const finished = await run(stage.gateway, { agent: "plain", prompt: "My name is Ada." });
  const hold = held();
  stage.upstream.script("a", hold.script);
  const open = await dispatch(stage.gateway, { agent: "plain" });
  await hold.asked;
  copyAsEarlier();
  hold.open();
  stage.upstream.script("a", { chunks: ["done"] });
  const later = await startGateway({
    isOnFiles: true,
    yaml: yamlOf(stage.upstream.url, { tiers: { 1: ["a"] } }),
    dataDir: copy,
  });
  try {
    expect(await ended(later, open)).toMatchObject({ status: "succeeded", output: "done" });
    const next = await run(later, { agent: "plain", prompt: "Who am I?", continues: finished.id });
    expect(next.status).toBe("succeeded");
    expect(JSON.stringify(stage.upstream.requests.at(-1)?.body.messages)).toContain("Hello Ada.");
  } finally {
    await later.stop();
  }
});

test("`ledger verify` checks the seals of such a database", async () => {
  await run(stage.gateway, { agent: "plain" });
  await stage.gateway.gateway.stop();
  copyAsEarlier();
  const verified = await runProgram(["ledger", "verify", "--data", copy], { cwd: copy });
  expect([verified.code, verified.stderr]).toEqual([0, ""]);
  expect(verified.stdout).toContain("rows are as the server wrote them");
});
