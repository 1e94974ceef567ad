/**
 * What is trusted: keys and checkpoints that an auditor supplies, and keys that were rotated, lost or smuggled in.
 */
import { afterEach, beforeEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { OperatorError } from "../../../src/base/errors.ts";
import {
  checkpointText,
  parseCheckpoints,
  parseSignedCheckpoint,
} from "../../../src/ledger/proof/checkpoint.ts";
import { formatNote, formatVerifierKey } from "../../../src/ledger/proof/note.ts";
import { sha256 } from "../../../src/ledger/tree-hash.ts";
import { startGateway, type TestGateway, type TestGatewayOptions } from "../../support/gateway.ts";
import { tempDir } from "../../support/process.ts";
import { STRANGER } from "./attack.ts";
import { allFindings, type Brought, type Copy, inShort, type Scene, verify, withCopies } from "./scene.ts";
import { type Row, signAs, Vandal } from "./vandal.ts";

setDefaultTimeout(60_000);

/** A workspace's first note in a checkpoint file, or its note of this many entries. */
function noteOf(file: string, workspace: string, size: number | "" = ""): string {
  const start = size === "" ? `/${workspace}\n` : `/${workspace}\n${size}\n`;
  const note = file.split(/\n\n(?!— )/).find((each) => each.includes(start));
  return `${note}\n`;
}

function afterEntry(size: number): string {
  return `whether the ledger was truncated after entry ${size}, or rewritten from there with its key: the checkpoints supplied cover no later entry; only a newer one that was kept elsewhere would (--checkpoint)`;
}

describe("what is brought along:", () => {
  let scene: Scene;
  let copy: Copy;

  withCopies((made, of) => {
    copy = made;
    scene = of;
  });

  const origin = () => scene.key.split("+")[0] ?? "";
  const elsewhere = () => `gatehouse/${"0".repeat(16)}/default`;
  /** A note about entries that this ledger does not have, signed by a stranger. */
  function foreignNote(name: string): string {
    const text = checkpointText({ origin: name, size: 100, root: new Uint8Array(32) });
    return formatNote({ text, signatures: [signAs(STRANGER)(name, text)] });
  }

  const CASES: readonly (readonly [string, () => Brought, string, readonly string[]])[] = [
    [
      "a key of this ledger that it does not have",
      () => ({ key: keyOf(origin()) }),
      "tampered",
      ["key_missing"],
    ],
    ["a key of another ledger", () => ({ key: keyOf(elsewhere()) }), "undecided", ["key_unfit"]],
    [
      "checkpoints of other ledgers alone",
      () => ({ checkpoints: foreignNote(elsewhere()) }),
      "undecided",
      ["no_checkpoint_of_this_ledger"],
    ],
    [
      "a checkpoint of another ledger beside good ones",
      () => ({ checkpoints: `${foreignNote(elsewhere())}\n${scene.checkpoints}` }),
      "holds",
      [],
    ],
    [
      "a checkpoint of one of two ledgers",
      () => ({ checkpoints: noteOf(scene.checkpoints, "other") }),
      "holds",
      [],
    ],
    [
      "a checkpoint of a workspace that is gone",
      () => ({ checkpoints: foreignNote(origin().replace(/default$/, "gone")) }),
      "tampered",
      ["workspace_missing"],
    ],
    [
      "a checkpoint whose signature was changed",
      () => ({ checkpoints: noteOf(scene.checkpoints, "default").replace(/\n(\d+)\n/, "\n1$1\n") }),
      "undecided",
      ["checkpoint_damaged"],
    ],
    [
      "a checkpoint by a key that is not known, over what is there",
      () => {
        const { checkpoint } = parseSignedCheckpoint(noteOf(scene.checkpoints, "default"));
        const text = checkpointText(checkpoint);
        return { checkpoints: formatNote({ text, signatures: [signAs(STRANGER)(origin(), text)] }) };
      },
      "undecided",
      ["checkpoint_key_unknown"],
    ],
    [
      "a checkpoint by a key that is not known, over something else",
      () => ({ checkpoints: foreignNote(origin()) }),
      "tampered",
      ["entries_rewritten 1", "checkpoint_key_unknown"],
    ],
    [
      "a checkpoint with a witness's signature beside the ledger's",
      () => {
        const note = noteOf(scene.checkpoints, "default");
        const { note: signed } = parseSignedCheckpoint(note);
        return {
          checkpoints: formatNote({
            ...signed,
            signatures: [...signed.signatures, signAs(STRANGER)("witness.example", signed.text)],
          }),
        };
      },
      "holds",
      [],
    ],
    ["the key and all checkpoints", () => ({ key: scene.key, checkpoints: scene.checkpoints }), "holds", []],
    [
      "the key under the other workspace's name",
      () => ({ key: formatVerifierKey(sha256, "any/name", publicKeyOf(scene.key)) }),
      "holds",
      [],
    ],
  ];

  test.each(CASES)("%s", async (_, bring, verdict, found) => {
    const result = await verify(copy.path, bring());
    expect({ verdict: result.verdict as string, found: inShort(allFindings(result)) }).toEqual({
      verdict,
      found: [...found],
    });
  });

  test("what is not checked is said, as it is: less of it the more is brought along", async () => {
    const factsIn = async (brought: Brought) =>
      new Map(
        (await verify(copy.path, brought)).ledgers[0]?.facts.map(({ label, value }) => [label, value]) ?? [],
      );
    const [nothing, all] = [
      await factsIn({}),
      await factsIn({ key: scene.key, checkpoints: scene.checkpoints }),
    ];
    expect(nothing.get("Vouched for")).toBe("all entries, by a signature");
    expect(nothing.get("Not checked")).toBe(
      "whether the directory was restored to an earlier state, or the ledger was rewritten with its key: only a checkpoint that was kept elsewhere shows that (--checkpoint); whether the key in the directory is the ledger's own, or everything was signed with another key: only a key that was kept elsewhere shows that (--key)",
    );
    const sizes = parseCheckpoints(scene.checkpoints)
      .filter(({ checkpoint }) => checkpoint.origin === origin())
      .map(({ checkpoint }) => checkpoint.size);
    const newest = sizes.at(-1) ?? 0;
    expect(all.get("Not checked")).toBe(afterEntry(newest));
    expect(
      (await factsIn({ key: scene.key, checkpoints: scene.checkpoints, workspace: "default" })).get(
        "Not checked",
      ),
    ).toBe(`${afterEntry(newest)}; the other workspaces, and whether one is missing: omit --workspace`);
    for (const size of sizes.filter((each) => each > 0)) {
      const older = await factsIn({
        key: scene.key,
        checkpoints: noteOf(scene.checkpoints, "default", size),
      });
      expect(older.get("Not checked")).toBe(afterEntry(size));
    }
  });

  test("a checkpoint of another workspace, or by a stranger, covers nothing, and the result says so", async () => {
    const { checkpoint } = parseSignedCheckpoint(noteOf(scene.checkpoints, "default"));
    const text = checkpointText(checkpoint);
    const byStranger = formatNote({ text, signatures: [signAs(STRANGER)(origin(), text)] });
    for (const checkpoints of [noteOf(scene.checkpoints, "other"), byStranger]) {
      const { ledgers } = await verify(copy.path, { checkpoints, key: scene.key });
      const facts = ledgers.find(({ workspace }) => workspace === "default")?.facts ?? [];
      expect(facts.find(({ label }) => label === "Not checked")?.value).toContain(
        "whether the directory was restored to an earlier state",
      );
    }
  });

  test("whose word it rests on is said", async () => {
    const keyIn = async (brought: Brought) =>
      (await verify(copy.path, brought)).ledgers[0]?.facts.find(({ label }) => label === "Key")?.value ?? "";
    expect(await keyIn({ key: scene.key })).toBe(scene.key);
    expect(await keyIn({})).toContain("taken from the directory itself");
  });

  describe("one workspace alone", () => {
    test("is verified, whatever was done to the other", async () => {
      const vandal = new Vandal(copy);
      vandal.unguarded(() => vandal.set(5, { bytes: vandal.forged(5) }));
      vandal.close();
      const verdicts = await Promise.all(
        ["default", "other"].map(async (workspace) => {
          const result = await verify(copy.path, { workspace, checkpoints: scene.checkpoints });
          return [result.verdict, result.ledgers.map((ledger) => ledger.workspace)];
        }),
      );
      expect(verdicts).toEqual([
        ["tampered", ["default"]],
        ["holds", ["other"]],
      ]);
    });

    test("that is not there is wrong usage", async () => {
      const failed = await verify(copy.path, { workspace: "nowhere" }).catch((error: unknown) => error);
      expect(failed).toBeInstanceOf(OperatorError);
      expect(failed).toMatchObject({ exitCode: 2, message: expect.stringContaining("nowhere") });
    });

    test("that a checkpoint says was there is missed", async () => {
      const checkpoints = foreignNote(origin().replace(/default$/, "gone"));
      const result = await verify(copy.path, { workspace: "gone", checkpoints });
      expect(inShort(allFindings(result))).toEqual(["workspace_missing"]);
    });
  });
});

describe("keys that change:", () => {
  let directory: ReturnType<typeof tempDir>;
  let path: string;

  beforeEach(() => {
    directory = tempDir();
    path = join(directory.path, "gatehouse.db");
  });

  afterEach(() => directory.remove());

  /** Runs a gateway on the directory and returns its key at the end. */
  async function within(work: (gateway: TestGateway) => Promise<unknown>, options: TestGatewayOptions = {}) {
    const gateway = await startGateway({ dataDir: directory.path, ...options });
    await work(gateway);
    const key = (await gateway.call("GET", "/v1/ledger/key")).body.vkey as string;
    await gateway.stop();
    return key;
  }

  const read = (gateway: TestGateway) => gateway.call("GET", "/v1/agents");

  async function rotate(gateway: TestGateway): Promise<void> {
    const answer = await gateway.call("POST", "/operator/ledger/rotate-key", {
      token: gateway.gateway.operatorSecret,
      headers: { "gatehouse-operator": "tests" },
    });
    if (answer.status !== 200) throw new Error(JSON.stringify(answer.body));
  }

  test("one that handed over vouches for the next, also in workspaces that came later", async () => {
    const first = await within(read);
    const second = await within(async (gateway) => {
      await rotate(gateway);
      await gateway.workspace("late");
    });
    const third = await within(rotate);
    expect(new Set([first, second, third]).size).toBe(3);
    for (const key of [undefined, first, second, third]) {
      const result = await verify(path, key === undefined ? {} : { key });
      expect({ key, findings: allFindings(result) }).toEqual({ key, findings: [] });
      expect(result.ledgers).toHaveLength(2);
    }
  });

  test("ten of them, one after the other, hold", async () => {
    await within(async (gateway) => {
      for (let count = 0; count < 10; count++) await rotate(gateway);
    });
    expect(allFindings(await verify(path))).toEqual([]);
  });

  test("one that was lost vouches for nothing, and the next has to be brought along", async () => {
    const first = await within(read);
    rmSync(join(directory.path, "ledger.key"));
    const second = await within(read, { replaceLostLedgerKey: true });
    for (const brought of [{}, { key: first }]) {
      const result = await verify(path, brought);
      expect(result.verdict).toBe("undecided");
      expect(inShort(allFindings(result))).toEqual([
        expect.stringMatching(/^key_lost \d+$/),
        expect.stringMatching(/^key_unvouched/),
      ]);
    }
    const result = await verify(path, { key: second });
    expect(result.verdict).toBe("undecided");
    expect(allFindings(result)).toMatchObject([
      { code: "key_lost", message: expect.stringContaining("The chain of trust is broken there") },
    ]);
  });

  test("one that was lost is bridged by a checkpoint from elsewhere that reaches as far, and by no shorter one", async () => {
    const checkpointOf = async (gateway: TestGateway) =>
      String((await gateway.call("GET", "/v1/ledger/checkpoint")).body);
    let [shorter, longer] = ["", ""];
    await within(async (gateway) => {
      shorter = await checkpointOf(gateway);
      await read(gateway);
    });
    rmSync(join(directory.path, "ledger.key"));
    const key = await within(
      async (gateway) => {
        longer = await checkpointOf(gateway);
      },
      { replaceLostLedgerKey: true },
    );
    const found = async (checkpoints: string) =>
      inShort(allFindings(await verify(path, { key, checkpoints })));
    expect(await found(shorter)).toEqual([expect.stringMatching(/^key_lost/)]);
    expect(await found(longer)).toEqual([]);
  });

  test("one that is put before the ledger's own is not believed beside checkpoints that were kept", async () => {
    let kept = "";
    const key = await within(async (gateway) => {
      await read(gateway);
      kept = (await gateway.call("GET", "/v1/ledger/checkpoint")).body;
      for (let count = 0; count < 5; count++) await read(gateway);
    });
    expect((await verify(path, { checkpoints: kept })).verdict).toBe("holds");
    const { checkpoint } = parseSignedCheckpoint(kept);
    const { origin } = checkpoint;
    const vandal = new Vandal({ dataDir: directory.path, path, remove: () => {} });
    vandal.unguarded(() => {
      // An invented end, signed with the attacker's own key, which the directory now lists as the older one.
      const last = vandal.rows().length;
      vandal.set(last, { bytes: vandal.forged(last) });
      vandal.rechain(last);
      vandal.append(handOver(vandal.row(last), keyOf(origin), key));
      vandal.run("UPDATE ledger_keys SET public_key = ?, retired_at = 1", STRANGER.publicKey);
      vandal.run("INSERT INTO ledger_keys (public_key, created_at) VALUES (?, 0)", publicKeyOf(key));
      vandal.removeCheckpoints(checkpoint.size);
      vandal.run(
        "INSERT INTO ledger_checkpoints VALUES (1, ?, ?, 0)",
        last + 1,
        vandal.noteBy(signAs(STRANGER), last + 1),
      );
      vandal.signHead(signAs(STRANGER));
    });
    vandal.close();
    // Nothing in the directory contradicts it.
    expect(allFindings(await verify(path))).toEqual([]);
    const result = await verify(path, { checkpoints: kept });
    expect([result.verdict, inShort(allFindings(result))]).toEqual([
      "undecided",
      [`key_unvouched ${checkpoint.size + 1}`],
    ]);
  });

  test("one that was slipped in is not believed, though it signs beside the old one", async () => {
    const key = await within(read);
    const vandal = new Vandal({ dataDir: directory.path, path, remove: () => {} });
    const origin = key.split("+")[0] ?? "";
    vandal.unguarded(() => {
      const { size, note } = vandal.database
        .query<{ size: number; note: string }, []>(
          "SELECT size, note FROM ledger_checkpoints ORDER BY size DESC LIMIT 1",
        )
        .get() ?? { size: 0, note: "" };
      const { text, signatures } = parseSignedCheckpoint(note).note;
      const both = formatNote({ text, signatures: [...signatures, signAs(STRANGER)(origin, text)] });
      vandal.run("UPDATE ledger_checkpoints SET note = ? WHERE size = ?", both, size);
      vandal.run("INSERT INTO ledger_keys (public_key, created_at) VALUES (?, 0)", STRANGER.publicKey);
      // A different, well-formed entry that only the new key vouches for.
      const last = vandal.row(size);
      const bytes = vandal
        .forged(size)
        .replace(`"seq":${size}`, `"seq":${size + 1}`)
        .replace(/"prev":"[0-9a-f]{64}"/, `"prev":"${Buffer.from(last.leaf).toString("hex")}"`);
      vandal.append(bytes);
      vandal.run(
        "INSERT INTO ledger_checkpoints VALUES (1, ?, ?, 0)",
        size + 1,
        vandal.noteBy(signAs(STRANGER), size + 1),
      );
    });
    const size = vandal.rows().length;
    vandal.close();
    for (const brought of [{}, { key }]) {
      const result = await verify(path, brought);
      expect([result.verdict, inShort(allFindings(result))]).toEqual([
        "tampered",
        [
          "key_changed",
          "key_changed",
          `tail_unsigned ${size}`,
          "checkpoint_surplus",
          `key_unvouched ${size}`,
        ],
      ]);
    }
  });
});

/** An entry after another one by which one key replaces another. */
function handOver(before: Row, from: string, to: string): string {
  const { seq, ts } = JSON.parse(before.bytes);
  return JSON.stringify({
    action: "ledger.rotate_key",
    actor: "user:operator",
    channel: "rest",
    detail: { from, to },
    outcome: "succeeded",
    phase: "single",
    prev: Buffer.from(before.leaf).toString("hex"),
    seq: seq + 1,
    ts,
  });
}

function keyOf(name: string): string {
  return formatVerifierKey(sha256, name, STRANGER.publicKey);
}

function publicKeyOf(key: string): Uint8Array {
  return Uint8Array.fromBase64(key.split("+").slice(2).join("+")).slice(1);
}
