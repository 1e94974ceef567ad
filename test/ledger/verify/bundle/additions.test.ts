/** Somebody without the ledger's key adds things to a bundle or to what the auditor supplies. No verdict improves. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import fc from "fast-check";
import {
  parseCheckpoints,
  parseSignedCheckpoint,
  type SignedCheckpoint,
} from "../../../../src/ledger/proof/checkpoint.ts";
import type { TrustAnchors } from "../../../../src/ledger/proof/verification.ts";
import { type BundleBench, openBench, story, WORKSPACE } from "../../article14/support.ts";
import { draft } from "../../support.ts";
import { forgedEnd, signedBy, withStranger } from "./forgery.ts";
import { Forger, trustIn, Unpacked, verify } from "./support.ts";

setDefaultTimeout(120_000);
fc.configureGlobal({ ...fc.readConfigureGlobal(), seed: 7 });

/** Where the cut bundle ends, and where the forged one begins to differ. */
const CUT = 30;
const forger = new Forger();
let bench: BundleBench;
let size: number;
let keys: readonly string[];
/** Bundles named after what was done to them. Only the first two are the ledger's own. */
let bundles: Readonly<Record<BundleName, Unpacked>>;
let genuine: Readonly<Record<string, readonly SignedCheckpoint[]>>;
let hostile: readonly SignedCheckpoint[];

type BundleName = "whole" | "cut" | "changed" | "forged";
const SIZES = ["0", "3", "20", "30", "31", "last", "another ledger"] as const;

beforeAll(async () => {
  bench = await openBench();
  await bench.add();
  await bench.add();
  await bench.rotate();
  await story(bench, 2);
  await bench.ledger.record(2, draft());
  const whole = await Unpacked.of(await bench.zip());
  size = JSON.parse(whole.text("manifest.json")).tree.size;
  const changed = whole.copy().lines("entries.ndjson", (lines) => lines.toSpliced(40, 1));
  bundles = {
    whole,
    cut: await Unpacked.of(await bench.zip({ size: CUT })),
    changed,
    forged: forgedEnd(whole.copy(), CUT + 1),
  };
  const { current, former } = bench.keys.verifierKeys(WORKSPACE.name);
  keys = [current, ...former];
  const at = async (name: string): Promise<readonly SignedCheckpoint[]> => {
    if (name === "another ledger") return parseCheckpoints((await bench.proofs.head(2)).note);
    return parseCheckpoints((await bench.proofs.head(1, name === "last" ? size : Number(name))).note);
  };
  genuine = Object.fromEntries(await Promise.all(SIZES.map(async (name) => [name, await at(name)] as const)));
  const forgedHead = parseSignedCheckpoint(bundles.forged.text("checkpoint.txt"));
  hostile = [
    ...["3", "20", "30", "31", "last"]
      .flatMap((name) => genuine[name] ?? [])
      .map((each) => signedBy(forger, each)),
    signedBy(forger, forgedHead),
    ...(genuine.last ?? []).map((each) => ({ ...each, note: forgedHead.note })),
  ];
});
afterAll(() => bench.close());

/** Changes that somebody without the ledger's key can make to a bundle. */
const CHANGES: Readonly<Record<string, (bundle: Unpacked) => Unpacked>> = {
  nothing: (bundle) => bundle,
  "a stranger signs it": (bundle) => forger.takeOver(bundle),
  "a stranger signs it, followed by the genuine keys": (bundle) => withStranger(forger, bundle),
  "a stranger's key is added": (bundle) =>
    bundle.edit("key.txt", (text) => `${text}${forger.verifierKey(originOf(bundle))}\n`),
  "a stranger's key is added in front": (bundle) =>
    bundle.edit("key.txt", (text) => `${forger.verifierKey(originOf(bundle))}\n${text}`),
  "a file is added": (bundle) => bundle.write("notes.txt", "hello"),
  "the changes of the key are duplicated": (bundle) =>
    bundle
      .manifest((manifest) => {
        manifest.key_changes = [...manifest.key_changes, ...manifest.key_changes];
      })
      .resign(forger.signBytes),
};

const EVIDENCE = fc.record({
  keys: fc.subarray([0, 1]),
  checkpoints: fc.subarray([...SIZES]),
});

function originOf(bundle: Unpacked): string {
  return JSON.parse(bundle.text("manifest.json")).origin;
}

function trustOf({
  keys: indices,
  checkpoints,
}: {
  keys: number[];
  checkpoints: readonly string[];
}): TrustAnchors {
  return {
    ...trustIn(...indices.map((index) => keys[index] ?? "")),
    checkpoints: checkpoints.flatMap((name) => genuine[name] ?? []),
  };
}

/** Whether what the auditor supplies can distinguish this ledger from a stranger's. */
function isTelling({
  keys: indices,
  checkpoints,
}: {
  keys: number[];
  checkpoints: readonly string[];
}): boolean {
  return indices.length > 0 || checkpoints.some((name) => name !== "0" && name !== "another ledger");
}

async function verdictOf(bundle: Unpacked, trust: TrustAnchors): Promise<string> {
  return (await verify(bundle.copy(), trust)).verdict;
}

test("hostile files, keys and checkpoints never make an invalid bundle pass", async () => {
  const bundle = fc.constantFrom<BundleName>("whole", "cut", "changed", "forged");
  const added = fc.subarray([0, 1, 2, 3, 4, 5, 6]);
  await fc.assert(
    fc.asyncProperty(
      bundle,
      EVIDENCE.filter(isTelling),
      fc.constantFrom(...Object.keys(CHANGES)),
      added,
      async (name, evidence, change, indices) => {
        const trust = trustOf(evidence);
        const before = await verdictOf(bundles[name], trust);
        const checkpoints = [...trust.checkpoints, ...indices.flatMap((index) => hostile[index] ?? [])];
        const changed = CHANGES[change]?.(bundles[name].copy()) ?? bundles[name];
        const after = await verdictOf(changed, { ...trust, checkpoints });
        if (before !== "holds") expect(after).not.toBe("holds");
        // An unknown signer vouches for nothing, whatever held before.
        if (name === "forged" || (change !== "nothing" && indices.length > 0))
          expect(after).not.toBe("holds");
      },
    ),
    { numRuns: 150 },
  );
});

test("a truncated bundle does not pass alongside a checkpoint of a later entry, whatever else is given", async () => {
  await fc.assert(
    fc.asyncProperty(EVIDENCE, async (evidence) => {
      const isLater = evidence.checkpoints.some((name) => name === "31" || name === "last");
      const after = await verdictOf(bundles.cut, trustOf(evidence));
      if (isLater) expect(after).not.toBe("holds");
      expect(after).not.toBe("tampered");
    }),
    { numRuns: 50 },
  );
});

test("for an honest bundle, more genuine material never makes a decided result undecided, or reports tampering", async () => {
  await fc.assert(
    fc.asyncProperty(EVIDENCE, async (evidence) => {
      const { verdict: after, findings } = await verify(bundles.whole.copy(), trustOf(evidence));
      const isOnlyAnother = evidence.checkpoints.join() === "another ledger";
      expect(after, JSON.stringify(findings)).toBe(isOnlyAnother ? "undecided" : "holds");
    }),
    { numRuns: 50 },
  );
});
