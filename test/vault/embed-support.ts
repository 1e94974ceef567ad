import { afterEach, beforeEach } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Log } from "../../src/base/log.ts";
import { FakeClock } from "../support/clock.ts";
import { type FakeEmbeddings, startFakeEmbeddings } from "../support/fake-embeddings.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { until } from "../tasks/support.ts";
import { openFile } from "./files-support.ts";

export let clock: FakeClock;

export let dataDir: string;

export let one: FakeEmbeddings;

export let two: FakeEmbeddings;

export let gateway: TestGateway | null;

export let logged: { level: string; message: string }[];

const record =
  (level: string) =>
  (message: string): void =>
    void logged.push({ level, message });

const log: Log = {
  debug: record("debug"),
  info: record("info"),
  warn: record("warn"),
  error: record("error"),
};

export async function stop(): Promise<void> {
  await gateway?.stop();
  gateway = null;
}

/** Replaces the first upstream by one with vectors of another dimension. */
export async function changeDimension(dims: number): Promise<void> {
  await one.stop();
  one = startFakeEmbeddings({ dims });
}

/**
 * Stops the running gateway and starts another. `model` null means the default; `providers` are the configured ones.
 */
export async function start(
  model: string | null,
  providers: readonly string[] = ["one", "two"],
): Promise<TestGateway> {
  await stop();
  const urls: Record<string, string> = { one: one.baseUrl, two: two.baseUrl };
  const yaml = [
    "providers:",
    ...providers.map((name) => `  ${name}: { kind: openai-compatible, base_url: "${urls[name]}" }`),
    'tiers: { 1: { models: ["builtin/extractive"] } }',
    "limits: { requests_per_minute: 1000000 }",
    ...(model === null ? [] : [`embeddings: { model: ${model} }`]),
  ].join("\n");
  gateway = await startGateway({ isOnFiles: true, dataDir, yaml, clock, log });
  return gateway;
}

interface SpaceRow {
  readonly name: string;
  readonly state: string;
  readonly dimensions: number;
  readonly vectors: number;
  readonly pending: number;
}

export function spaces(): SpaceRow[] {
  const file = openFile(dataDir);
  try {
    return file
      .query<Omit<SpaceRow, "vectors">, []>(
        `SELECT id, name, state, dimensions,
           (SELECT count(*) FROM vault_pending AS p WHERE p.space_id = s.id) AS pending
         FROM vault_spaces AS s ORDER BY id`,
      )
      .all()
      .map(({ name, ...row }) => {
        const { id, ...rest } = row as typeof row & { id: number };
        const vectors =
          rest.dimensions === 0
            ? 0
            : (file.query<{ n: number }, []>(`SELECT count(*) AS n FROM vault_vectors_${id}`).get()?.n ?? -1);
        return { name: name.split("|")[0] ?? "", ...rest, vectors };
      });
  } finally {
    file.close();
  }
}

export const active = () => spaces().find(({ state }) => state === "active");

/** Advances the clock in steps until the condition is true. Requests over the network are real. */
export const waitFor = (condition: () => boolean | Promise<boolean>, step = 1_000) =>
  until(() => {
    clock.advance(step);
    return condition();
  });

/** Advances the clock while a call waits for a failing model. */
export async function passing<T>(work: Promise<T>): Promise<T> {
  let isOver = false;
  void work
    .catch(() => {})
    .finally(() => {
      isOver = true;
    });
  await until(() => {
    clock.advance(500);
    return isOver;
  });
  return work;
}

export const texts = () => one.requests.flatMap(({ input }) => input);

/** Two upstreams and a data directory for each test of a file. */
export function useGateway(): void {
  beforeEach(() => {
    clock = new FakeClock();
    dataDir = mkdtempSync(join(tmpdir(), "gatehouse-embed-"));
    one = startFakeEmbeddings({ dims: 64 });
    two = startFakeEmbeddings({ dims: 32 });
    logged = [];
    gateway = null;
  });
  afterEach(async () => {
    await stop();
    await one.stop();
    await two.stop();
    rmSync(dataDir, { recursive: true, force: true });
  });
}
