/**
 * Bun sends so many HTTP requests of a process at a time, whatever they are for, and lets all others wait without end. The
 * variable is read when the process starts, and never again.
 */
export const REQUEST_LIMIT_VARIABLE = "BUN_CONFIG_MAX_HTTP_REQUESTS";
const DEFAULT_LIMIT = 256;
const HIGHEST_LIMIT = 65_535;

/** Requests of connectors: calls of tools, and streams, which are counted apart so that they take no call's place. */
export const CONNECTOR_REQUESTS = 96;
export const CONNECTOR_STREAMS = 64;
/** Requests for vectors: documents, and queries, which do not wait behind the documents. */
export const DOCUMENT_EMBEDDINGS = 2;
export const QUERY_EMBEDDINGS = 16;
/** Webhooks, and requests that were given up and are not gone yet. */
const OTHERS = 10;
/** Descriptors of the program that are no requests: files, threads, the store, and programs that it starts. */
const OTHER_DESCRIPTORS = 128;
const LEAST_MODEL_REQUESTS = 4;

/**
 * How many requests to models may be in flight: what the process can send, less what everything else may send. No kind of
 * request then waits for another kind inside of Bun, where nobody takes turns.
 * @param variable the environment's REQUEST_LIMIT_VARIABLE, as it was when the process started
 * @param descriptors what clients' connections leave to the program; null without a limit
 */
export function modelRequests(variable: string | undefined, descriptors: number | null): number {
  const others = CONNECTOR_REQUESTS + CONNECTOR_STREAMS + DOCUMENT_EMBEDDINGS + QUERY_EMBEDDINGS + OTHERS;
  const open = descriptors === null ? Number.POSITIVE_INFINITY : descriptors - OTHER_DESCRIPTORS;
  return Math.max(LEAST_MODEL_REQUESTS, Math.min(requestLimit(variable), open) - others);
}

/** What Bun makes of the variable: what is not a number that it takes leaves the limit as it is. */
function requestLimit(variable: string | undefined): number {
  if (variable === undefined || !/^\d+$/.test(variable)) return DEFAULT_LIMIT;
  const limit = Number(variable);
  return limit >= 1 && limit <= HIGHEST_LIMIT ? limit : DEFAULT_LIMIT;
}
