/** A server that writes all the time is backed up: each backup is one moment of it, and verifies. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { verifyDirectory } from "../../../src/ledger/verify/directory.ts";
import { tools } from "../../../src/ledger/verify/tools.ts";
import { makeBackup } from "../../../src/store/backup/make.ts";
import { unpackBackup } from "../../../src/store/backup/unpack.ts";
import { databasePath } from "../../../src/store/directory.ts";
import { findSecretKey } from "../../../src/store/secret-key.ts";

import type { ServerProcess } from "../../support/process.ts";
import { AGENT, type Desk, openDesk } from "../support.ts";
import { entriesOf } from "./support.ts";

const BACKUPS = 20;
const CLIENTS = 8;

let desk: Desk;
let server: ServerProcess;
let token: string;
const at = (...parts: string[]) => join(desk.cwd, ...parts);

beforeAll(async () => {
  desk = openDesk();
  server = await desk.serve();
  token = readFileSync(at("gatehouse-data", "admin.token"), "utf8").trim();
  await desk.call(server, token, "POST", "/v1/agents", AGENT);
  await desk.out(["workspace", "create", "other"]);
});
afterAll(() => desk.clear());

/** Dispatches tasks and changes an agent, until the signal. @returns the number of answered calls */
async function write(signal: AbortSignal): Promise<number> {
  let answered = 0;
  while (!signal.aborted) {
    const task = await desk.call(server, token, "POST", "/v1/tasks", {
      ...{ agent: AGENT.name, tier: 1, prompt: `What is in ${"x".repeat(answered % 5_000)}?` },
    });
    expect(task.status).toBe(202);
    await task.text();
    const changed = await desk.call(server, token, "PATCH", `/v1/agents/${AGENT.name}`, {
      description: `${answered}`,
    });
    expect([200, 412]).toContain(changed.status);
    await changed.text();
    answered += 2;
  }
  return answered;
}

async function backedUpAndRestored(index: number) {
  const dataDir = at("gatehouse-data");
  const made = await makeBackup({
    ...{ dataDir, workFolder: desk.cwd, withSecrets: true },
    ...{ now: new Date(), signal: new AbortController().signal, progress() {} },
  });
  const file = new Blob([Buffer.concat(await Array.fromAsync(made.bytes))]);
  made.close();
  const directory = at(`restored-${index}`);
  mkdirSync(directory);
  const manifest = await unpackBackup({ file, directory, progress() {} });
  const secretKey = findSecretKey({ masterKey: undefined, dataDir: directory });
  const path = databasePath(directory);
  const trust = { keys: [], checkpoints: [] };
  const { verdict, findings, ledgers } = await verifyDirectory(
    { path, trust, workspace: null, secretKey },
    tools,
  );
  const all = [...findings, ...ledgers.flatMap((ledger) => ledger.findings)];
  return { verdict, findings: all, entries: manifest.ledgers[0]?.entries ?? 0 };
}

describe("a server under write load", () => {
  test(`is backed up ${BACKUPS} times, and each backup verifies`, async () => {
    const stop = new AbortController();
    const clients = Array.from({ length: CLIENTS }, () => write(stop.signal));
    let before = 0;
    for (let index = 0; index < BACKUPS; index++) {
      const { verdict, findings, entries } = await backedUpAndRestored(index);
      expect({ verdict, findings }).toEqual({ verdict: "holds", findings: [] });
      expect(entries).toBeGreaterThan(before);
      before = entries;
    }
    stop.abort();
    const answered = (await Promise.all(clients)).reduce((total, count) => total + count, 0);
    expect(answered).toBeGreaterThan(BACKUPS);
    // A log that is read for a backup is no write by another program.
    const ready = await fetch(`${server.url}/readyz`);
    expect(ready.status).toBe(200);
  });

  test("records in the ledgers of all workspaces that its operator makes one", async () => {
    await desk.out(["backup", "b.tar", "--with-keys"]);
    for (const workspace of ["default", "other"]) {
      const own = (
        await desk.out(["token", "create", "--name", "t", "--scope", "admin", "--workspace", workspace])
      ).trim();
      const entries = await entriesOf(desk, server, own, "?action=store.backup");
      expect(entries).toMatchObject([
        {
          outcome: "succeeded",
          actor: expect.stringMatching(/^user:/),
          detail: { file: "b.tar", with_keys: 1 },
        },
      ]);
    }
    // The backup has its own entry.
    await desk.out(["restore", "b.tar", "--data", "new"]);
    const restored = await desk.serve(["--data", "new"]);
    const entries = await entriesOf(desk, restored, token, "?action=store.backup");
    expect(entries).toHaveLength(1);
  });

  test("can only be said to be backed up by its operator", async () => {
    const answer = await desk.call(server, token, "POST", "/operator/backups", {
      file: "x",
      with_keys: false,
    });
    expect(answer.status).toBe(404);
  });
});
