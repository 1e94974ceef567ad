import type { JsonMap } from "../json.ts";

/** Where a parameter's value goes. */
export type Place = "path" | "query" | "header" | "cookie";

/** An operation as the document has it, its path's fields put under its own. */
export interface Operation {
  /** In capitals. */
  readonly method: string;
  readonly path: string;
  /** The Operation Object. */
  readonly fields: JsonMap;
  /** Parameter Objects, references followed, those of the path first; each name once in each place. */
  readonly parameters: readonly JsonMap[];
  /** `servers` of the operation or of its path. */
  readonly servers: unknown;
}

/** Answers with nothing but the request, which holds the credentials; `fetch` refuses it. */
const REFUSED_METHOD = "trace";
const METHODS = ["get", "put", "post", "delete", "options", "head", "patch", REFUSED_METHOD] as const;

export const isSafe = (method: string): boolean =>
  method === "GET" || method === "HEAD" || method === "OPTIONS";

/** "GET /pets", as messages name an operation. */
export const titleOf = ({ method, path }: Pick<Operation, "method" | "path">): string => `${method} ${path}`;

export function methodsOf(item: JsonMap): string[] {
  return METHODS.filter((method) => Object.hasOwn(item, method));
}
