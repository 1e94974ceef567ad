import type { Tx } from "../../store/db.ts";
import type { Ledger } from "../ledger.ts";
import type { UnsignedLedger } from "./heads.ts";

/**
 * Records, in each ledger that predates signed heads, that its heads are signed from here on, and how many entries a
 * checkpoint covered. For entries after that checkpoint, this signature is the only evidence. The transaction signs
 * all heads.
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
  tx.write("DELETE FROM meta WHERE key = 'ledger_heads'");
}
