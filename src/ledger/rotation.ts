import type { Clock } from "../base/clock.ts";
import { INSERT_CHECKPOINT } from "./checkpoints.ts";
import type { Draft } from "./entry.ts";
import type { LedgerKeys } from "./keys.ts";
import type { Ledger } from "./ledger.ts";
import { checkpointText } from "./proof/checkpoint.ts";
import { formatNote } from "./proof/note.ts";
import type { SignedHead } from "./proofs.ts";
import { TreeReader } from "./tiles.ts";

export interface RotationParts {
  readonly ledger: Ledger;
  readonly keys: LedgerKeys;
  readonly clock: Clock;
  /** All of them: they share the key. */
  workspaces(): readonly { readonly id: number; readonly name: string }[];
  /** Told of each checkpoint that both keys have signed, once it is stored. */
  signed(workspaceId: number, head: SignedHead): void;
}

const ACTION = "ledger.rotate_key";

/**
 * Changes the signing key. Each ledger gets an entry that names both keys, and a checkpoint over it that both have signed: who
 * trusts the old key can go on to the new one from there. All of it is one transaction, and the old key is gone after it.
 *
 * @param origin of the entries: who asked for it
 */
export async function rotateKey(
  { ledger, keys, clock, workspaces, signed }: RotationParts,
  origin: Pick<Draft, "actor" | "channel" | "requestId">,
): Promise<void> {
  await keys.rotate(async (tx, change) => {
    for (const { id, name } of workspaces()) {
      const size = await ledger.append(tx, id, {
        ...origin,
        phase: "single",
        action: ACTION,
        outcome: "succeeded",
        detail: change.verifierKeys(name),
      });
      const root = await new TreeReader(tx, id).root(size);
      const text = checkpointText({ origin: keys.originOf(name), size, root });
      const note = formatNote({ text, signatures: change.signBoth(name, text) });
      await tx.run(INSERT_CHECKPOINT, [id, size, note, clock.now()]);
      tx.onCommit(() => signed(id, { size, root, note }));
    }
  });
}

/** Records that a lost key was replaced: nothing but this entry speaks for the new one. */
export async function recordLostKey({
  ledger,
  keys,
  workspaces,
}: Omit<RotationParts, "signed">): Promise<void> {
  for (const { id, name } of workspaces()) {
    const { current, former } = keys.verifierKeys(name);
    await ledger.record(id, {
      phase: "single",
      action: ACTION,
      outcome: "succeeded",
      code: "key_lost",
      channel: "system",
      actor: "system",
      detail: { from: former.at(-1), to: current },
    });
  }
}
