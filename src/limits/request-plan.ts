/**
 * The variable that limits how many HTTP requests a process lets Bun send at once, whatever their purpose. All others
 * wait without a time limit. Bun reads it only when the process starts.
 */
export const REQUEST_LIMIT_VARIABLE = "BUN_CONFIG_MAX_HTTP_REQUESTS";
const DEFAULT_LIMIT = 256;
const HIGHEST_LIMIT = 65_535;

/** Connectors' requests: tool calls, and streams, which are counted separately so they take no places from calls. */
export const CONNECTOR_REQUESTS = 96;
export const CONNECTOR_STREAMS = 64;
/**
 * Requests for vectors of documents. Vectors for queries are counted separately, so queries do not wait behind
 * documents.
 */
export const DOCUMENT_EMBEDDINGS = 2;
export const QUERY_EMBEDDINGS = 16;
/** Webhooks, and aborted requests that are not gone yet. */
const OTHERS = 10;
/** The program's descriptors that are not requests: files, threads, the store and child processes. */
const OTHER_DESCRIPTORS = 128;
const LEAST_MODEL_REQUESTS = 4;

/**
 * How many requests to models can be in flight: as many as the process can send, minus those reserved for everything
 * else. So no kind of request waits for another kind inside Bun, which has no fair queue.
 * @param variable the environment's REQUEST_LIMIT_VARIABLE as it was when the process started
 * @param descriptors the descriptors that clients' connections leave for the program; null without a limit
 */
export function modelRequests(variable: string | undefined, descriptors: number | null): number {
  const others = CONNECTOR_REQUESTS + CONNECTOR_STREAMS + DOCUMENT_EMBEDDINGS + QUERY_EMBEDDINGS + OTHERS;
  const open = descriptors === null ? Number.POSITIVE_INFINITY : descriptors - OTHER_DESCRIPTORS;
  return Math.max(LEAST_MODEL_REQUESTS, Math.min(requestLimit(variable), open) - others);
}

/** The limit that Bun derives from the variable. Invalid values leave the default. */
function requestLimit(variable: string | undefined): number {
  if (variable === undefined || !/^\d+$/.test(variable)) return DEFAULT_LIMIT;
  const limit = Number(variable);
  return limit >= 1 && limit <= HIGHEST_LIMIT ? limit : DEFAULT_LIMIT;
}
