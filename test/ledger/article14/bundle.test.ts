import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createPublicKey, verify as verifyEd25519 } from "node:crypto";
import { parse } from "csv-parse/sync";
import { unzipSync } from "fflate";
import { BUNDLE_FILES } from "../../../src/ledger/article14/format/files.ts";
import { parseManifest } from "../../../src/ledger/article14/format/manifest.ts";
import { LedgerChanged } from "../../../src/ledger/ledger-changed.ts";
import { rootOfInclusion } from "../../../src/ledger/proof/check.ts";
import { parseSignedCheckpoint } from "../../../src/ledger/proof/checkpoint.ts";
import { parseVerifierKey, signersOf } from "../../../src/ledger/proof/note.ts";
import { nodesOf } from "../../../src/ledger/proof/ranges.ts";
import { GrowingTree } from "../../../src/ledger/proof/tree.ts";
import { sha256, TREE } from "../../../src/ledger/tree-hash.ts";
import { tools } from "../../../src/ledger/verify/tools.ts";
import { draft, type Row } from "../support.ts";
import { Unpacked, verify } from "../verify/bundle/support.ts";
import { type BundleBench, openBench, story, WORKSPACE } from "./support.ts";

let bench: BundleBench;
let rows: readonly Row[];
let bundle: Unpacked;

beforeAll(async () => {
  bench = await openBench();
  await story(bench, 14);
  await bench.ledger.record(2, draft());
  rows = bench.rows();
  bundle = await Unpacked.of(await bench.zip());
});
afterAll(() => bench.close());

const manifestOf = (from: Unpacked) => parseManifest(from.text("manifest.json"));
const linesOf = (from: Unpacked, name: string) => from.text(name).split("\n").slice(0, -1);

describe("the bundle of a whole ledger", () => {
  test("contains its files in the order in which they can be written", async () => {
    const bytes = await (await bench.zip()).bytes();
    expect(Object.keys(unzipSync(bytes))).toEqual([...BUNDLE_FILES]);
  });

  test("has the time of the export, and nothing about the machine", async () => {
    const bytes = await (await bench.zip()).bytes();
    expect(await (await bench.zip()).bytes()).toEqual(bytes);
  });

  test("has the exact bytes of every entry", () => {
    expect(linesOf(bundle, "entries.ndjson")).toEqual(rows.map(({ bytes }) => bytes));
  });

  test("has every leaf, and the hashes from them to the signed root", async () => {
    expect(linesOf(bundle, "leaves.txt")).toEqual(rows.map(({ seq, leaf }) => `${seq} ${leaf.toHex()}`));
    const tree = new GrowingTree(TREE);
    for (const { leaf } of rows) tree.append(leaf);
    const { note, checkpoint } = parseSignedCheckpoint(bundle.text("checkpoint.txt"));
    expect(checkpoint).toEqual({
      origin: bench.keys.originOf(WORKSPACE.name),
      size: rows.length,
      root: tree.root(),
    });
    const [key = ""] = linesOf(bundle, "key.txt");
    const signers = await signersOf(note, [parseVerifierKey(sha256, key)], tools.verifySignature);
    expect(signers).toHaveLength(1);
  });

  test("is signed by the ledger's key: Ed25519 over the manifest's bytes", () => {
    const { publicKey } = parseVerifierKey(sha256, manifestOf(bundle).key);
    const der = Buffer.concat([Buffer.from("302a300506032b6570032100", "hex"), publicKey]);
    const key = createPublicKey({ key: der, format: "der", type: "spki" });
    const signature = Buffer.from(bundle.text("manifest.sig"), "base64");
    expect(bundle.text("manifest.sig")).toMatch(/^[A-Za-z0-9+/]{86}==\n$/);
    expect(verifyEd25519(null, bundle.files["manifest.json"] ?? Buffer.alloc(0), key, signature)).toBe(true);
  });

  test("describes itself in its manifest, which hashes every other file", () => {
    const manifest = manifestOf(bundle);
    const { current, former } = bench.keys.verifierKeys(WORKSPACE.name);
    expect(manifest).toMatchObject({
      format: "gatehouse-article14",
      version: 1,
      origin: bench.keys.originOf("w1"),
      workspace: "w1",
      created_at: new Date(bench.clock.now()).toISOString(),
      created_by: { actor: "token:tok_auditor", person: "Grace Hopper", role: "auditor" },
      program: { name: "gatehouse" },
      range: { first: 1, last: rows.length },
      filters: {},
      counts: { total: rows.length, included: rows.length, withheld: 0 },
      tree: { size: rows.length, before: [], after: [] },
      key: current,
      retention: { payload_days: 180 },
    });
    expect(linesOf(bundle, "key.txt")).toEqual([current, ...former]);
    expect(manifest.key_changes).toHaveLength(1);
    for (const [name, bytes] of Object.entries(bundle.files)) {
      if (name === "manifest.json" || name === "manifest.sig") continue;
      expect([name, manifest.files[name as keyof typeof manifest.files]]).toEqual([
        name,
        { sha256: new Bun.CryptoHasher("sha256").update(bytes).digest("hex"), size: bytes.length },
      ]);
    }
  });

  test("calls itself supporting evidence, and never claims compliance", () => {
    for (const name of ["manifest.json", "report.html", "verify.html"]) {
      expect(bundle.text(name)).not.toMatch(/complian|complies|conforms/i);
    }
    for (const name of ["manifest.json", "report.html"]) {
      expect(bundle.text(name)).toMatch(/evidence supporting/i);
    }
  });

  test("has a row for each decision, as a spreadsheet reads it", () => {
    const decided = rows.map(({ bytes }) => JSON.parse(bytes)).filter(({ oversight }) => oversight);
    const read = parse(bundle.text("oversight.csv"), { columns: true, record_delimiter: "\r\n" });
    expect(read).toEqual(
      decided.map(({ oversight, ...entry }) => ({
        seq: String(entry.seq),
        ts: entry.ts,
        action: entry.action,
        outcome: entry.outcome,
        person: oversight.person,
        role: oversight.role ?? "",
        decision: oversight.decision,
        presented_at: oversight.presented_at ?? "",
        decided_at: oversight.decided_at ?? "",
        seconds:
          oversight.presented_at === undefined
            ? ""
            : String((Date.parse(oversight.decided_at) - Date.parse(oversight.presented_at)) / 1000),
        agent: entry.agent ?? "",
        task: entry.task ?? "",
        tool: entry.tool ?? "",
        target_seq: oversight.target_seq === undefined ? "" : String(oversight.target_seq),
        arguments_hash: oversight.arguments_hash ?? "",
        reason_hash: "",
        actor: entry.actor,
        request_id: entry.request_id ?? "",
      })),
    );
    expect(read.length).toBeGreaterThan(10);
  });

  test("has the record of each erasure, with the proof that it is in the ledger", () => {
    const lines = linesOf(bundle, "erasures.ndjson").map((line) => JSON.parse(line));
    expect(lines.map(({ payloads }) => payloads?.length)).toEqual([2]);
    for (const { seq, ts, actor, payloads, entry, inclusion } of lines) {
      expect(entry).toBe(rows[seq - 1]?.bytes);
      const said = JSON.parse(entry);
      expect({ ts, actor, payloads: payloads.join(" ") }).toEqual({
        ts: said.ts,
        actor: said.actor,
        payloads: said.detail.payloads,
      });
      const proof = inclusion.map((hash: string) => Uint8Array.fromBase64(hash));
      const root = rootOfInclusion(TREE, TREE.leaf(Buffer.from(entry)), seq - 1, rows.length, proof);
      expect(root?.toHex()).toBe(manifestOf(bundle).tree.root);
    }
  });
});

describe("a filter", () => {
  const at = (seq: number) => JSON.parse(rows[seq - 1]?.bytes ?? "{}");

  test.each([
    ["agent", { agent: "claims" }],
    ["actor", { actor: "token:tok_ada" }],
    ["action", { action: "model.call" }],
    ["tier", { tier: 2 }],
    ["two of them", { agent: "scout", action: "oversight.stop" }],
    ["one that nothing matches", { agent: "nobody" }],
  ])("%s leaves out the others, and counts them", async (_, filter) => {
    const part = await Unpacked.of(await bench.zip({ filter }));
    const expected = rows.filter(({ bytes }) => {
      const entry = JSON.parse(bytes);
      return Object.entries(filter).every(([field, value]) => entry[field] === value);
    });
    expect(linesOf(part, "entries.ndjson")).toEqual(expected.map(({ bytes }) => bytes));
    expect(linesOf(part, "leaves.txt")).toHaveLength(rows.length);
    const manifest = manifestOf(part);
    expect(manifest.filters).toEqual(filter);
    expect(manifest.counts).toEqual({
      total: rows.length,
      included: expected.length,
      withheld: rows.length - expected.length,
    });
    expect(await verify(part)).toMatchObject({ verdict: "holds", findings: [] });
  });

  test.each([
    ["from", { from: "2026-01-05T00:00:00.000Z" }],
    ["to", { to: "2026-01-05T00:00:00.000Z" }],
    ["from and to", { from: "2026-01-05T00:00:00.000Z", to: "2026-01-06T00:00:00.000Z" }],
    ["a time without entries", { from: "2026-01-05T12:00:00.001Z", to: "2026-01-05T12:00:00.002Z" }],
    ["a time before all entries", { to: "2025-01-01T00:00:00.000Z" }],
    ["a time after all entries", { from: "2027-01-01T00:00:00.000Z" }],
  ])(
    "%s limits the range, and the rest of the tree can still be proved",
    async (_, filter: { from?: string; to?: string }) => {
      const part = await Unpacked.of(await bench.zip({ filter }));
      const { from = "", to = "9" } = filter;
      const expected = rows.filter(({ seq }) => at(seq).ts >= from && at(seq).ts < to);
      const { range, counts, tree } = manifestOf(part);
      expect(linesOf(part, "entries.ndjson")).toEqual(expected.map(({ bytes }) => bytes));
      expect(counts).toEqual({ total: expected.length, included: expected.length, withheld: 0 });
      expect(range).toMatchObject({ ...filter });
      expect(range.last - range.first + 1).toBe(expected.length);
      if (expected[0]) expect(range.first).toBe(expected[0].seq);
      expect(tree.before).toHaveLength(nodesOf({ start: 0, end: range.first - 1 }).length);
      expect(tree.after).toHaveLength(nodesOf({ start: range.last, end: tree.size }).length);
      expect(await verify(part)).toMatchObject({ verdict: "holds", findings: [] });
    },
  );

  test("a period that ends before it begins is refused", async () => {
    const at = "2026-01-05T00:00:00.000Z";
    for (const from of [at, "2026-01-06T00:00:00.000Z"]) {
      const refusal = await bench.zip({ filter: { from, to: at } }).catch((error: unknown) => error);
      expect(refusal).toBeInstanceOf(RangeError);
    }
  });

  test("a bundle is not older than its entries if the clock was set back", async () => {
    const late = await openBench();
    await late.add();
    late.clock.advance(-600_000);
    const part = await Unpacked.of(await late.zip());
    expect(manifestOf(part).created_at).toBe(JSON.parse(linesOf(part, "entries.ndjson")[0] ?? "").ts);
    expect(await verify(part)).toMatchObject({ verdict: "holds", findings: [] });
    await late.close();
  });

  test("a day is named as requested", async () => {
    const part = await Unpacked.of(
      await bench.zip({
        filter: { from: "2026-01-05T00:00:00.000Z", to: "2026-01-06T00:00:00.000Z" },
        date: "2026-01-05",
      }),
    );
    expect(manifestOf(part).range.date).toBe("2026-01-05");
    expect(part.text("report.html")).toContain("2026-01-05 (UTC)");
  });

  test("an erasure of texts in the range is reported wherever its record is", async () => {
    const record = rows.find(({ bytes }) => bytes.includes('"payload.erase"'));
    const [named = ""] = at(record?.seq ?? 0).detail.payloads.split(" ");
    const target = Number(named.split(".")[0]);
    const to = at(target + 1).ts;
    const part = await Unpacked.of(await bench.zip({ filter: { from: at(target).ts, to } }));
    expect(manifestOf(part).range).toMatchObject({ first: target, last: target });
    const lines = linesOf(part, "erasures.ndjson").map((line) => JSON.parse(line));
    expect(lines).toMatchObject([{ seq: record?.seq, payloads: [named] }]);
    expect(await verify(part)).toMatchObject({ verdict: "holds", findings: [] });
    const next = await Unpacked.of(await bench.zip({ filter: { from: to, to: at(target + 2).ts } }));
    expect(next.text("erasures.ndjson")).toBe("");
  });
});

describe("a bundle", () => {
  test("of an empty ledger is valid", async () => {
    const empty = await openBench();
    const blob = await empty.zip();
    expect(await verify(blob)).toMatchObject({ verdict: "holds", findings: [] });
    expect(manifestOf(await Unpacked.of(blob)).range).toEqual({ first: 1, last: 0 });
    await empty.close();
  });

  test("of one entry is valid", async () => {
    const one = await openBench();
    await one.add({ action: "task.read" });
    expect(await verify(await one.zip())).toMatchObject({ verdict: "holds", findings: [] });
    await one.close();
  });

  test("ends where the ledger ended when the export began", async () => {
    const chunks: Uint8Array<ArrayBuffer>[] = [];
    const size = bench.rows().length;
    for await (const chunk of bench.bundle()) {
      chunks.push(new Uint8Array(chunk));
      await bench.add({ action: "task.read" });
    }
    const blob = new Blob(chunks);
    expect(manifestOf(await Unpacked.of(blob)).tree.size).toBe(size);
    expect(await verify(blob)).toMatchObject({ verdict: "holds", findings: [] });
  });

  test("at an earlier size is the same as it was then", async () => {
    const blob = await bench.zip({ size: 300 });
    expect(linesOf(await Unpacked.of(blob), "leaves.txt")).toHaveLength(300);
    expect(await verify(blob)).toMatchObject({ verdict: "holds", findings: [] });
  });

  test("contains nothing of another workspace", async () => {
    const other = await Unpacked.of(await bench.zip({ workspace: { id: 2, name: "w2" } }));
    expect(linesOf(other, "entries.ndjson")).toEqual(bench.rows(2).map(({ bytes }) => bytes));
    expect(manifestOf(other).origin).toBe(bench.keys.originOf("w2"));
  });

  test("of a changed ledger is not signed: it is cut off, and names the place", async () => {
    const changed = await openBench();
    await story(changed, 2);
    const attacker = changed.own;
    attacker.run("DROP TRIGGER ledger_no_update");
    attacker.run(
      "UPDATE ledger SET bytes = replace(bytes, 'tok_bot', 'tok_cat') WHERE workspace_id = 1 AND seq = 14",
    );
    const failed = await changed.zip().catch((error: unknown) => error);
    expect(failed).toBeInstanceOf(LedgerChanged);
    expect(failed).toMatchObject({ seq: 14 });
    await changed.close();
  });

  test("neutralises formulas in names of people", async () => {
    const hostile = await openBench();
    const names = ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "＝1", 'a","b\r\nc', "plain"];
    for (const person of names) {
      await hostile.add({ action: "oversight.stop", oversight: { person, decision: "stop" } });
    }
    const part = await Unpacked.of(await hostile.zip());
    const read: { person: string }[] = parse(part.text("oversight.csv"), {
      columns: true,
      record_delimiter: "\r\n",
    });
    expect(read.map(({ person }) => person)).toEqual(
      names.map((person, at) => (at < 7 ? `'${person}` : person)),
    );
    expect(await verify(part)).toMatchObject({ verdict: "holds", findings: [] });
    await hostile.close();
  });
});
