import { useCallback, useRef, useState } from "preact/hooks";
import type { UsageReport } from "../../../http/api.ts";
import type { ApiProblem } from "../../api/problem.ts";
import { useData } from "../../state/use-data.ts";
import { beginningOf, RANGES, type RangeName } from "./ranges.ts";

export interface UsageReading {
  /** The latest report of this range; undefined before the first. */
  readonly report: UsageReport | undefined;
  /** When it was requested, in milliseconds since the Unix epoch. */
  readonly readAt: number;
  readonly problem: ApiProblem | null;
  reload(): void;
}

/** Usage of a range that ends now. The previous report stays while a new one is read. */
export function useUsageReport(range: RangeName, mayRead: boolean): UsageReading {
  const [asked, setAsked] = useState({ range, at: Date.now() });
  // A new range is read at once; the same range on request.
  const current = asked.range === range ? asked : { range, at: Date.now() };
  if (current !== asked) setAsked(current);
  const { step } = RANGES[range];
  const query = { step, from: beginningOf(range, current.at) };
  const { data, problem, reload: readAgain } = useData("GET /v1/usage", mayRead ? { query } : null);
  const last = useRef<{
    readonly range: RangeName;
    readonly at: number;
    readonly report: UsageReport;
  } | null>(null);
  if (data) last.current = { range, at: current.at, report: data };
  const shown = last.current?.range === range ? last.current : null;
  const reload = useCallback(() => setAsked((before) => ({ ...before, at: Date.now() })), []);
  return {
    report: shown?.report,
    readAt: shown?.at ?? current.at,
    problem,
    reload: problem ? readAgain : reload,
  };
}
