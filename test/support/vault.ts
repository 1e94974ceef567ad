/** The vault of a running gateway, for tests. Calls that MUST succeed throw if they do not. */
import { SEARCH_MODES } from "../../src/vault/fields.ts";
import type { TestGateway } from "./gateway.ts";

export const MODES = SEARCH_MODES;

/** The scopes of a token that may read and write documents. */
export const AGENT_SCOPES = ["vault:read", "vault:write"];

export interface Written {
  readonly id: string;
  readonly chunks: number;
  readonly vectors: "ready" | "pending";
}

/** A passage in a search's answer. */
export interface Found {
  readonly document_id: string;
  readonly chunk_id: string;
  readonly title: string;
  readonly text: string;
  readonly scope: string;
  readonly score: number;
  readonly source_uri: string | null;
  readonly start: number;
  readonly end: number;
  readonly metadata: object;
  readonly explain?: {
    readonly keyword: { readonly rank: number | null; readonly score: number } | null;
    readonly vector: { readonly rank: number | null; readonly score: number } | null;
    readonly recency: number | null;
    readonly duplicates: readonly string[];
  };
}

/** The response to a search. */
export interface Answer {
  readonly results: readonly Found[];
  readonly mode: string;
  readonly took_ms: number;
  readonly explain?: object;
}

/** A gateway to call. The calls' default token is the gateway's admin token. */
type Caller = Pick<TestGateway, "call">;

/** Writes a document, by default with the title "A note" in the scope `support`. */
export function write(gateway: Caller, document: object, token?: string): Promise<Written> {
  const body = { title: "A note", scope: "support", ...document };
  return must(gateway, [200, 201], "POST", "/v1/vault/documents", body, token);
}

export function search(gateway: Caller, body: object, token?: string): Promise<Answer> {
  return must(gateway, [200], "POST", "/v1/vault/search", body, token);
}

export async function remove(gateway: Caller, id: string, query = "", token?: string): Promise<void> {
  await must(gateway, [204], "DELETE", `/v1/vault/documents/${id}${query}`, undefined, token);
}

/**
 * Makes one call.
 * @throws Error if the answer has another status
 */
export async function must(
  gateway: Caller,
  statuses: readonly number[],
  method: string,
  path: string,
  body?: object,
  token?: string,
  // biome-ignore lint/suspicious/noExplicitAny: tests read arbitrary JSON.
): Promise<any> {
  const answer = await gateway.call(method, path, {
    ...(body === undefined ? {} : { body }),
    ...(token === undefined ? {} : { token }),
  });
  if (!statuses.includes(answer.status)) {
    throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
  }
  return answer.body;
}

export const idsOf = (results: readonly Found[]): string[] => results.map(({ document_id }) => document_id);

/** Text of the given number of paragraphs, each made of words that occur nowhere else. */
export function longText(name: string, paragraphs: number): string {
  return Array.from(
    { length: paragraphs },
    (_, n) =>
      `Paragraph ${n} of ${name}. ${Array.from({ length: 60 }, (_, w) => `${name}${n}x${w}`).join(" ")}.`,
  ).join("\n\n");
}
