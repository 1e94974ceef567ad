import { afterAll, beforeAll, expect } from "bun:test";
import { parseSignedCheckpoint } from "../../../../src/ledger/proof/checkpoint.ts";
import { type BundleBench, openBench, story, WORKSPACE } from "../../article14/support.ts";
import { draft } from "../../support.ts";
import { codes, Forger, trustIn, Unpacked, verify } from "./support.ts";

export let bench: BundleBench;

export let whole: Unpacked;

/** A bundle of the agent `claims`, from the middle of the story. */
export let part: Unpacked;

export let key: string;

export const forger = new Forger();

export interface Attack {
  readonly name: string;
  /** The bundle to change. Default: that of the whole ledger. */
  readonly of?: "part";
  readonly change: (bundle: Unpacked) => Unpacked;
  /** Findings that must occur, with their seq if they have one. */
  readonly found: readonly string[];
  /** Whether nothing else may be found. */
  readonly alone?: true;
}

export async function expectFound(bundle: Unpacked, { found, alone }: Attack): Promise<void> {
  const verification = await verify(bundle, trustIn(key));
  expect(verification.verdict).toBe("tampered");
  const said = codes(verification);
  for (const finding of found) {
    const isThere = said.some(
      (each) => each === finding || (!finding.includes(" ") && each.startsWith(`${finding} `)),
    );
    if (!isThere) throw new Error(`${finding} is not among ${said.join(", ")}`);
  }
  if (alone) expect(said).toEqual([...found]);
}

export function line(lines: readonly string[], at: number): string {
  const found = lines.at(at);
  if (found === undefined) throw new Error(`there is no line ${at}`);
  return found;
}

export function originOf(bundle: Unpacked): string {
  return parseSignedCheckpoint(bundle.text("checkpoint.txt")).checkpoint.origin;
}

export function changesOf(bundle: Unpacked): { checkpoint: string }[] {
  return JSON.parse(bundle.text("manifest.json")).key_changes;
}

/** Changes an entry and its hash. */
export function rehash(bundle: Unpacked, at: number): Unpacked {
  let leaf = "";
  return bundle
    .lines("entries.ndjson", (lines) => {
      const changed = line(lines, at - 1).replace('"actor":"', '"actor":"x');
      leaf = new Bun.CryptoHasher("sha256").update(`\0${changed}`).digest("hex");
      return lines.with(at - 1, changed);
    })
    .lines("leaves.txt", (lines) => lines.with(at - 1, `${at} ${leaf}`));
}

/** Makes the bundles that a file's tests use. */
export function useBundles(): void {
  beforeAll(async () => {
    bench = await openBench();
    await story(bench, 14);
    await bench.ledger.record(2, draft());
    whole = await Unpacked.of(await bench.zip());
    part = await Unpacked.of(
      await bench.zip({
        filter: { agent: "claims", from: "2026-01-04T00:00:00.000Z", to: "2026-01-12T00:00:00.000Z" },
      }),
    );
    key = bench.keys.verifierKeys(WORKSPACE.name).current;
  });
  afterAll(() => bench.close());
}
