/**
 * The notes and trees of Go's checksum database check what this program produces, and the other way round: two
 * implementations that share no code. A separate part of `scripts/test`, because it needs Go.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import fc from "fast-check";
import { formatNote } from "../../../src/ledger/proof/note.ts";
import type { Proofs } from "../../../src/ledger/reading/proofs.ts";
import { startGateway, type TestGateway } from "../../support/gateway.ts";
import { variedDraft } from "../kept.ts";
import { testSigner } from "../proof/signing.ts";
import { type LedgerBench, openLedger } from "../support.ts";
import { ourVerdicts } from "./ours.ts";
import { buildGoProgram, type Consistency, type GoProgram, type Inclusion } from "./program.ts";

fc.configureGlobal({ ...fc.readConfigureGlobal(), seed: 7 });

/** More entries than five blocks of tiles hold. */
const ENTRIES = 1_400;
const BORDERS = [
  1,
  2,
  3,
  254,
  255,
  256,
  257,
  511,
  512,
  513,
  1_023,
  1_024,
  1_025,
  1_279,
  1_280,
  1_281,
  1_399,
  ENTRIES,
];
/** Some hundred sizes: all small ones, those around boundaries, and every seventeenth. */
const SIZES = [
  ...new Set([
    ...Array.from({ length: 130 }, (_, n) => n + 1),
    ...BORDERS,
    ...Array.from({ length: ENTRIES / 17 }, (_, n) => (n + 1) * 17),
  ]),
].sort((a, b) => a - b);

let go: GoProgram;
let bench: LedgerBench;
let proofs: Proofs;
let verifierKey: string;
let entries: string[];
/** Notes by size of the tree. */
let notes: Map<number, string>;
let inclusions: Inclusion[];
let consistencies: Consistency[];

const base64 = (bytes: Uint8Array) => Buffer.from(bytes).toString("base64");

beforeAll(async () => {
  go = await buildGoProgram();
  bench = await openLedger();
  await Promise.all(
    Array.from({ length: ENTRIES }, (_, n) =>
      bench.ledger.record(1, { ...variedDraft(n), code: `ünïcödé 🚪 ${n}` }),
    ),
  );
  entries = bench.rows().map(({ bytes }) => base64(Buffer.from(bytes)));
  verifierKey = bench.keys.verifierKeys("w1").current;
  proofs = bench.proofs;
  notes = new Map();
  for (const size of SIZES) notes.set(size, (await proofs.head(1, size)).note);
  inclusions = [];
  consistencies = [];
  for (const [at, size] of SIZES.entries()) {
    for (const seq of new Set([1, Math.ceil(size / 2), size - 1, size])) {
      if (seq > 0) inclusions.push(await inclusionOf(seq, size));
    }
    for (const from of new Set([SIZES[0], SIZES[at >> 1], SIZES[at - 1], size])) {
      if (from !== undefined) consistencies.push(await consistencyOf(from, size));
    }
  }
});

afterAll(async () => {
  go?.remove();
  await bench?.close();
});

async function inclusionOf(seq: number, size: number): Promise<Inclusion> {
  const proof = await proofs.inclusion(1, seq, size);
  if (!proof) throw new Error(`there is no proof of ${seq} in ${size}`);
  return {
    entry: entries[seq - 1] ?? "",
    index: seq - 1,
    checkpoint: proof.head.note,
    proof: proof.inclusion.map(base64),
  };
}

async function consistencyOf(from: number, to: number): Promise<Consistency> {
  const proof = await proofs.consistency(1, from, to);
  if (!proof) throw new Error(`there is no proof from ${from} to ${to}`);
  return { older: noteOf(from), newer: proof.head.note, proof: proof.consistency.map(base64) };
}

function noteOf(size: number): string {
  const note = notes.get(size);
  if (note === undefined) throw new Error(`there is no note of ${size}`);
  return note;
}

const good = (things: readonly unknown[]) => things.map(() => "good" as const);

describe("Go refuses, as this program does,", () => {
  test("every proof in which anything was changed", async () => {
    const other = base64(new Uint8Array(32).fill(7));
    const changes = (proof: readonly string[], at: number) => [
      [...proof, other],
      [other, ...proof],
      proof.toSpliced(at, 1),
      proof.with(at, other),
      proof.with(at, base64(Buffer.from(proof[at] ?? "", "base64").subarray(1))),
      proof.with(at, proof[(at + 1) % proof.length] ?? ""),
    ];
    const [wrongInclusions, wrongConsistencies]: [Inclusion[], Consistency[]] = [[], []];
    for (const [n, given] of inclusions.entries()) {
      if (n % 5 > 0 || given.proof.length < 2) continue;
      const others = changes(given.proof, n % given.proof.length).map((proof) => ({ ...given, proof }));
      wrongInclusions.push(
        ...others,
        { ...given, index: given.index + 1 },
        { ...given, index: given.index - 1 },
        { ...given, index: -1 },
        { ...given, entry: base64(Buffer.from("another")) },
        { ...given, checkpoint: noteOf(1) },
      );
    }
    for (const [n, given] of consistencies.entries()) {
      if (n % 5 > 0 || given.proof.length < 2) continue;
      const others = changes(given.proof, n % given.proof.length).map((proof) => ({ ...given, proof }));
      wrongConsistencies.push(
        ...others,
        { ...given, older: given.newer, newer: given.older },
        { ...given, newer: noteOf(2) },
        { ...given, older: noteOf(2), newer: noteOf(1) },
      );
    }
    expect(wrongInclusions.length + wrongConsistencies.length).toBeGreaterThan(1_000);
    const check = {
      verifierKeys: [verifierKey],
      notes: [],
      inclusions: wrongInclusions,
      consistencies: wrongConsistencies,
    };
    const { check: theirs } = await go.ask({ check });
    const refused = (things: readonly unknown[]) => things.map(() => "refused" as const);
    expect(theirs.inclusions).toEqual(refused(wrongInclusions));
    expect(theirs.consistencies).toEqual(refused(wrongConsistencies));
    expect(await ourVerdicts(check)).toEqual({ ...theirs, notes: [] });
  });

  test("checkpoints of other keys, and of no key", async () => {
    const [namesake, stranger] = [
      testSigner(verifierKey.split("+")[0] ?? "", 1),
      testSigner("stranger.example", 2),
    ];
    const check = {
      notes: [noteOf(1), noteOf(256)],
      verifierKeys: [namesake.verifierKey, stranger.verifierKey],
    };
    const { check: theirs } = await go.ask({ check });
    expect(theirs.notes).toEqual(["unsigned", "unsigned"]);
    expect((await ourVerdicts(check)).notes).toEqual(theirs.notes);
  });

  test("notes that were changed in one place, in any way", async () => {
    const CHARACTERS = [
      "\n",
      "\r",
      "\0",
      "\t",
      " ",
      "+",
      "=",
      "—",
      "A",
      "é",
      "🚪",
      "\u0085",
      "\u00a0",
      "\ufeff",
      "\u2028",
    ];
    const note = noteOf(257);
    const edit = fc.record({
      at: fc.integer({ min: 0, max: note.length }),
      gone: fc.integer({ min: 0, max: 2 }),
      put: fc.array(fc.constantFrom(...CHARACTERS), { maxLength: 2 }),
    });
    const edited = fc
      .sample(edit, { numRuns: 4_000, seed: 7 })
      .map(({ at, gone, put }) => `${note.slice(0, at)}${put.join("")}${note.slice(at + gone)}`);
    const check = { verifierKeys: [verifierKey], notes: [note, ...edited] };
    const { check: theirs } = await go.ask({ check });
    const { notes: ours } = await ourVerdicts(check);
    const different = check.notes.filter((_, n) => theirs.notes?.[n] !== ours?.[n]);
    // Go accepts base64 with unused bits set, of which several forms exist. This program does not.
    const strict = different.filter(isCanonical);
    expect(strict).toEqual([]);
    const kinds = ["good", "refused", "unsigned"] as const;
    for (const kind of kinds) expect(theirs.notes).toContain(kind);
  });

  function isCanonical(note: string): boolean {
    const value = note.trimEnd().split(" ").at(-1) ?? "";
    return Buffer.from(value, "base64").toString("base64") === value;
  }
});

describe("Go accepts this program's", () => {
  test(`checkpoints and proofs of ${SIZES.length} sizes`, async () => {
    expect(SIZES.length).toBeGreaterThan(200);
    expect(inclusions.length).toBeGreaterThan(500);
    expect(consistencies.length).toBeGreaterThan(500);
    const check = {
      verifierKeys: [verifierKey],
      notes: [...notes.values(), (await proofs.head(1, 0)).note],
      inclusions,
      consistencies,
    };
    const { check: theirs } = await go.ask({ check });
    expect(theirs.notes).toEqual(good(check.notes));
    expect(theirs.inclusions).toEqual(good(inclusions));
    expect(theirs.consistencies).toEqual(good(consistencies));
    expect(await ourVerdicts(check)).toEqual(theirs);
  });

  test("notes with several signatures, whichever of their keys is known", async () => {
    const signers = [testSigner("a.example/ö", 1), testSigner("a.example/ö", 2), testSigner("b.example", 3)];
    const text = "a text\n\nof several parts\n";
    const note = formatNote({ text, signatures: signers.map((signer) => signer.sign(text)) });
    for (const { verifierKey } of signers) {
      expect((await go.ask({ check: { verifierKeys: [verifierKey], notes: [note] } })).check.notes).toEqual([
        "good",
      ]);
    }
  });
});

test("Go's results for the same entries equal this program's, and its checkpoints and proofs are accepted", async () => {
  const origin = "go.example/log";
  const indexes = inclusions.map(({ index, checkpoint }) => [index, sizeOf(checkpoint)] as const);
  const pairs = consistencies.map(({ older, newer }) => [sizeOf(older), sizeOf(newer)] as const);
  const { make } = await go.ask({
    make: { origin, entries, sizes: SIZES, inclusions: indexes, consistencies: pairs },
  });
  const theirs = new Map(SIZES.map((size, n) => [size, make.checkpoints?.[n] ?? ""]));
  const rootLine = (note: string) => note.split("\n")[2];
  expect(SIZES.map((size) => rootLine(theirs.get(size) ?? ""))).toEqual(
    SIZES.map((size) => rootLine(noteOf(size))),
  );
  expect(make.inclusions?.map((proof) => proof ?? [])).toEqual(inclusions.map(({ proof }) => [...proof]));
  expect(make.consistencies?.map((proof) => proof ?? [])).toEqual(
    consistencies.map(({ proof }) => [...proof]),
  );
  const verdicts = await ourVerdicts({
    verifierKeys: [make.verifierKey],
    notes: make.checkpoints ?? [],
    inclusions: indexes.map(([index, size], n) => ({
      entry: entries[index] ?? "",
      index,
      checkpoint: theirs.get(size) ?? "",
      proof: make.inclusions?.[n] ?? [],
    })),
    consistencies: pairs.map(([from, to], n) => ({
      older: theirs.get(from) ?? "",
      newer: theirs.get(to) ?? "",
      proof: make.consistencies?.[n] ?? [],
    })),
  });
  expect(verdicts).toEqual({ notes: good(SIZES), inclusions: good(indexes), consistencies: good(pairs) });
});

function sizeOf(note: string): number {
  return Number(note.split("\n")[1]);
}

describe("over REST, as an auditor requests them", () => {
  let gateway: TestGateway;

  beforeAll(async () => {
    gateway = await startGateway();
    await Promise.all(Array.from({ length: 300 }, () => gateway.call("GET", "/v1/agents")));
  });

  afterAll(() => gateway?.stop());

  const get = async (path: string) => (await gateway.call("GET", path)).body;

  test("Go accepts each entry's bytes, its proof and its checkpoint", async () => {
    const { vkey } = await get("/v1/ledger/key");
    const inclusions = await Promise.all(
      [1, 2, 3, 100, 255, 256, 257, 299].map(async (seq) => {
        const { checkpoint, inclusion } = await get(`/v1/ledger/${seq}/proof`);
        const { bytes } = await get(`/v1/ledger/${seq}`);
        return { entry: bytes, index: seq - 1, checkpoint, proof: inclusion };
      }),
    );
    const older = (await gateway.call("GET", "/v1/ledger/checkpoint")).body;
    const newer = await get(`/v1/ledger/consistency?from=${sizeOf(older)}`);
    expect(sizeOf(newer.checkpoint)).toBeGreaterThan(sizeOf(older));
    const consistencies = [{ older, newer: newer.checkpoint, proof: newer.consistency }];
    const { check } = await go.ask({
      check: { verifierKeys: [vkey], notes: [older], inclusions, consistencies },
    });
    expect(check).toEqual({ notes: ["good"], inclusions: good(inclusions), consistencies: ["good"] });
  });

  test("Go accepts signatures from before a change of keys, and from after it", async () => {
    const older = (await gateway.call("GET", "/v1/ledger/checkpoint")).body;
    const operator = { token: gateway.gateway.operatorSecret, headers: { "gatehouse-operator": "ada" } };
    expect((await gateway.call("POST", "/operator/ledger/rotate-key", operator)).status).toBe(200);
    const { vkey, former_vkeys } = await get("/v1/ledger/key");
    const { checkpoint, consistency } = await get(`/v1/ledger/consistency?from=${sizeOf(older)}`);
    const consistencies = [{ older, newer: checkpoint, proof: consistency }];
    const ask = async (verifierKeys: string[]) =>
      (await go.ask({ check: { verifierKeys, consistencies } })).check.consistencies;
    expect(await ask([vkey, ...former_vkeys])).toEqual(["good"]);
    expect(await ask([vkey])).toEqual(["unsigned"]);
  });
});
