/** A vector that is filled in later equals the one made at writing: title and headings count in both. */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { FakeClock } from "../support/clock.ts";
import { startFakeEmbeddings } from "../support/fake-embeddings.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { longText, search, write } from "../support/vault.ts";
import { until } from "../tasks/support.ts";
import { blockLibrary, openFile } from "./files-support.ts";

/** Long enough that most passages do not contain the headings above them. */
const handbook = (name: string) =>
  [
    "# Handbook",
    ...["Refunds", "Shipment", "Warranty"].flatMap((heading) => [
      `## ${heading}`,
      `### Exceptions of ${heading}`,
      longText(`${name}${heading.slice(0, 2)}`, 8),
    ]),
  ].join("\n\n");

const QUERIES = ["refunds", "exceptions of shipment", "warranty handbook", "PRe1x1 refunds", "policies"];
const LEXICAL = "builtin/lexical";
/** A vector that is filled in may come from its segment, whose numbers are rounded to multiples of 1/127. */
const CLOSE = 0.003;

let clock: FakeClock;
const directories: string[] = [];
const running: TestGateway[] = [];

beforeEach(() => {
  clock = new FakeClock();
});

afterEach(async () => {
  for (const gateway of running.splice(0)) await gateway.stop();
  for (const directory of directories.splice(0)) rmSync(directory, { recursive: true, force: true });
});

function newDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), "gatehouse-fill-"));
  directories.push(directory);
  return directory;
}

async function start(dataDir: string, embeddings = ""): Promise<TestGateway> {
  const gateway = await startGateway({ isOnFiles: true, dataDir, clock, yaml: `limits: {}\n${embeddings}` });
  running.push(gateway);
  return gateway;
}

async function stop(gateway: TestGateway): Promise<void> {
  running.splice(running.indexOf(gateway), 1);
  await gateway.stop();
}

/** Writes two documents, so that the title makes a difference too. */
async function fill(gateway: TestGateway): Promise<void> {
  for (const title of ["Policies", "Notes"]) {
    const document = { title, text: handbook(title.slice(0, 1)), content_type: "text/markdown" };
    expect((await write(gateway, document)).chunks).toBeGreaterThan(6);
  }
}

/** The similarity of each passage to each question, by position: its score in a vector search. */
async function scored(gateway: TestGateway): Promise<Map<string, number>> {
  const scores = new Map<string, number>();
  for (const query of QUERIES) {
    const { results, mode } = await search(gateway, { query, mode: "vector", top_k: 100 });
    expect(mode).toBe("vector");
    for (const { title, start, score } of results) scores.set(`${query}: ${title} ${start}`, score);
  }
  expect(scores.size).toBe(QUERIES.length * 24);
  return scores;
}

function expectSame(filled: ReadonlyMap<string, number>, written: ReadonlyMap<string, number>): void {
  expect([...filled.keys()].toSorted()).toEqual([...written.keys()].toSorted());
  const moved = [...filled].filter(([place, score]) => Math.abs(score - (written.get(place) ?? 0)) > CLOSE);
  expect(moved).toEqual([]);
}

/** Scores from a gateway that made the vectors while writing. */
async function writtenAtOnce(): Promise<Map<string, number>> {
  const gateway = await start(newDirectory());
  await fill(gateway);
  return scored(gateway);
}

const isFilled = (directory: string) => () => {
  clock.advance(1_000);
  const file = openFile(directory);
  try {
    const sql =
      "SELECT name, (SELECT count(*) FROM vault_pending WHERE space_id = id) AS pending FROM vault_spaces WHERE state = 'active'";
    const space = file.query<{ name: string; pending: number }, []>(sql).get();
    return space?.name.startsWith(LEXICAL) === true && space.pending === 0;
  } finally {
    file.close();
  }
};

test("after a start without sqlite-vec", async () => {
  const expected = await writtenAtOnce();
  const directory = newDirectory();
  const path = blockLibrary(directory);
  let gateway = await start(directory);
  await fill(gateway);
  await stop(gateway);
  rmSync(path, { recursive: true });
  gateway = await start(directory);
  await until(isFilled(directory));
  expectSame(await scored(gateway), expected);
});

test("after a model was configured and then removed", async () => {
  const expected = await writtenAtOnce();
  const upstream = startFakeEmbeddings();
  const directory = newDirectory();
  const provider = `up: { kind: openai-compatible, base_url: "${upstream.baseUrl}" }`;
  let gateway = await start(
    directory,
    `providers:\n  ${provider}\nembeddings: { model: up/words }\ntiers: { 1: { models: [builtin/extractive] } }\n`,
  );
  await fill(gateway);
  await stop(gateway);
  await upstream.stop();
  gateway = await start(directory);
  await until(isFilled(directory));
  expectSame(await scored(gateway), expected);
});
