import type { Clock } from "../../base/clock.ts";
import { StoreUnavailable, type Tx } from "../../store/db.ts";
import { storeCheckpoint } from "../checkpoints/checkpoints.ts";
import type { EntryDraft } from "../entry.ts";
import type { LedgerHeads } from "../heads/heads.ts";
import type { Ledger } from "../ledger.ts";
import { checkpointText } from "../proof/checkpoint.ts";
import { formatNote } from "../proof/note.ts";
import type { SignedHead } from "../reading/proofs.ts";
import type { LedgerKeys } from "./keys.ts";

export interface RotationParts {
  readonly ledger: Ledger;
  readonly heads: LedgerHeads;
  readonly keys: LedgerKeys;
  readonly clock: Clock;
  /** All workspaces, since they share the key. */
  workspaces(): readonly { readonly id: number; readonly name: string }[];
  /** Called with each checkpoint that both keys have signed, once it is stored. */
  signed(workspaceId: number, head: SignedHead): void;
  /** Called once the key is in force. */
  replaced(): void;
}

const ACTION = "ledger.rotate_key";

/**
 * Changes the signing key. Each ledger gets an entry that names both keys, and a checkpoint over it signed by both,
 * so whoever trusts the old key can trust the new one from there. All of this is one transaction, after which the old
 * key is discarded.
 *
 * @param origin Who requested the change, for the entries
 */
export async function rotateKey(
  { ledger, heads, keys, clock, workspaces, signed, replaced }: RotationParts,
  origin: Pick<EntryDraft, "actor" | "channel" | "requestId">,
): Promise<void> {
  const ids = () => workspaces().map(({ id }) => id);
  await keys.rotate(ids, async (tx, change) => {
    await requireAll(tx);
    for (const { id, name } of workspaces()) {
      await ledger.append(tx, id, {
        ...origin,
        phase: "single",
        action: ACTION,
        outcome: "succeeded",
        detail: change.verifierKeys(name),
      });
      const { size, root } = heads.current(tx, id);
      const text = checkpointText({ origin: keys.originOf(name), size, root });
      const note = formatNote({ text, signatures: change.signBoth(name, text) });
      storeCheckpoint(tx, heads, { workspaceId: id, size, note, now: clock.now() });
      tx.onCommit(() => signed(id, { size, root, note }));
    }
  });
  replaced();
}

/**
 * With the tails of the known ledgers locked, no node can create a workspace. One that was created just before would keep
 * a head that only the old key has signed.
 * @throws StoreUnavailable if this node does not know all workspaces yet
 */
async function requireAll(tx: Tx): Promise<void> {
  // The only process of a store knows them.
  if (tx.lockedTails.size === 0) return;
  const rows = await tx.all<{ id: number }>("SELECT id FROM workspaces");
  if (rows.every(({ id }) => tx.ledgers.includes(id))) return;
  throw new StoreUnavailable(
    "another node has just created a workspace; change the key again in a few seconds",
  );
}

/** Replaces the lost key with a new one and records it. Nothing but this entry vouches for the new key. */
export async function replaceLostKey(
  tx: Tx,
  { ledger, keys, workspaces }: Pick<RotationParts, "ledger" | "keys" | "workspaces">,
): Promise<void> {
  await keys.replaceLost(tx);
  for (const { id, name } of workspaces()) {
    const { current, former } = keys.verifierKeys(name);
    await ledger.append(tx, id, {
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
