import type { Api } from "../../../http/api.ts";

export type ConnectorBody = Api["POST /v1/connectors"]["body"];

/** A variable or header as typed. `key` only identifies the row. */
export interface DraftPair {
  readonly key: number;
  readonly name: string;
  readonly value: string;
}

/** An MCP connection as typed. Fields of other transports are kept but not sent. */
export interface McpDraft {
  readonly type: "stdio" | "http" | "sse";
  readonly command: string;
  /** One argument on each line. */
  readonly args: string;
  readonly env: readonly DraftPair[];
  readonly url: string;
  readonly headers: readonly DraftPair[];
}

export interface OpenApiDraft {
  readonly source: "url" | "text" | "file";
  readonly url: string;
  readonly text: string;
  readonly file: { readonly name: string; readonly text: string } | null;
  readonly baseUrl: string;
  readonly auth: "none" | "bearer" | "basic" | "header" | "query";
  readonly token: string;
  readonly username: string;
  readonly password: string;
  /** Name of the header or query parameter. */
  readonly name: string;
  readonly value: string;
}

/** A request body, or errors by JSON pointer. */
export type DraftResult =
  | { readonly body: ConnectorBody; readonly errors?: undefined }
  | { readonly body?: undefined; readonly errors: ReadonlyMap<string, string> };

let lastKey = 0;

export function newPair(name = "", value = ""): DraftPair {
  lastKey += 1;
  return { key: lastKey, name, value };
}

export function emptyMcp(type: McpDraft["type"]): McpDraft {
  return { type, command: "", args: "", env: [newPair()], url: "", headers: [newPair()] };
}

export const EMPTY_OPENAPI: OpenApiDraft = {
  source: "url",
  url: "",
  text: "",
  file: null,
  baseUrl: "",
  auth: "none",
  token: "",
  username: "",
  password: "",
  name: "",
  value: "",
};

/** Whether anything was typed. */
export function isMcpTyped({ command, args, env, url, headers }: McpDraft): boolean {
  const pairs = [...env, ...headers].flatMap(({ name, value }) => [name, value]);
  return [command, args, url, ...pairs].some((text) => text !== "");
}

/** Whether anything was typed or chosen. */
export function isOpenApiTyped(draft: OpenApiDraft): boolean {
  const fields = Object.keys(EMPTY_OPENAPI) as (keyof OpenApiDraft)[];
  return fields.some((field) => draft[field] !== EMPTY_OPENAPI[field]);
}

/** Program arguments: each line is one argument, including its spaces. */
function argsOf(text: string): string[] {
  return text.split(/\r?\n/).filter((line) => line !== "");
}

/** `scopes`: patterns separated by lines, spaces or commas; none means all tools. */
function common(name: string, scopes: string): Pick<ConnectorBody, "name" | "scopes"> {
  const globs = scopes.split(/[\s,]+/).filter((glob) => glob !== "");
  return globs.length === 0 ? { name: name.trim() } : { name: name.trim(), scopes: globs };
}

export function mcpBody(name: string, scopes: string, draft: McpDraft): DraftResult {
  const errors = new Map<string, string>();
  const { type } = draft;
  if (type === "stdio") {
    const env = recordOf(draft.env, "/transport/env", errors);
    if (draft.command.trim() === "") errors.set("/transport/command", "is required");
    if (errors.size > 0) return { errors };
    const transport = { type, command: draft.command.trim(), args: argsOf(draft.args), env };
    return { body: { ...common(name, scopes), kind: "mcp", transport } };
  }
  const headers = recordOf(draft.headers, "/transport/headers", errors);
  if (draft.url.trim() === "") errors.set("/transport/url", "is required");
  if (errors.size > 0) return { errors };
  const transport = { type, url: draft.url.trim(), headers };
  return { body: { ...common(name, scopes), kind: "mcp", transport } };
}

export function openApiBody(name: string, scopes: string, draft: OpenApiDraft): DraftResult {
  const spec = { url: draft.url.trim(), text: draft.text, file: draft.file?.text ?? "" }[draft.source];
  if (spec.trim() === "") return { errors: new Map([["/spec", "is required"]]) };
  if (draft.source === "url" && !/^https?:\/\//i.test(spec)) {
    return { errors: new Map([["/spec", "is not an http or https address"]]) };
  }
  const auth = authOf(draft);
  return {
    body: {
      ...common(name, scopes),
      kind: "openapi",
      spec,
      ...(draft.baseUrl.trim() === "" ? {} : { base_url: draft.baseUrl.trim() }),
      ...(auth ? { auth } : {}),
    },
  };
}

function authOf({ auth, token, username, password, name, value }: OpenApiDraft): ConnectorBody["auth"] {
  switch (auth) {
    case "none":
      return undefined;
    case "bearer":
      return { type: auth, token };
    case "basic":
      return { type: auth, username, password };
    default:
      return { type: auth, name: name.trim(), value };
  }
}

/** JSON pointer of a variable or header in the API's errors (RFC 6901). */
export function pairPath(prefix: string, { name }: DraftPair): string {
  return `${prefix}/${name.trim().replaceAll("~", "~0").replaceAll("/", "~1")}`;
}

/** Rows without a name and a value are ignored. */
function recordOf(
  pairs: readonly DraftPair[],
  prefix: string,
  errors: Map<string, string>,
): Record<string, string> {
  const entries: [string, string][] = [];
  const seen = new Set<string>();
  for (const pair of pairs) {
    const name = pair.name.trim();
    if (name === "" && pair.value === "") continue;
    if (name === "") errors.set(pairPath(prefix, pair), "needs a name");
    else if (seen.has(name)) errors.set(pairPath(prefix, pair), "appears twice");
    seen.add(name);
    entries.push([name, pair.value]);
  }
  return Object.fromEntries(entries);
}

/** Parses `NAME=value` or `Name: value` lines, as in .env files and HTTP logs; undefined if a line is neither. */
export function pairsIn(text: string, mark: "=" | ":"): DraftPair[] | undefined {
  const lines = text.split(/\r?\n/).filter((line) => line.trim() !== "" && !line.trim().startsWith("#"));
  const form =
    mark === "=" ? /^\s*(?:export\s+)?([A-Za-z_]\w*)\s*=\s*(.*?)\s*$/ : /^\s*([^\s:]+)\s*:\s*(.*?)\s*$/;
  const found = lines.map((line) => form.exec(line));
  if (found.length === 0 || found.includes(null)) return undefined;
  return found.map((match) => newPair(match?.[1] ?? "", unquoted(match?.[2] ?? "")));
}

function unquoted(value: string): string {
  return /^(["']).*\1$/s.test(value) && value.length >= 2 ? value.slice(1, -1) : value;
}
