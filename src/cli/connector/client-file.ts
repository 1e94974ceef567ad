import Type, { type Static } from "typebox";
import { OperatorError } from "../../base/errors.ts";
import { validator } from "../../base/schema.ts";
import { readFailure, readTextFile } from "../../config/read-file.ts";
import { CONNECTOR_NAME_LENGTH } from "../../connectors/connector.ts";
import { EntryError, placeholders } from "./placeholders.ts";
import { type ConnectorBody, httpTransport, stdioOf } from "./request.ts";
import type { Texts, Variables } from "./values.ts";

/** A server of a client's configuration, with a valid connector name. */
export interface ClientEntry {
  /** The name in the file. */
  readonly entry: string;
  readonly name: string;
  readonly value: unknown;
}

/** Maximum size in bytes of a file. Some also hold a client's other settings. */
const FILE_BYTES = 16 * 1024 * 1024;
const MOST_ENTRIES = 200;

const anyObject = Type.Record(Type.String(), Type.Unknown());
const isObject = validator(anyObject);
const Scalar = Type.Union([Type.String(), Type.Number(), Type.Boolean()]);
const entryShape = validator(
  Type.Object({
    type: Type.Optional(Type.String()),
    command: Type.Optional(Type.String()),
    args: Type.Optional(Type.Array(Type.String())),
    // In VS Code, null removes a variable.
    env: Type.Optional(Type.Record(Type.String(), Type.Union([Scalar, Type.Null()]))),
    url: Type.Optional(Type.String()),
    serverUrl: Type.Optional(Type.String()),
    httpUrl: Type.Optional(Type.String()),
    headers: Type.Optional(Type.Record(Type.String(), Scalar)),
    disabled: Type.Optional(Type.Boolean()),
    enabled: Type.Optional(Type.Boolean()),
  }),
);
type ClientFileEntry = Static<typeof entryShape.schema>;

/** Fields that affect how the program is started and that connectors do not have. */
const NOT_TAKEN = ["cwd", "envFile"];
const TYPES: Readonly<Record<string, "stdio" | "http" | "sse">> = {
  stdio: "stdio",
  local: "stdio",
  sse: "sse",
  http: "http",
  streamable: "http",
  streamablehttp: "http",
};

/** The servers in a client's file, in file order. @throws OperatorError */
export function readClientFile(path: string): readonly ClientEntry[] {
  let text: string;
  try {
    text = readTextFile(path, FILE_BYTES);
  } catch (error) {
    throw new OperatorError(`--import: the file ${path} ${readFailure(error, FILE_BYTES)}`, undefined, 2);
  }
  const servers = serversOf(parse(text, path));
  if (!servers) {
    throw new OperatorError(
      `--import: ${path} has neither mcpServers nor servers`,
      "name a client's configuration: claude_desktop_config.json, .mcp.json, .cursor/mcp.json, .vscode/mcp.json",
      2,
    );
  }
  const entries = Object.entries(servers);
  if (entries.length > MOST_ENTRIES) {
    throw new OperatorError(`--import: ${path} names more than ${MOST_ENTRIES} servers`, undefined, 2);
  }
  const taken = new Set<string>();
  return entries.map(([entry, value]) => ({ entry, name: freeName(entry, taken), value }));
}

/** Parses JSON with comments and trailing commas, as these files contain. */
function parse(text: string, path: string): unknown {
  try {
    return Bun.JSONC.parse(text.replace(/^\uFEFF/, ""));
  } catch {
    // The parser's message may quote the file, which may contain secrets.
    throw new OperatorError(`--import: ${path} is not JSON`, undefined, 2);
  }
}

function serversOf(value: unknown): Readonly<Record<string, unknown>> | undefined {
  if (!isObject.is(value)) return undefined;
  const inner = isObject.is(value.mcp) ? value.mcp : {};
  return [value.mcpServers, value.servers, inner.servers].find((servers) => isObject.is(servers));
}

/** Turns a name into a valid connector name that is not taken. */
function freeName(entry: string, taken: Set<string>): string {
  const words = entry
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, "_")
    .replace(/^_/, "");
  const safe = /^[a-z]/.test(words) ? words : `mcp_${words}`;
  const cut = (length: number): string => safe.slice(0, length).replace(/_$/, "");
  let name = cut(CONNECTOR_NAME_LENGTH);
  for (let number = 2; taken.has(name); number++) {
    name = `${cut(CONNECTOR_NAME_LENGTH - `_${number}`.length)}_${number}`;
  }
  taken.add(name);
  return name;
}

/** Whether the client has disabled it. */
export function isSwitchedOff(value: unknown): boolean {
  return entryShape.is(value) && (value.disabled === true || value.enabled === false);
}

/** The request that adds the entry's server. @throws EntryError */
export function entryRequest({ name, value }: ClientEntry, file: string, env: Variables): ConnectorBody {
  if (!entryShape.is(value)) {
    const [fault] = entryShape.errors(value);
    throw new EntryError(
      `it is not a valid server entry: ${fault?.path ?? ""} ${fault?.message ?? ""}`.trim(),
    );
  }
  const foreign = NOT_TAKEN.find((field) => Object.hasOwn(value, field));
  if (foreign !== undefined) throw new EntryError(`it has ${foreign}, which connectors do not support`);
  const fill = placeholders(file, env);
  return { name, kind: "mcp", transport: transportOf(value, fill) };
}

function transportOf(entry: ClientFileEntry, fill: (text: string) => string): object {
  const { command, args = [], httpUrl, serverUrl } = entry;
  const url = entry.url ?? httpUrl ?? serverUrl;
  if ((command === undefined) === (url === undefined)) {
    throw new EntryError(
      `it has ${command === undefined ? "neither command nor url" : "both command and url"}`,
    );
  }
  const type = entry.type === undefined ? undefined : TYPES[entry.type.toLowerCase().replace(/[-_]/g, "")];
  if (entry.type !== undefined && type === undefined)
    throw new EntryError("its type is not stdio, http or sse");
  if (command !== undefined) {
    if (type !== undefined && type !== "stdio")
      throw new EntryError(`its type is ${type}, but it has a command`);
    return stdioOf([command, ...args].map(fill), texts(entry.env, fill));
  }
  if (type === "stdio") throw new EntryError("its type is stdio, but it has no command");
  const address = fill(url ?? "");
  const named = type ?? (entry.url === undefined ? "http" : httpTransport(address));
  return { type: named, url: address, headers: texts(entry.headers, fill) };
}

function texts(fields: ClientFileEntry["env"] = {}, fill: (text: string) => string): Texts {
  const pairs = Object.entries(fields).flatMap(([key, value]) =>
    value === null ? [] : [[key, fill(String(value))] as const],
  );
  return Object.fromEntries(pairs);
}
