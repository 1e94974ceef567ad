/** What is trusted: keys and checkpoints that an auditor supplies. */
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { OperatorError } from "../../../src/base/errors.ts";
import {
  checkpointText,
  parseCheckpoints,
  parseSignedCheckpoint,
} from "../../../src/ledger/proof/checkpoint.ts";
import { formatNote, formatVerifierKey } from "../../../src/ledger/proof/note.ts";
import { sha256 } from "../../../src/ledger/tree-hash.ts";
import { STRANGER } from "./attack.ts";
import { allFindings, type Brought, type Copy, inShort, type Scene, verify, withCopies } from "./scene.ts";
import { keyOf, publicKeyOf } from "./trust-support.ts";
import { signAs, Vandal } from "./vandal.ts";

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

describe("what is supplied:", () => {
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
      "only checkpoints of other ledgers",
      () => ({ checkpoints: foreignNote(elsewhere()) }),
      "undecided",
      ["no_checkpoint_of_this_ledger"],
    ],
    [
      "a checkpoint of another ledger among good ones",
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
      "a checkpoint of a workspace that no longer exists",
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
      "a checkpoint by an unknown key, over the existing entries",
      () => {
        const { checkpoint } = parseSignedCheckpoint(noteOf(scene.checkpoints, "default"));
        const text = checkpointText(checkpoint);
        return { checkpoints: formatNote({ text, signatures: [signAs(STRANGER)(origin(), text)] }) };
      },
      "undecided",
      ["checkpoint_key_unknown"],
    ],
    [
      "a checkpoint by an unknown key, over something else",
      () => ({ checkpoints: foreignNote(origin()) }),
      "tampered",
      ["entries_rewritten 1", "checkpoint_key_unknown"],
    ],
    [
      "a checkpoint with a witness's signature alongside the ledger's",
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

  test("unchecked parts are reported accurately: the more is supplied, the fewer they are", async () => {
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
      "whether an earlier state was restored, or the ledger was rewritten with its key: only a checkpoint that was kept elsewhere shows that (--checkpoint); whether the stored key is the ledger's own, or everything was signed with another key: only a key that was kept elsewhere shows that (--key)",
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
        "whether an earlier state was restored",
      );
    }
  });

  test("the basis of the trust is reported", async () => {
    const keyIn = async (brought: Brought) =>
      (await verify(copy.path, brought)).ledgers[0]?.facts.find(({ label }) => label === "Key")?.value ?? "";
    expect(await keyIn({ key: scene.key })).toBe(scene.key);
    expect(await keyIn({})).toContain("stored with the ledger");
  });

  describe("only one workspace", () => {
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

    test("that does not exist is wrong usage", async () => {
      const failed = await verify(copy.path, { workspace: "nowhere" }).catch((error: unknown) => error);
      expect(failed).toBeInstanceOf(OperatorError);
      expect(failed).toMatchObject({ exitCode: 2, message: expect.stringContaining("nowhere") });
    });

    test("that is missing although a checkpoint proves that it existed is reported", async () => {
      const checkpoints = foreignNote(origin().replace(/default$/, "gone"));
      const result = await verify(copy.path, { workspace: "gone", checkpoints });
      expect(inShort(allFindings(result))).toEqual(["workspace_missing"]);
    });
  });
});
