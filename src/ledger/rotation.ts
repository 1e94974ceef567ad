import type { Clock } from "../base/clock.ts";
import type { Tx } from "../store/db.ts";
import { INSERT_CHECKPOINT } from "./checkpoints.ts";
import type { Draft } from "./entry.ts";
import type { LedgerKeys } from "./keys.ts";
import type { Ledger } from "./ledger.ts";
import { checkpointText } from "./proof/checkpoint.ts";
import { formatNote } from "./proof/note.ts";
import { TreeReader } from "./tiles.ts";

export interface RotationParts {
  readonly ledger: Ledger;
  readonly keys: LedgerKeys;
  readonly clock: Clock;
  /** All of them: they share the key. */
  workspaces(): readonly { readonly id: number; readonly name: string }[];
}

const ACTION = "ledger.rotate_key";

/**
 * Changes the signing key. Each ledger gets an entry that names both keys, and a checkpoint over it that both have signed: who
 * trusts the old key can go on to the new one from there. All of it is one transaction, and the old key is gone after it.
 *
 * @param origin of the entries: who asked for it
 */
export async function rotateKey(
  { ledger, keys, clock, workspaces }: RotationParts,
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
      const text = checkpointText({ origin: keys.originOf(name), size, root: await rootOf(tx, id, size) });
      const note = formatNote({ text, signatures: change.signBoth(name, text) });
      await tx.run(INSERT_CHECKPOINT, [id, size, note, clock.now()]);
    }
  });
}

/** Records that a lost key was replaced: nothing but this entry speaks for the new one. */
export async function recordLostKey({ ledger, keys, workspaces }: RotationParts): Promise<void> {
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

function rootOf(tx: Tx, workspaceId: number, size: number): Promise<Uint8Array> {
  return new TreeReader(tx, workspaceId).root(size);
}
