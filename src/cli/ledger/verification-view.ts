import type { Verdict, Verification, VerificationFinding } from "../../ledger/proof/verification.ts";
import type { LedgerVerification } from "../../ledger/verify/directory.ts";
import { print } from "../output.ts";

const IN_A_WORD: Readonly<Record<Verdict, string>> = {
  holds: "holds",
  tampered: "TAMPERED WITH",
  undecided: "cannot be decided",
};

const IN_A_SENTENCE: Readonly<Record<Verdict, string>> = {
  holds: "Holds: nothing was changed, added or removed, as far as the signatures can show.",
  tampered: "Tampered with: data was changed, added or removed as reported above.",
  undecided: "Cannot be decided: there is no sign of tampering, but the evidence named above is missing.",
};

/** Anyone with access to the machine has its key, so without outside evidence nothing more can be said. */
const ALONE =
  "This used only the data's own keys. To rule out a rewritten ledger, add the verifier key (--key) and a checkpoint kept elsewhere (--checkpoint).";

/**
 * Human-readable output: a paragraph for each workspace, then the verdict. `isAlone`: neither key nor checkpoint came
 * from outside the verified data.
 */
export function printVerification(
  result: Verification & { readonly ledgers?: readonly LedgerVerification[] },
  isAlone: boolean,
): void {
  const { ledgers = [] } = result;
  printPart(null, result);
  for (const ledger of ledgers) {
    printPart(`Workspace ${ledger.workspace}: ${IN_A_WORD[ledger.verdict]}`, ledger);
  }
  print(IN_A_SENTENCE[result.verdict]);
  if (isAlone && result.verdict === "holds") print(ALONE);
}

function printPart(title: string | null, { facts, findings }: Omit<Verification, "verdict">): void {
  if (title === null && facts.length === 0 && findings.length === 0) return;
  if (title !== null) print(plain(title));
  const width = Math.max(0, ...facts.map(({ label }) => label.length)) + 2;
  for (const { label, value } of facts) print(plain(`  ${label.padEnd(width)}${value}`));
  for (const finding of findings) print(plain(`  ${mark(finding)} ${finding.message} [${finding.code}]`));
  print("");
}

function mark({ verdict }: VerificationFinding): string {
  return verdict === "tampered" ? "!" : "?";
}

/** Removes control characters: names in a foreign file may contain terminal escapes. */
function plain(line: string): string {
  return line.replace(/\p{C}/gu, "\ufffd");
}
