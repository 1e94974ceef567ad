import { OperatorError } from "../../../base/errors.ts";
import { verifyDirectory } from "../../../ledger/verify/directory.ts";
import { tools } from "../../../ledger/verify/tools.ts";

/**
 * Verifies all evidence of a database file.
 * @param name what its ledgers belong to, for people
 * @param option names it for `gatehouse ledger verify`
 * @throws OperatorError if something was changed
 */
export async function requireIntact(path: string, name: string, option: string): Promise<void> {
  const trust = { keys: [], checkpoints: [] };
  const { verdict, findings, ledgers } = await verifyDirectory({ path, trust, workspace: null }, tools);
  if (verdict !== "tampered") return;
  const all = [...findings, ...ledgers.flatMap((ledger) => ledger.findings)];
  const [first] = all.filter((finding) => finding.verdict === "tampered");
  throw new OperatorError(
    `the ledgers of ${name} were changed, so they are not copied: ${first?.message ?? ""}`,
    `gatehouse ledger verify ${option} lists everything that was changed`,
  );
}
