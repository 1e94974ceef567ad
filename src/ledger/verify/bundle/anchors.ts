import type { Manifest } from "../../article14/format/manifest.ts";
import type { SignedCheckpoint } from "../../proof/checkpoint.ts";
import { isEqual } from "../../proof/hash.ts";
import { NoteError, signersOf } from "../../proof/note.ts";
import type { GrowingTree } from "../../proof/tree.ts";
import type { TrustAnchors, VerifyTools } from "../../proof/verification.ts";
import { counted, type VerificationReport } from "../report.ts";
import { type BundleKeys, isSameKey, vouchedBy } from "./trust.ts";

/**
 * Compares checkpoints that the auditor kept elsewhere with the tree, at each size the tree has while it grows. They
 * are the only defence against somebody who has the key and rewrites the ledger. Further checkpoints never improve a
 * verdict: each one that cannot be compared with the bundle makes it undecided.
 */
export class Anchors {
  readonly #bySize = new Map<number, SignedCheckpoint[]>();
  readonly #fitting: readonly SignedCheckpoint[];
  readonly #trust: TrustAnchors;
  readonly #manifest: Manifest;
  readonly #report: VerificationReport;
  readonly #agreed = new Set<SignedCheckpoint>();
  #greatestAgreed = 0;
  #lastAgreed = 0;
  #differs = 0;
  #covered = 0;

  constructor(manifest: Manifest, trust: TrustAnchors, report: VerificationReport) {
    this.#manifest = manifest;
    this.#trust = trust;
    this.#report = report;
    this.#fitting = trust.checkpoints.filter(({ checkpoint }) => checkpoint.origin === manifest.origin);
    for (const each of this.#fitting) {
      const { size } = each.checkpoint;
      this.#bySize.set(size, [...(this.#bySize.get(size) ?? []), each]);
    }
  }

  /**
   * Number of entries covered by a kept checkpoint that agrees with the bundle and has a signature that counts; 0 if
   * there is none.
   */
  get covered(): number {
    return this.#covered;
  }

  /** MUST be called with the tree at each size, from 0 on. */
  compare(tree: GrowingTree): void {
    const known = this.#bySize.get(tree.size);
    if (!known) return;
    this.#bySize.delete(tree.size);
    const root = tree.root();
    for (const each of known) {
      if (isEqual(each.checkpoint.root, root)) {
        this.#agreed.add(each);
        this.#greatestAgreed = tree.size;
        if (this.#differs === 0) this.#lastAgreed = tree.size;
      } else {
        this.#differs += 1;
        this.#report.tampered(
          "checkpoint_contradicts",
          `The checkpoint that you supplied contradicts the first ${counted(tree.size)} entries: between entry ${this.#lastAgreed + 1} and entry ${tree.size} something was changed, added or removed.`,
          tree.size,
        );
      }
    }
  }

  /** Reports the result for all checkpoints. MUST be called once the tree is complete. @throws SignaturesUnchecked */
  async finish(keys: BundleKeys, tools: VerifyTools): Promise<void> {
    if (this.#trust.checkpoints.length === 0) return;
    if (this.#fitting.length === 0) {
      this.#report.undecided(
        "no_checkpoint_of_this_ledger",
        `None of the checkpoints that you supplied belongs to this ledger, ${this.#manifest.origin}.`,
      );
      return;
    }
    this.#reportUncompared();
    const { size } = this.#manifest.tree;
    for (const each of this.#fitting) {
      // A checkpoint past the end is undecided, whoever signed it.
      if (each.checkpoint.size > size || !(await this.#isSigned(each, keys, tools))) continue;
      if (this.#agreed.has(each)) this.#covered = Math.max(this.#covered, each.checkpoint.size);
    }
    const agreed = this.#agreed.size;
    const left = this.#fitting.length - agreed - this.#differs;
    this.#report.fact(
      "Checkpoints given",
      `${counted(agreed)} agree${agreed > 0 ? `, the last of ${counted(this.#greatestAgreed)} entries` : ""}, ${counted(this.#differs)} contradict, ${counted(left)} could not be compared`,
    );
  }

  /**
   * A checkpoint past the bundle's end is never outweighed by older ones that agree, because the bundle may have been
   * truncated to hide later entries. A checkpoint before the range is outweighed by any that agrees, because that one
   * includes all earlier entries.
   */
  #reportUncompared(): void {
    const { tree } = this.#manifest;
    const last = this.#fitting.reduce((most, { checkpoint }) => Math.max(most, checkpoint.size), 0);
    if (last > tree.size) {
      this.#report.undecided(
        "checkpoint_not_comparable",
        `A checkpoint that you supplied covers ${counted(last)} entries, but the bundle ends with entry ${counted(tree.size)}: it is older than the checkpoint, or was truncated to hide later entries. Request a newer bundle, or GET /v1/ledger/consistency?from=${tree.size}&to=${last}.`,
      );
    } else if (last > 0 && this.#greatestAgreed === 0 && this.#differs === 0) {
      this.#report.undecided(
        "checkpoint_not_comparable",
        `The checkpoint that you supplied covers ${counted(last)} entries, all before the bundle's range. Request a bundle from the beginning, or GET /v1/ledger/consistency?from=${last}&to=${tree.size}.`,
      );
    }
  }

  /**
   * Whether a key that counts has signed a checkpoint. If the auditor supplied a key, all keys in the bundle count,
   * because the supplied key has signed the list of them. Without a supplied key, anyone may have made that list.
   * Then the checkpoint's key must be the one that signed the bundle, or vouch for it.
   */
  async #isSigned(
    { note, checkpoint }: SignedCheckpoint,
    keys: BundleKeys,
    tools: VerifyTools,
  ): Promise<boolean> {
    const { size } = checkpoint;
    const which = `The checkpoint of ${counted(size)} entries that you supplied`;
    const { inside, trusted, changes } = keys;
    try {
      const signers = await signersOf(note, [...trusted, ...inside], tools.verifySignature);
      const present = inside[0];
      if (signers.length === 0) {
        this.#report.undecided(
          "checkpoint_key_unknown",
          `${which} is signed by an unknown key: supply that key as well.`,
          size,
        );
        return false;
      }
      if (this.#trust.keys.length > 0) return true;
      if (present && vouchedBy(signers, changes).some((key) => isSameKey(key, present))) return true;
      this.#report.undecided(
        "bundle_key_unvouched",
        `${which} and the bundle are signed by different keys, and nothing proves that one handed over to the other: somebody else may have signed the bundle, or the key was lost and replaced. Ask the gateway's operator for its key, through a channel other than this bundle, and supply it.`,
        size,
      );
    } catch (error) {
      if (!(error instanceof NoteError)) throw error;
      this.#report.undecided("checkpoint_damaged", `${which} is invalid: ${error.message}.`, size);
    }
    return false;
  }
}
