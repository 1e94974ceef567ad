import type { Manifest } from "../../article14/format/manifest.ts";
import type { SignedCheckpoint } from "../../proof/checkpoint.ts";
import { isEqual } from "../../proof/hash.ts";
import { NoteError, signersOf } from "../../proof/note.ts";
import type { GrowingTree } from "../../proof/tree.ts";
import type { Trust, VerifyTools } from "../../proof/verification.ts";
import { counted, type Report } from "../report.ts";
import type { BundleKeys } from "./trust.ts";

/**
 * Checkpoints that the auditor kept elsewhere, compared with the tree at each size that it has on its way. Against somebody
 * who has the key and makes the whole ledger anew, nothing else helps.
 */
export class Anchors {
  readonly #bySize = new Map<number, SignedCheckpoint[]>();
  readonly #given: number;
  readonly #fitting: number;
  readonly #manifest: Manifest;
  readonly #report: Report;
  readonly #compared: SignedCheckpoint[] = [];
  #agreed = 0;
  #lastAgreed = 0;
  #differs = 0;
  #before = 0;

  constructor(manifest: Manifest, { checkpoints }: Trust, report: Report) {
    this.#manifest = manifest;
    this.#report = report;
    this.#given = checkpoints.length;
    const fitting = checkpoints.filter(({ checkpoint }) => checkpoint.origin === manifest.origin);
    this.#fitting = fitting.length;
    for (const each of fitting) {
      const { size } = each.checkpoint;
      this.#bySize.set(size, [...(this.#bySize.get(size) ?? []), each]);
    }
  }

  /** Checkpoints that say the same as the bundle. */
  get agreed(): number {
    return this.#agreed;
  }

  /** Told of the tree at each size that it goes through. */
  compare(tree: GrowingTree): void {
    const known = this.#bySize.get(tree.size);
    if (!known) return;
    this.#bySize.delete(tree.size);
    this.#compared.push(...known);
    const root = tree.root();
    for (const { checkpoint } of known) {
      if (isEqual(checkpoint.root, root)) {
        this.#agreed += 1;
        this.#lastAgreed = tree.size;
      } else {
        this.#differs += 1;
        if (this.#differs === 1) this.#before = this.#lastAgreed;
        this.#report.tampered(
          "checkpoint_contradicts",
          `The checkpoint that you gave says something else of the first ${counted(tree.size)} entries: between entry ${this.#before + 1} and entry ${tree.size} something was changed, added or removed.`,
          tree.size,
        );
      }
    }
  }

  /** Says what became of all of them, once the tree is whole. @throws SignaturesUnchecked */
  async finish({ trusted, inside }: BundleKeys, tools: VerifyTools): Promise<void> {
    if (this.#given === 0) return;
    const { origin, tree } = this.#manifest;
    if (this.#fitting === 0) {
      this.#report.undecided(
        "no_checkpoint_of_this_ledger",
        `None of the checkpoints that you gave is of this ledger, ${origin}.`,
      );
      return;
    }
    await this.#checkSigners([...trusted, ...inside], tools);
    if (this.#compared.length === 0) {
      const size = Math.max(...this.#bySize.keys());
      this.#report.undecided(
        "checkpoint_not_comparable",
        size > tree.size
          ? `The checkpoint that you gave is of ${counted(size)} entries, and the bundle ends with entry ${counted(tree.size)}: ask for a newer bundle, or for GET /v1/ledger/consistency?from=${tree.size}&to=${size}.`
          : `The checkpoint that you gave is of ${counted(size)} entries, which lie before the bundle's range: ask for a bundle from the beginning, or for GET /v1/ledger/consistency?from=${size}&to=${tree.size}.`,
      );
    }
    const left = [...this.#bySize.values()].reduce((sum, some) => sum + some.length, 0);
    this.#report.fact(
      "Checkpoints given",
      `${counted(this.#agreed)} agree${this.#agreed > 0 ? `, the last of ${counted(this.#lastAgreed)} entries` : ""}, ${counted(this.#differs)} contradict, ${counted(left)} could not be compared`,
    );
  }

  /** A checkpoint that nobody known has signed may be anybody's: what it says was compared all the same. */
  async #checkSigners(keys: BundleKeys["trusted"], tools: VerifyTools): Promise<void> {
    for (const { note, checkpoint } of this.#compared) {
      try {
        if ((await signersOf(note, keys, tools.verifySignature)).length > 0) continue;
        this.#report.undecided(
          "checkpoint_key_unknown",
          `The checkpoint of ${counted(checkpoint.size)} entries that you gave is signed by a key that is not known here: give that key along.`,
          checkpoint.size,
        );
      } catch (error) {
        if (!(error instanceof NoteError)) throw error;
        this.#report.undecided(
          "checkpoint_damaged",
          `The checkpoint of ${counted(checkpoint.size)} entries that you gave is not good: ${error.message}.`,
          checkpoint.size,
        );
      }
    }
  }
}
