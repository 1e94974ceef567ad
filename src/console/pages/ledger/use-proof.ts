import { useEffect, useState } from "preact/hooks";
import { type ApiProblem, asProblem } from "../../api/problem.ts";
import { useData } from "../../state/use-data.ts";
import { checkEntry, type EntryAnswer, type EntryCheck } from "./check-entry.ts";

export interface CheckedProof {
  readonly check: EntryCheck | null;
  /** The signed checkpoint as received. */
  readonly note: string;
  /** When the checkpoint was requested and signed. RFC 3339. */
  readonly at: string;
  readonly problem: ApiProblem | null;
  reload(): void;
}

/** Reads an entry's proof and recomputes it. */
export function useProof(seq: number, entry: EntryAnswer): CheckedProof {
  const proof = useData("GET /v1/ledger/:seq/proof", { params: { seq: String(seq) } });
  const key = useData("GET /v1/ledger/key", {});
  const [checked, setChecked] = useState<{ check: EntryCheck; note: string; at: string } | null>(null);
  const [failed, setFailed] = useState<ApiProblem | null>(null);
  useEffect(() => {
    const [answer, keys] = [proof.data, key.data];
    if (answer === undefined || keys === undefined) return undefined;
    let isCurrent = true;
    const at = new Date().toISOString();
    checkEntry(entry, answer, keys, seq).then(
      (check) => {
        if (!isCurrent) return;
        setChecked({ check, note: answer.checkpoint, at });
        setFailed(null);
      },
      (error: unknown) => {
        if (isCurrent) setFailed(asProblem(error));
      },
    );
    return () => {
      isCurrent = false;
    };
  }, [entry, proof.data, key.data, seq]);
  return {
    check: checked?.check ?? null,
    note: checked?.note ?? "",
    at: checked?.at ?? "",
    problem: proof.problem ?? key.problem ?? failed,
    reload() {
      proof.reload();
      key.reload();
    },
  };
}
