import { join } from "node:path";
import { systemRandom } from "../../src/base/ids.ts";
import { silentLog } from "../../src/base/log.ts";
import type { EntryDraft } from "../../src/ledger/entry.ts";
import { nodeHeadStore } from "../../src/ledger/heads/open-node-heads.ts";
import { SigningKeyFile } from "../../src/ledger/keys/file.ts";
import { openChains } from "../../src/ledger/open-chains.ts";
import { openSqlite } from "../../src/store/sqlite/open.ts";
import { FakeClock } from "../support/clock.ts";
import { startGateway, type TestGateway, type TestGatewayOptions } from "../support/gateway.ts";
import { tempDir } from "../support/process.ts";
import { sealsOf } from "../support/seals.ts";

export interface Entry {
  readonly seq: number;
  readonly action: string;
  readonly agent: string | null;
  readonly detail: Record<string, unknown> | null;
  readonly [field: string]: unknown;
}

export interface Ledgered {
  readonly path: string;
  /** Starts a gateway on the directory, with the clock by which its entries were written. */
  start(options?: TestGatewayOptions): Promise<TestGateway>;
  readonly clock: FakeClock;
  remove(): void;
}

/** A data directory whose workspace `default` has this many entries, 256 a minute, before a gateway opens it. */
export async function ledgerOf(
  count: number,
  draft: (index: number) => Partial<EntryDraft> = () => ({}),
): Promise<Ledgered> {
  const directory = tempDir();
  const clock = new FakeClock();
  const start = (options?: TestGatewayOptions) =>
    startGateway({ dataDir: directory.path, clock, isOnFiles: true, ...options });
  await (await start()).stop();
  const db = openSqlite(join(directory.path, "gatehouse.db"), { seals: sealsOf(directory.path) });
  const workspace = await db.get<{ id: number }>("SELECT id FROM workspaces WHERE name = 'default'");
  const { ledger } = await openChains({
    ...{
      db,
      headStore: nodeHeadStore,
      keyStore: new SigningKeyFile(directory.path),
      clock,
      random: systemRandom,
      log: silentLog,
    },
    workspaces: () => [{ id: workspace?.id ?? 0, name: "default" }],
    nameOf: () => "default",
  });
  for (let from = 0; from < count; from += 256) {
    await Promise.all(
      Array.from({ length: Math.min(256, count - from) }, (_, index) =>
        ledger.record(workspace?.id ?? 0, {
          phase: "single",
          action: "test.note",
          outcome: "succeeded",
          channel: "system",
          actor: "system",
          detail: { note: "n".repeat(300) },
          ...draft(from + index),
        }),
      ),
    );
    clock.advance(60_000);
  }
  await db.close();
  return { path: directory.path, start, clock, remove: directory.remove };
}

/** Every entry that a filter selects, as the JSON lists show it. `query` begins with `&`. */
export async function listed(gateway: TestGateway, query = ""): Promise<Entry[]> {
  const entries: Entry[] = [];
  for (let cursor: string | null = ""; cursor !== null; ) {
    const more: string = cursor === "" ? "" : `&cursor=${cursor}`;
    const { body } = await gateway.call("GET", `/v1/ledger?limit=200${query}${more}`);
    entries.push(...body.data);
    cursor = body.next_cursor;
  }
  return entries;
}

export function linesOf(text: string): Entry[] {
  return text
    .split("\n")
    .slice(0, -1)
    .map((line) => JSON.parse(line) as Entry);
}
