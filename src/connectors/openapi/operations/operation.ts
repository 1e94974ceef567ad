import type { JsonMap } from "../json.ts";

/** Where a parameter's value is sent. */
export type ParameterLocation = "path" | "query" | "header" | "cookie";

/** An operation of the document, merged with the fields of its path. */
export interface ApiOperation {
  /** In upper case. */
  readonly method: string;
  readonly path: string;
  /** The Operation Object. */
  readonly fields: JsonMap;
  /** Parameter Objects with references resolved, those of the path first. Each name appears once per location. */
  readonly parameters: readonly JsonMap[];
  /** `servers` of the operation or of its path. */
  readonly servers: unknown;
}

/** TRACE echoes the request, including its credentials; `fetch` refuses it. */
const REFUSED_METHOD = "trace";
const METHODS = ["get", "put", "post", "delete", "options", "head", "patch", REFUSED_METHOD] as const;

export const isSafe = (method: string): boolean =>
  method === "GET" || method === "HEAD" || method === "OPTIONS";

/** The operation's name in messages, such as "GET /pets". */
export const titleOf = ({ method, path }: Pick<ApiOperation, "method" | "path">): string =>
  `${method} ${path}`;

export function methodsOf(item: JsonMap): string[] {
  return METHODS.filter((method) => Object.hasOwn(item, method));
}
