import { expect, test } from "bun:test";
import { testSigner } from "../proof/signing.ts";
import { allFindings, type Brought, type Copy, inShort, type Scene, verify, withCopies } from "./scene.ts";
import { Vandal } from "./vandal.ts";

/** In the second of two complete tiles, between the checkpoints of 200 and of 300 entries. */
export const INSIDE = 281;
/** After the last tile, between the checkpoint of 600 entries and that of all. */
export const AT_END = 640;
/** The names that expected findings use for entries whose numbers vary between scenes. */
export const [LAST, NEXT, FIRST_PROMPT, SECOND_PROMPT, RECORD] = [
  "LAST",
  "NEXT",
  "FIRST_PROMPT",
  "SECOND_PROMPT",
  "RECORD",
];
export const STRANGER = testSigner("stranger", 1);

export interface Expected {
  readonly verdict: "holds" | "tampered" | "undecided";
  /** Findings in the form of `inShort`. */
  readonly found: readonly string[];
}

export interface Attack {
  readonly name: string;
  readonly attack: (vandal: Vandal) => void | Promise<void>;
  /** The result if only the directory is given. */
  readonly alone: Expected;
  /** The result if the key and checkpoints stored elsewhere are given too, if it differs. */
  readonly withCheckpoints?: Expected;
}

export const tampered = (...found: string[]): Expected => ({ verdict: "tampered", found });
export const undecided = (...found: string[]): Expected => ({ verdict: "undecided", found });
export const HOLDS: Expected = { verdict: "holds", found: [] };

/** The last entry of the workspace `default`. */
export const last = (v: Vandal) => v.rows().length;

/**
 * Checkpoints cover a multiple of a hundred entries, or a few more. In expected findings, the multiple and the number
 * after it stand for the next checkpoint, as in `entries_rewritten 201`.
 */
function namesOf(v: Vandal): Map<number, string> {
  const [first = 0, second = 0] = v.seqsOf("task.dispatch", "intent");
  const [record = 0] = v.seqsOf("payload.erase", "single");
  const size = last(v);
  return new Map([
    ...[100, 200, 300, 400, 500, 600].flatMap((nominal) => {
      const actual = v.checkpointAt(nominal);
      return [-1, 0, 1].map((by) => [actual + by, String(nominal + by)] as const);
    }),
    [size, LAST],
    [size + 1, NEXT],
    [first, FIRST_PROMPT],
    [second, SECOND_PROMPT],
    [record, RECORD],
  ]);
}

/** Defines one test for each attack. */
export function testAttacks(attacks: readonly Attack[]): void {
  let scene: Scene;
  let copy: Copy;
  let vandal: Vandal;

  withCopies((made, of) => {
    copy = made;
    scene = of;
    vandal = new Vandal(copy);
  });

  test.each(attacks.map((attack) => [attack.name, attack] as const))("%s", async (_, attack) => {
    const names = namesOf(vandal);
    await attack.attack(vandal);
    vandal.close();
    const found = async (brought: Brought): Promise<Expected> => {
      const result = await verify(copy.path, brought);
      const short = inShort(allFindings(result)).map((each) =>
        each.replace(/\d+$/, (seq) => names.get(Number(seq)) ?? seq),
      );
      return { verdict: result.verdict, found: short };
    };
    expect(await found({})).toEqual(attack.alone);
    expect(await found({ key: scene.key, checkpoints: scene.checkpoints })).toEqual(
      attack.withCheckpoints ?? attack.alone,
    );
  });
}
