/**
 * The server is killed at any moment while documents are added, changed and deleted. What it acknowledged is
 * complete; the rest is complete or absent.
 */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { chainFaults } from "../ledger/support.ts";
import { type ServerProcess, serve, serveBriefly, tempDir } from "../support/process.ts";
import { readFile, seeded } from "./support.ts";
import { vaultFaults } from "./vault-support.ts";

setDefaultTimeout(180_000);

const ROUNDS = 9;
const DOCUMENTS_A_ROUND = 14;
const random = seeded(20_261_125);

/** A document from its writer's point of view. */
interface Known {
  /** Null if its first write was never acknowledged. */
  id: string | null;
  /** The texts that it may have according to the acknowledgements; null means that the document does not exist. */
  may: (string | null)[];
  /** Whether a call about it is in progress, or its answer was lost. */
  isOpen: boolean;
}

const directory = tempDir();
const data = join(directory.path, "gatehouse-data");
const known: Known[] = [];
const tried = new Set<string>();
const answered = { written: 0, replaced: 0, removed: 0, lost: 0 };
const answers = () => answered.written + answered.replaced + answered.removed;
let count = 0;
const listed: { id: string; text: string; content_hash: string }[] = [];
const found = new Map<string, string | undefined>();
const faultsAfterStart: string[][] = [];

/** Every third text is long: about a hundred passages, written in many slices. */
function newText(): string {
  const name = `mark${count++}`;
  const paragraphs = count % 3 === 0 ? 120 : 1;
  const text = Array.from(
    { length: paragraphs },
    (_, n) =>
      `${name} stands in paragraph ${n}. ${Array.from({ length: 50 }, (_, w) => `${name}w${w}`).join(" ")}`,
  ).join("\n\n");
  tried.add(text);
  return text;
}

function call(server: ServerProcess, method: string, path: string, body?: object): Promise<Response> {
  const token = readFileSync(join(data, "admin.token"), "utf8").trim();
  return fetch(server.url + path, {
    method,
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
}

async function writeOne(server: ServerProcess, document: Known): Promise<void> {
  const text = newText();
  const before = document.may;
  document.may = [...before, text];
  document.isOpen = true;
  const id = document.id === null ? {} : { id: document.id };
  const scope = `shelf${Math.floor(random() * 4)}`;
  const body = { ...id, title: text.slice(0, 8), text, scope, metadata: { mark: text.slice(0, 8) } };
  try {
    const response = await call(server, "POST", "/v1/vault/documents", body);
    if (response.status !== 201 && response.status !== 200) throw new Error(String(response.status));
    document.id = ((await response.json()) as { id: string }).id;
    document.may = [text];
    if (response.status === 201) answered.written++;
    else answered.replaced++;
    document.isOpen = false;
  } catch {
    answered.lost++;
  }
}

async function removeOne(server: ServerProcess, document: Known): Promise<void> {
  document.isOpen = true;
  document.may = [...document.may, null];
  try {
    const response = await call(server, "DELETE", `/v1/vault/documents/${document.id}`);
    if (response.status !== 204 && response.status !== 404) throw new Error(String(response.status));
    document.may = [null];
    answered.removed++;
    document.isOpen = false;
  } catch {
    answered.lost++;
  }
}

async function doSomething(server: ServerProcess): Promise<void> {
  await Bun.sleep(random() * 250);
  const old = known.filter(({ id, isOpen, may }) => id !== null && !isOpen && !may.includes(null));
  const luck = random();
  const chosen = old[Math.floor(random() * old.length)];
  if (chosen && luck < 0.35) return writeOne(server, chosen);
  if (chosen && luck < 0.55) return removeOne(server, chosen);
  const document: Known = { id: null, may: [null], isOpen: true };
  known.push(document);
  return writeOne(server, document);
}

beforeAll(async () => {
  mkdirSync(data, { mode: 0o700 });
  writeFileSync(join(data, "gatehouse.yaml"), "limits: { requests_per_minute: 1000000 }");
  const options = { cwd: directory.path };
  for (let round = 0; round < ROUNDS; round++) {
    const server = await serve([], options);
    // Killed with some calls answered, some in progress and some not begun, however fast this machine is.
    const enough = answers() + 5 + Math.floor(random() * 5);
    const spread = Array.from({ length: DOCUMENTS_A_ROUND }, () => doSomething(server));
    while (answers() < enough) await Bun.sleep(1);
    await Bun.sleep(random() * 25);
    await server.end("SIGKILL");
    await Promise.all(spread);
    // A document whose answer was lost is left alone afterwards, because either of its texts may be there.
    if (round % 3 === 1) await serveBriefly(200 + random() * 300, options);
    if (round % 3 === 2) {
      const next = await serve([], options);
      await call(next, "GET", "/v1/vault/documents");
      expect(await next.end("SIGTERM")).toBe(0);
      faultsAfterStart.push(vaultFaults(join(data, "gatehouse.db")));
    }
  }
  const last = await serve([], options);
  for (let cursor: string | null = ""; cursor !== null; ) {
    const query: string = cursor === "" ? "" : `&cursor=${cursor}`;
    const page = (await (await call(last, "GET", `/v1/vault/documents?limit=200${query}`)).json()) as {
      data: { id: string }[];
      next_cursor: string | null;
    };
    for (const { id } of page.data) {
      listed.push(
        (await (await call(last, "GET", `/v1/vault/documents/${id}`)).json()) as (typeof listed)[number],
      );
    }
    cursor = page.next_cursor;
  }
  for (const { text } of listed) {
    const query = text.slice(0, text.indexOf(" "));
    const response = await call(last, "POST", "/v1/vault/search", { query, mode: "keyword", top_k: 1 });
    const body = (await response.json()) as { results: { document_id: string }[] };
    found.set(text, body.results[0]?.document_id);
  }
  expect(await last.end("SIGTERM")).toBe(0);
});

afterAll(() => directory.remove());

describe("after every crash", () => {
  test("enough documents were acknowledged, and enough were lost, to be meaningful", () => {
    expect(answers()).toBeGreaterThanOrEqual(ROUNDS * 5);
    expect(answered.written).toBeGreaterThan(ROUNDS);
    expect(answered.lost).toBeGreaterThan(0);
    expect(answered.replaced + answered.removed).toBeGreaterThan(0);
  });

  test("each acknowledged document is there with its text, and each removed one is gone", () => {
    const texts = new Map(listed.map(({ id, text }) => [id, text]));
    for (const { id, may } of known) {
      if (id !== null) expect(may).toContain(texts.get(id) ?? null);
    }
  });

  test("each document is complete: its text was sent, matches its hash, and is found by its words", () => {
    for (const { id, text, content_hash } of listed) {
      expect(tried.has(text)).toBe(true);
      expect(content_hash).toBe(new Bun.CryptoHasher("sha256").update(text).digest("hex"));
      expect(found.get(text)).toBe(id);
    }
  });

  test("each row of the vault has its document, and each document its index and its vector", () => {
    expect(faultsAfterStart).toEqual(Array(faultsAfterStart.length).fill([]));
    expect(vaultFaults(join(data, "gatehouse.db"))).toEqual([]);
  });

  test("no file contains any part of removed texts", () => {
    const there = new Set(listed.map(({ text }) => text));
    const bytes = readFileSync(join(data, "gatehouse.db"));
    const gone = [...tried].filter((text) => !there.has(text));
    expect(gone.length).toBeGreaterThan(0);
    expect(gone.filter((text) => bytes.includes(text.slice(0, 60)))).toEqual([]);
  });

  test("the ledger's chain is intact", () => {
    expect(chainFaults(readFile(join(data, "gatehouse.db")).rows)).toEqual([]);
  });
});
