import type { ReadOnlyDatabase } from "../../store/sqlite/read-only.ts";
import type { TreeHead } from "../proof/check.ts";
import { parseSignedCheckpoint, type SignedCheckpoint } from "../proof/checkpoint.ts";
import { isEqual } from "../proof/hash.ts";
import { NoteError, signersOf, type VerifierKey } from "../proof/note.ts";
import type { VerifyTools } from "../proof/verification.ts";
import { TREE } from "../tree-hash.ts";
import type { VerifiedHead } from "./head.ts";
import { counted, type VerificationReport } from "./report.ts";
import { CheckpointTrack } from "./track.ts";
import type { LedgerTree } from "./tree.ts";
import type { TreePosition } from "./walk.ts";

const ROWS =
  "SELECT size, note FROM main.ledger_checkpoints NOT INDEXED WHERE workspace_id = $1 ORDER BY size";

/** Maximum number of checkpoints by unknown keys that are listed individually. */
const MOST_REMEMBERED = 32;

interface StoredRoot {
  readonly size: number;
  readonly note: unknown;
}

export interface RootCheckParts {
  readonly database: ReadOnlyDatabase;
  readonly workspaceId: number;
  /** The origin that the ledger's checkpoints must name. */
  readonly origin: string;
  /** All possible signers, under the name they have in this ledger. */
  readonly keys: readonly VerifierKey[];
  /** This ledger's checkpoints from elsewhere. */
  readonly given: readonly SignedCheckpoint[];
  /** The head that the last commit signed; null if there is none. */
  readonly head: VerifiedHead | null;
  /** The tree of the entries walked so far. */
  readonly tree: LedgerTree;
  readonly tools: VerifyTools;
  readonly report: VerificationReport;
}

/** A checkpoint that somebody kept elsewhere. */
export interface KeptCheckpoint {
  /** The hex of each key that signed it. */
  readonly keys: readonly string[];
  /** Number of entries covered; 0 if its root does not match the entries. */
  readonly covers: number;
}

/**
 * Compares what was signed with the tree of the entries: the head of the last commit, the stored checkpoints, and
 * those from elsewhere.
 */
export class RootCheck {
  readonly stored = new CheckpointTrack();
  readonly given = new CheckpointTrack();
  readonly head = new CheckpointTrack();
  /** By the hex of a key, the largest size that it has signed with a matching root. */
  readonly signed = new Map<string, number>();
  /** Checkpoints from elsewhere with a valid signature. */
  readonly kept: KeptCheckpoint[] = [];
  /** Checkpoints that could not be compared, because earlier entries are missing or unknown. */
  uncompared = 0;
  readonly #parts: RootCheckParts;
  readonly #rows: Generator<StoredRoot, void>;
  #row: StoredRoot | undefined;
  readonly #givenLeft: SignedCheckpoint[];
  #headLeft: VerifiedHead | null;
  /** Size of the next checkpoint. */
  #next = 0;
  #unsure = 0;
  /** Number of stored checkpoints that no known key has signed. */
  #strangers = 0;
  readonly #strangersAt: number[] = [];

  constructor(parts: RootCheckParts) {
    this.#parts = parts;
    this.#rows = parts.database.rows<StoredRoot>(ROWS, [parts.workspaceId]);
    this.#row = this.#rows.next().value ?? undefined;
    this.#headLeft = parts.head;
    this.#givenLeft = parts.given.toSorted((a, b) => b.checkpoint.size - a.checkpoint.size);
    this.#look();
  }

  /** MUST be called with each step, in order and after the tree, and awaited if it returns a promise. */
  take({ seq, isSure }: TreePosition): Promise<void> | undefined {
    if (!isSure) this.#unsure = seq;
    return seq >= this.#next ? this.#settle(seq) : undefined;
  }

  /** The remaining checkpoints are past the ledger's end. */
  async end(): Promise<void> {
    await this.#settle(Number.POSITIVE_INFINITY);
    this.#reportStrangers();
  }

  /** Closes the query. */
  close(): void {
    this.#rows.return();
  }

  async #settle(upTo: number): Promise<void> {
    for (let row = this.#row; row && row.size <= upTo; row = this.#row) {
      this.#row = this.#rows.next().value ?? undefined;
      const checkpoint = this.#parse(row);
      const signers = checkpoint ? await this.#storedSigners(checkpoint) : [];
      if (checkpoint && signers.length > 0) this.#judge(this.stored, checkpoint.checkpoint, signers, upTo);
    }
    const head = this.#headLeft;
    if (head && head.size <= upTo) {
      this.#headLeft = null;
      this.#judge(this.head, head, head.signers, upTo);
    }
    for (
      let next = this.#givenLeft.at(-1);
      next && next.checkpoint.size <= upTo;
      next = this.#givenLeft.at(-1)
    ) {
      this.#givenLeft.pop();
      const signers = await this.#givenSigners(next);
      if (!signers) continue;
      const isRight = this.#judge(this.given, next.checkpoint, signers, upTo);
      if (signers.length === 0) continue;
      const keys = signers.map(({ publicKey }) => publicKey.toHex());
      this.kept.push({ keys, covers: isRight ? next.checkpoint.size : 0 });
    }
    this.#look();
  }

  #look(): void {
    const sizes = [this.#row?.size, this.#givenLeft.at(-1)?.checkpoint.size, this.#headLeft?.size];
    this.#next = Math.min(...sizes.map((size) => size ?? Number.POSITIVE_INFINITY));
  }

  /** @returns whether the entries have this root */
  #judge(
    track: CheckpointTrack,
    { size, root }: TreeHead,
    signers: readonly VerifierKey[],
    upTo: number,
  ): boolean {
    if (signers.length > 0) track.count += 1;
    if (size > 0 && upTo === Number.POSITIVE_INFINITY) {
      track.beyond = Math.max(track.beyond, size);
      return false;
    }
    const { tree } = this.#parts;
    if (size > 0 && (tree.isLost || size !== tree.size)) {
      this.uncompared += 1;
    } else if (isEqual(root, size === 0 ? TREE.empty() : tree.root())) {
      track.isRight(size, this.#parts.report);
      for (const { publicKey } of signers) {
        const key = publicKey.toHex();
        this.signed.set(key, Math.max(this.signed.get(key) ?? 0, size));
      }
      this.#unsure = 0;
      return true;
    } else if (this.#unsure > track.lastGood) {
      // The entry assumed to be the replaced one was not. The replacement has already been reported.
      tree.lose();
      this.uncompared += 1;
    } else {
      track.isWrong(size);
    }
    return false;
  }

  #parse({ size, note }: StoredRoot): SignedCheckpoint | null {
    const { report, origin } = this.#parts;
    try {
      const signed = parseSignedCheckpoint(String(note));
      if (signed.checkpoint.origin !== origin) {
        report.tampered(
          "checkpoint_of_another_ledger",
          `The stored checkpoint of ${size} entries belongs to another ledger, ${JSON.stringify(signed.checkpoint.origin)}.`,
          size,
        );
        return null;
      }
      if (signed.checkpoint.size === size) return signed;
      report.tampered(
        "checkpoint_changed",
        `The row of the stored checkpoint of ${size} entries contains a checkpoint of ${signed.checkpoint.size} entries: it was changed.`,
        size,
      );
    } catch (error) {
      if (!(error instanceof NoteError)) throw error;
      report.tampered(
        "checkpoint_changed",
        `The stored checkpoint of ${size} entries is invalid: ${error.message}. It was changed.`,
        size,
      );
    }
    return null;
  }

  async #storedSigners({ checkpoint, note }: SignedCheckpoint): Promise<readonly VerifierKey[]> {
    const { report, keys, tools } = this.#parts;
    const { size } = checkpoint;
    const which = `The stored checkpoint of ${size} entries`;
    try {
      const signers = await signersOf(note, keys, tools.verifySignature);
      if (signers.length === 0) {
        this.#strangers += 1;
        if (this.#strangersAt.length < MOST_REMEMBERED) this.#strangersAt.push(size);
      } else if (signers.length < note.signatures.length) {
        const message = `${which} is also signed by a key that is not the ledger's.`;
        report.tampered("checkpoint_of_another_key", message, size);
      }
      return signers;
    } catch (error) {
      if (!(error instanceof NoteError)) throw error;
      report.tampered("checkpoint_changed", `${which} was changed, or never signed: ${error.message}.`, size);
      return [];
    }
  }

  /** If no stored checkpoint is signed by the ledger's keys, the keys were probably changed. */
  #reportStrangers(): void {
    const { report } = this.#parts;
    if (this.stored.count === 0 && this.#strangers > 1) {
      report.tampered(
        "checkpoint_of_another_key",
        `None of the ${counted(this.#strangers)} stored checkpoints is signed by one of the ledger's keys: the keys in the database were changed, or all checkpoints were replaced.`,
      );
      return;
    }
    for (const size of this.#strangersAt) {
      report.tampered(
        "checkpoint_of_another_key",
        `The stored checkpoint of ${size} entries is not signed by any of the ledger's keys: somebody else made it.`,
        size,
      );
    }
  }

  /**
   * Signatures by keys other than the ledger's are ignored, because witnesses may have signed as well. A checkpoint
   * signed only by unknown keys is compared, but vouches for nothing.
   * @returns null if the checkpoint was changed
   */
  async #givenSigners({ checkpoint, note }: SignedCheckpoint): Promise<readonly VerifierKey[] | null> {
    const { report, keys, tools } = this.#parts;
    const which = `The supplied checkpoint of ${checkpoint.size} entries`;
    try {
      const signers = await signersOf(note, keys, tools.verifySignature);
      if (signers.length === 0) {
        report.undecided(
          "checkpoint_key_unknown",
          `${which} is signed by a key that the data directory does not have. If its keys were replaced, everything in it may have been. Supply the key with --key.`,
        );
      }
      return signers;
    } catch (error) {
      if (!(error instanceof NoteError)) throw error;
      report.undecided("checkpoint_damaged", `${which} is invalid: ${error.message}.`);
      return null;
    }
  }
}
