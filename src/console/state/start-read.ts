import { type ApiProblem, asProblem } from "../api/problem.ts";
import type { Feed } from "./feed.ts";

const RETRY_MS = 5_000;

/** Callbacks for the result of a read. They are never called after the read is stopped. */
export interface ReadResult<Value> {
  show(value: Value): void;
  fail(problem: ApiProblem): void;
  /** Called a few seconds after a failure that may be temporary. */
  retry(): void;
}

/** Reads once the feed is connected, so that no change is missed. @returns a function that stops it */
export function startRead<Value>(
  feed: Feed,
  read: (signal: AbortSignal) => Promise<Value>,
  { show, fail, retry }: ReadResult<Value>,
): () => void {
  const abort = new AbortController();
  const { signal } = abort;
  let timer: ReturnType<typeof setTimeout> | undefined;
  feed.ready
    .then(() => read(signal))
    .then((value) => {
      if (!signal.aborted) show(value);
    })
    .catch((error: unknown) => {
      if (signal.aborted) return;
      const problem = asProblem(error);
      fail(problem);
      if (problem.status === 0 || problem.status >= 500) timer = setTimeout(retry, RETRY_MS);
    });
  return () => {
    abort.abort();
    clearTimeout(timer);
  };
}
