import { afterAll, afterEach, beforeAll, beforeEach } from "bun:test";
import { databasePath } from "../../src/store/directory.ts";
import { openSqlite } from "../../src/store/sqlite/open.ts";
import { readFile } from "../faults/support.ts";
import { accounts } from "../ledger/payload-support.ts";
import { chainFaults } from "../ledger/support.ts";
import { FakeClock } from "../support/clock.ts";
import { type FakeModel, startFakeModel } from "../support/fake-model.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { tempDir } from "../support/process.ts";
import { sealsOf } from "../support/seals.ts";
import { leftovers } from "../vault/files-support.ts";
import { ledger, run, yamlOf } from "./support.ts";

export const HOUR_MS = 3_600_000;

export const DAY_MS = 24 * HOUR_MS;

const ARGUMENT = "Antarctica/Troll";

export const TIME = { name: "time__now", arguments: { time_zone: ARGUMENT } };

export let clock: FakeClock;

export let upstream: FakeModel;

export let directory: ReturnType<typeof tempDir>;

export let gateway: TestGateway;

let isOpen = false;

/** Starts a gateway on the test's directory, with one agent. */
export async function start(more = ""): Promise<void> {
  const yaml = yamlOf(upstream.url, { tiers: { 1: ["a"] }, timeoutMs: 3_600_000 }) + more;
  gateway = await startGateway({ isOnFiles: true, clock, yaml, dataDir: directory.path });
  isOpen = true;
  if ((await gateway.call("GET", "/v1/agents/scout")).status === 404) await gateway.agent("scout");
}

export async function stop(): Promise<void> {
  isOpen = false;
  await gateway.stop();
}

export const task = (prompt: string) => run(gateway, { agent: "scout", prompt, tools: ["time.now"] });

export const left = (...texts: string[]) =>
  leftovers(gateway.dataDir, Object.fromEntries(texts.map((t) => [t, t])));

export const expired = async (token?: string) =>
  (await ledger(gateway, token)).filter(({ action }) => action === "payload.expire");

/** Stops the gateway and returns what is wrong with the store that it leaves; then another gateway starts. */
export async function faults(): Promise<unknown> {
  const { dataDir } = gateway;
  await stop();
  const { rows, integrity } = readFile(databasePath(dataDir));
  const db = openSqlite(databasePath(dataDir), { seals: sealsOf(dataDir) });
  const chains = Map.groupBy(rows, ({ workspace_id }) => workspace_id);
  const chain = [...chains.values()].flatMap(chainFaults);
  const found = { integrity, chain, accounts: await accounts(db) };
  await db.close();
  await start();
  return found;
}

export const SOUND = { integrity: [{ integrity_check: "ok" }], chain: [], accounts: [] };

export function script(model: FakeModel = upstream): void {
  model.script("a", ({ body }) => {
    const [last, first] = [body.messages.at(-1), body.messages.find(({ role }) => role === "user")];
    return last?.role === "tool"
      ? { chunks: ["Answer to ", String(first?.content)] }
      : { chunks: ["Looking. "], toolCalls: [TIME] };
  });
}

/** Continues in another directory. Returns the previous one. */
export function newDirectory(): ReturnType<typeof tempDir> {
  const before = directory;
  directory = tempDir();
  return before;
}

/** A clock and an upstream for the tests of a file, and a directory for each of them. */
export function useDirectory(): void {
  // Files share this module.
  beforeAll(() => {
    clock = new FakeClock();
    upstream = startFakeModel();
  });
  beforeEach(() => {
    directory = tempDir();
  });
  afterEach(async () => {
    if (isOpen) await stop();
    directory.remove();
  });
  afterAll(() => upstream.close());
}
