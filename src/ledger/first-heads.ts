import type { Tx } from "../store/db.ts";
import type { Ledger } from "./ledger.ts";
import type { UnsignedLedger } from "./open-heads.ts";

/**
 * Records in each ledger from before heads were signed that it is signed from here on, and how much of it was covered by a
 * checkpoint: for what came after that checkpoint, nobody vouches but this signature. The transaction signs all heads.
 */
export async function signFirstHeads(
  tx: Tx,
  ledger: Pick<Ledger, "append">,
  unsigned: readonly UnsignedLedger[],
): Promise<void> {
  for (const { workspaceId, size, checkpointSize } of unsigned) {
    await ledger.append(tx, workspaceId, {
      phase: "single",
      action: "ledger.sign_head",
      outcome: "succeeded",
      channel: "system",
      actor: "system",
      detail: { size, checkpoint_size: Math.max(0, checkpointSize) },
    });
  }
  await tx.run("DELETE FROM meta WHERE key = 'ledger_heads'");
}
