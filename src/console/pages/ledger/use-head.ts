import { useCallback, useEffect, useState } from "preact/hooks";
import type { ApiProblem } from "../../api/problem.ts";
import { useSession } from "../../state/session.tsx";
import { useData } from "../../state/use-data.ts";
import { type HeadJudgement, judgeHead, seenCheckpoint } from "./judge-head.ts";
import type { OwnReads } from "./own-reads.ts";
import { forgetHead, type RememberedHead, readRememberedHead, rememberHead } from "./remembered-head.ts";

/** The ledger's head when the page asked for it. */
export interface ShownHead {
  readonly judgement: HeadJudgement | null;
  /** What this browser had seen before the page was opened. */
  readonly seen: RememberedHead | null;
  /** The number of entries seen before. */
  readonly seenSize: number;
  /** Whether the ledger has fewer entries than were seen before. */
  readonly isShorter: boolean;
  /** When the checkpoint was requested and signed. RFC 3339. */
  readonly at: string | null;
  readonly problem: ApiProblem | null;
  reload(): void;
  /** Starts over with the server's current state. */
  forget(): void;
}

/**
 * Reads the signed head, compares it with what this browser has seen, and remembers it if every check succeeds. A
 * head that fails one is never remembered.
 */
export function useHead(ownReads: OwnReads): ShownHead {
  const { workspace } = useSession().session;
  const [seen, setSeen] = useState(() => readRememberedHead(workspace));
  const seenSize = (seen && seenCheckpoint(seen)?.size) ?? 0;
  const answered = (headers: Headers) => void ownReads.note(headers);
  const growth = useData("GET /v1/ledger/consistency", { query: { from: seenSize }, answered });
  const key = useData("GET /v1/ledger/key", { answered });
  const [judged, setJudged] = useState<{ readonly judgement: HeadJudgement; readonly at: string } | null>(
    null,
  );

  useEffect(() => {
    const { data } = growth;
    const keys = key.data;
    if (data === undefined || keys === undefined) {
      setJudged(null);
      return undefined;
    }
    let isCurrent = true;
    void judgeHead(data, keys, seen).then((judgement) => {
      if (!isCurrent) return;
      const at = new Date().toISOString();
      setJudged({ judgement, at });
      const isGood = judgement.growth === "first" || judgement.growth === "grown";
      if (judgement.signed.verdict === "good" && isGood) {
        rememberHead(workspace, { note: data.checkpoint, vkey: keys.vkey, at, since: seen?.since ?? at });
      }
    });
    return () => {
      isCurrent = false;
    };
  }, [growth.data, key.data, seen, workspace]);

  const reload = useCallback(() => {
    growth.reload();
    key.reload();
  }, [growth.reload, key.reload]);
  const forget = useCallback(() => {
    forgetHead(workspace);
    setSeen(null);
  }, [workspace]);
  const isShorter = seen !== null && growth.problem?.fields.has("/from") === true;
  return {
    judgement: judged?.judgement ?? null,
    seen,
    seenSize,
    isShorter,
    at: judged?.at ?? null,
    problem: isShorter ? key.problem : (growth.problem ?? key.problem),
    reload,
    forget,
  };
}
