import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import {
  checkpointText,
  parseCheckpoints,
  type SignedCheckpoint,
} from "../../../../src/ledger/proof/checkpoint.ts";
import { formatNote, keyIdOf } from "../../../../src/ledger/proof/note.ts";
import { sha256 } from "../../../../src/ledger/tree-hash.ts";
import { verifyBundle } from "../../../../src/ledger/verify/bundle/verify.ts";
import { tools } from "../../../../src/ledger/verify/tools.ts";
import { type BundleBench, openBench, story, WORKSPACE } from "../../article14/support.ts";
import { draft } from "../../support.ts";
import { forgedEnd, signedBy, withStranger } from "./forgery.ts";
import { codes, Forger, NOTHING_GIVEN, trustIn, Unpacked, verify } from "./support.ts";

let bench: BundleBench;
let bundle: Unpacked;
/** The keys before and after the rotation. */
let keys: readonly [before: string, now: string];
const forger = new Forger();

beforeAll(async () => {
  bench = await openBench();
  // The key is rotated on the twelfth day.
  await story(bench, 14);
  bundle = await Unpacked.of(await bench.zip());
  const { current, former } = bench.keys.verifierKeys(WORKSPACE.name);
  keys = [former[0] ?? "", current];
});
afterAll(() => bench.close());

const facts = async (given: Parameters<typeof verify>[1]) => {
  const verification = await verify(bundle.copy(), given);
  return Object.fromEntries(verification.facts.map(({ label, value }) => [label, value]));
};
const proofs = () => bench.proofs;
const checkpoint = async (size: number, workspace = 1): Promise<SignedCheckpoint[]> =>
  parseCheckpoints((await proofs().head(workspace, size)).note);

const sizeOf = (whole: Unpacked): number => JSON.parse(whole.text("manifest.json")).tree.size;
const checkpoints = async (sizes: readonly number[]): Promise<SignedCheckpoint[]> =>
  (await Promise.all(sizes.map((size) => checkpoint(size)))).flat();

describe("the signing key", () => {
  test("in the bundle is believed if none is given, and the result says so", async () => {
    const verification = await verify(bundle.copy());
    expect(verification.verdict).toBe("holds");
    expect((await facts({})).Key).toContain("taken from the bundle itself");
  });

  test("that is given is enough", async () => {
    expect((await verify(bundle.copy(), trustIn(keys[1]))).verdict).toBe("holds");
    expect((await facts(trustIn(keys[1]))).Key).toContain("the one that you supplied");
  });

  test("of another workspace of the node is the same key", async () => {
    const { current } = bench.keys.verifierKeys("w2");
    expect((await verify(bundle.copy(), trustIn(current))).verdict).toBe("holds");
  });

  test("from before a change vouches for the present one", async () => {
    const verification = await verify(bundle.copy(), trustIn(keys[0]));
    expect([verification.verdict, verification.findings]).toEqual(["holds", []]);
    expect((await facts(trustIn(keys[0]))).Key).toContain("vouches for it");
  });

  test("without the proof of the change vouches for nothing", async () => {
    const without = bundle.copy().manifest((manifest) => {
      manifest.key_changes = [];
    });
    const verification = await verify(
      without.resign(bench.keys.signBytes.bind(bench.keys)),
      trustIn(keys[0]),
    );
    expect(verification.verdict).toBe("tampered");
    expect(codes(verification)).toContain("other_key");
  });

  test("of somebody else is not accepted", async () => {
    const verification = await verify(bundle.copy(), trustIn(forger.verifierKey("gatehouse/0/w1")));
    expect(verification.verdict).toBe("tampered");
    expect(codes(verification)).toEqual(["other_key", "checkpoint_of_another_key"]);
  });

  test("a bundle that somebody re-signed is not the ledger's", async () => {
    const forged = forger.takeOver(bundle.copy());
    // Nothing inside contradicts it. That is why the auditor needs a key from elsewhere.
    expect((await verify(forged.copy())).verdict).toBe("holds");
    for (const key of keys) {
      const verification = await verify(forged.copy(), trustIn(key));
      expect(verification.verdict).toBe("tampered");
      expect(codes(verification)).toEqual(["other_key", "checkpoint_of_another_key"]);
    }
    const verification = await verify(forged.copy(), { checkpoints: await checkpoint(100) });
    expect([verification.verdict, codes(verification)]).toEqual([
      "undecided",
      ["checkpoint_key_unknown 100"],
    ]);
  });

  test("a signature added next to the former key's on an old checkpoint makes no new key trusted", async () => {
    const stolen = parseCheckpoints(JSON.parse(bundle.text("manifest.json")).key_changes[0].checkpoint)[0];
    if (!stolen) throw new Error("there is no change of the key");
    const { origin } = stolen.checkpoint;
    const signature = {
      name: origin,
      keyId: keyIdOf(sha256, origin, forger.publicKey),
      signature: forger.signBytes(new TextEncoder().encode(stolen.note.text)),
    };
    const note = formatNote({ text: stolen.note.text, signatures: [...stolen.note.signatures, signature] });
    const [change] = JSON.parse(bundle.text("manifest.json")).key_changes;
    const forged = forger.takeOver(bundle.copy()).manifest((manifest) => {
      manifest.key_changes = [{ ...change, checkpoint: note }];
    });
    const verification = await verify(forged.resign(forger.signBytes), trustIn(keys[0]));
    expect(verification.verdict).toBe("tampered");
    expect(codes(verification)).toContain("other_key");
  });
});

describe("a stranger's key that comes first in key.txt", () => {
  test("is not believed alongside checkpoints of the ledger's own key", async () => {
    const forged = withStranger(forger, bundle.copy());
    for (const sizes of [[100], [sizeOf(bundle)], [0, 1, 2, 100]]) {
      const verification = await verify(forged.copy(), { checkpoints: await checkpoints(sizes) });
      expect(verification.verdict).toBe("undecided");
      expect(new Set(codes(verification).map((code) => code.split(" ")[0]))).toEqual(
        new Set(["bundle_key_unvouched"]),
      );
    }
  });

  test("is not believed for a forged end after the last checkpoint that was kept", async () => {
    const kept = await checkpoints([100]);
    const forged = withStranger(forger, forgedEnd(bundle.copy(), 101));
    // The archive does not contradict itself, so without anything from elsewhere nothing is found.
    expect((await verify(forged.copy())).findings).toEqual([]);
    const verification = await verify(forged.copy(), { checkpoints: kept });
    expect([verification.verdict, codes(verification)]).toEqual(["undecided", ["bundle_key_unvouched 100"]]);
  });

  test("is not believed for its own checkpoint alongside a genuine one", async () => {
    const forged = withStranger(forger, bundle.copy());
    const [genuine, another] = await checkpoints([3, 100]);
    if (!genuine || !another) throw new Error("there are no checkpoints");
    const verification = await verify(forged.copy(), { checkpoints: [genuine, signedBy(forger, another)] });
    expect([verification.verdict, codes(verification)]).toEqual(["undecided", ["bundle_key_unvouched 3"]]);
  });

  test("vouches for nothing by a change of the key that it alone has signed", async () => {
    const forged = withStranger(forger, bundle.copy()).manifest((manifest) => {
      const [change] = JSON.parse(bundle.text("manifest.json")).key_changes;
      manifest.key_changes = [change];
    });
    const verification = await verify(forged.resign(forger.signBytes), {
      checkpoints: await checkpoints([100]),
    });
    expect([verification.verdict, codes(verification)]).toEqual(["undecided", ["bundle_key_unvouched 100"]]);
  });
});

test("checkpoints of a former key are enough if it has handed over to the present one", async () => {
  const other = await openBench();
  try {
    for (let count = 0; count < 5; count++) await other.add();
    const kept = parseCheckpoints((await other.proofs.head(WORKSPACE.id)).note);
    await other.rotate();
    await other.add();
    const verification = await verify(await other.zip(), { checkpoints: kept });
    expect([verification.verdict, verification.findings]).toEqual(["holds", []]);
    const unproven = (await Unpacked.of(await other.zip())).manifest((manifest) => {
      manifest.key_changes = [];
    });
    const without = await verify(unproven.resign(other.keys.signBytes.bind(other.keys)), {
      checkpoints: kept,
    });
    expect([without.verdict, codes(without)]).toEqual(["undecided", ["bundle_key_unvouched 5"]]);
  } finally {
    await other.close();
  }
});

describe("a checkpoint kept elsewhere", () => {
  test("agrees at any size that the bundle passes through", async () => {
    for (const size of [1, 2, 100, bench.rows().length]) {
      const given = { checkpoints: await checkpoint(size) };
      expect((await verify(bundle.copy(), given)).findings).toEqual([]);
      expect((await facts(given))["Checkpoints given"]).toContain("1 agree");
    }
  });

  test("exposes a ledger that was rewritten with its own key", async () => {
    const kept = [...(await checkpoint(50)), ...(await checkpoint(120))];
    const other = await openBench();
    try {
      await story(other, 14);
      const anew = await Unpacked.of(await other.zip());
      // The same origin, the same key, and every hash and signature in order. Only the entries differ.
      const { origin } = kept[0]?.checkpoint ?? { origin: "" };
      const head = parseCheckpoints(anew.text("checkpoint.txt"))[0]?.checkpoint;
      if (!head) throw new Error("there is no checkpoint");
      const text = checkpointText({ ...head, origin });
      const signature = bench.keys.sign(WORKSPACE.name, text);
      anew
        .write("checkpoint.txt", formatNote({ text, signatures: [signature] }))
        .write("key.txt", `${keys[1]}\n`)
        .manifest((manifest) => {
          Object.assign(manifest, { origin, key: keys[1], key_changes: [] });
        })
        .resign((bytes) => bench.keys.signBytes(bytes));
      expect((await verify(anew.copy(), trustIn(keys[1]))).verdict).toBe("holds");
      const verification = await verify(anew.copy(), { ...trustIn(keys[1]), checkpoints: kept });
      expect(verification.verdict).toBe("tampered");
      expect(codes(verification)).toEqual(["checkpoint_contradicts 50", "checkpoint_contradicts 120"]);
      expect(verification.findings[0]?.message).toContain("between entry 1 and entry 50");
    } finally {
      await other.close();
    }
  });

  test.each([
    ["of a later time", 0, 10, "checkpoint_not_comparable", "consistency?from="],
    ["of before the range", 3, 0, "checkpoint_not_comparable", "before the bundle's range"],
  ])("%s cannot be compared", async (_, size, added, code, said) => {
    const part = await bench.zip({ filter: { from: "2026-01-09T00:00:00.000Z" } });
    for (let more = 0; more < added; more++) await bench.add();
    const checkpoints = await checkpoint(size || bench.rows().length);
    const verification = await verify(part, { checkpoints });
    expect([verification.verdict, codes(verification)]).toEqual(["undecided", [code]]);
    expect(verification.findings[0]?.message).toContain(said);
  });

  test("of another ledger proves nothing", async () => {
    await bench.ledger.record(2, draft());
    const verification = await verify(bundle.copy(), { checkpoints: await checkpoint(1, 2) });
    expect([verification.verdict, codes(verification)]).toEqual([
      "undecided",
      ["no_checkpoint_of_this_ledger"],
    ]);
  });

  test("is not outweighed by an older one that agrees, if the bundle ends before it", async () => {
    const cut = await bench.zip({ size: 200 });
    for (const sizes of [[201], [100, 201], [1, 100, 200, 201, 202]]) {
      const given = { ...trustIn(...keys), checkpoints: await checkpoints(sizes) };
      const verification = await verify(cut, given);
      expect([verification.verdict, codes(verification)]).toEqual([
        "undecided",
        ["checkpoint_not_comparable"],
      ]);
      expect(verification.findings[0]?.message).toContain("the bundle ends with entry 200");
    }
    expect((await verify(cut, { checkpoints: await checkpoints([1, 100, 200]) })).verdict).toBe("holds");
  });

  test("of no entries is answered, and covers none", async () => {
    const part = await bench.zip({ filter: { from: "2026-01-09T00:00:00.000Z" } });
    const empty = await checkpoints([0]);
    expect((await verify(part, { checkpoints: empty })).findings).toEqual([]);
    expect((await facts({ checkpoints: empty }))["Not checked"]).toContain("has rewritten the ledger");
    const both = { checkpoints: [...empty, ...(await checkpoints([3]))] };
    expect(codes(await verify(part, both))).toEqual(["checkpoint_not_comparable"]);
  });

  test("covers everything before it, and the result names the entry after which nothing is covered", async () => {
    const said = async (given: Parameters<typeof verify>[1]) => (await facts(given))["Not checked"] ?? "";
    expect(await said({})).toContain("whether someone with the key has rewritten the ledger");
    expect(await said({ checkpoints: await checkpoints([1, 100]) })).toContain(
      "whether someone with the key has rewritten the entries after entry 100",
    );
    expect(await said({ checkpoints: await checkpoints([1, 100, sizeOf(bundle)]) })).not.toContain(
      "rewritten",
    );
  });

  test("covers nothing if somebody else signed it", async () => {
    const [genuine] = await checkpoints([100]);
    if (!genuine) throw new Error("there is no checkpoint");
    const given = { checkpoints: [signedBy(forger, genuine)] };
    expect((await verify(bundle.copy(), given)).verdict).toBe("undecided");
    expect((await facts(given))["Not checked"]).toContain("has rewritten the ledger");
  });

  test("is reported if it is damaged", async () => {
    const [good] = await checkpoint(100);
    if (!good) throw new Error("there is no checkpoint");
    const damaged = { ...good, note: { ...good.note, text: good.note.text.replace("100", "101") } };
    const verification = await verify(bundle.copy(), { checkpoints: [damaged] });
    expect([verification.verdict, codes(verification)]).toEqual(["undecided", ["checkpoint_damaged 100"]]);
  });

  test("from a file may be impossible to compare, if another one can be compared", async () => {
    const part = await bench.zip({ filter: { from: "2026-01-09T00:00:00.000Z" } });
    const checkpoints = [...(await checkpoint(3)), ...(await checkpoint(200))];
    const verification = await verify(part, { checkpoints });
    expect([verification.verdict, verification.findings]).toEqual(["holds", []]);
  });
});

test("if no signature can be checked, nothing is decided", async () => {
  const verifySignature = () => Promise.reject(new Error("Ed25519 is not supported"));
  const verification = await verifyBundle(bundle.pack(), NOTHING_GIVEN, { ...tools, verifySignature });
  expect([verification.verdict, codes(verification)]).toEqual(["undecided", ["signatures_unchecked"]]);
});
