import { type DraftPair, type McpDraft, newPair } from "./drafts.ts";
import { parseLoose } from "./loose-json.ts";
import { fitName } from "./names.ts";

/** A server of a pasted configuration, ready for review. */
export interface PastedServer {
  /** Its name in the configuration. */
  readonly title: string;
  /** A valid connector name derived from it. */
  readonly name: string;
  readonly draft: McpDraft;
  /** Notes for the reader, such as fields without meaning here. */
  readonly notes: readonly string[];
  /** Descriptions of the values that the configuration leaves open, by name. */
  readonly inputs: ReadonlyMap<string, string>;
}

export type Pasted =
  | {
      readonly servers: readonly PastedServer[];
      /** One sentence for each server that could not be read. */
      readonly refused: readonly string[];
    }
  | { readonly message: string };

const MOST_CHARACTERS = 1_000_000;
/** Maximum number of connectors that a workspace may have. */
const MOST_SERVERS = 200;
/** Keys under which clients keep their servers, in order of preference. */
const OUTER = ["mcpServers", "servers", "mcp_servers", "mcp", "context_servers"];
const READ_FIELDS = new Set([
  "type",
  "transport",
  "command",
  "args",
  "env",
  "environment",
  "url",
  "serverUrl",
  "httpUrl",
  "headers",
]);

type Fields = ReadonlyMap<string, unknown>;

/**
 * Reads the servers of a configuration as written by Claude, Cursor, VS Code and similar clients: with or without the
 * outer key, with comments and trailing commas, a single server, or a fragment. Never throws.
 * @param taken names already in use
 */
export function readPaste(text: string, taken: Iterable<string> = []): Pasted {
  if (text.length > MOST_CHARACTERS) return { message: "The text is longer than a million characters." };
  const parsed = parseLoose(text);
  if ("message" in parsed) return parsed;
  const root = fieldsOf(parsed.value);
  if (!root) return { message: "This is JSON, but not an object that contains servers." };
  const servers = serversIn(root);
  if (servers.size === 0) {
    return { message: "It contains no servers. Each needs a command or a url." };
  }
  if (servers.size > MOST_SERVERS) return { message: `It contains more than ${MOST_SERVERS} servers.` };
  const inputs = inputsOf(root);
  const used = new Set(taken);
  const found: PastedServer[] = [];
  const refused: string[] = [];
  for (const [title, value] of servers) {
    const read = readServer(fieldsOf(value));
    if (typeof read === "string") {
      refused.push(`${title.slice(0, 100) || "A server without a name"}: ${read}`);
      continue;
    }
    const name = fitName(title, used);
    used.add(name);
    found.push({ title, name, inputs, ...read });
  }
  return { servers: found, refused };
}

function serversIn(root: Fields): Fields {
  if (isServer(root)) return new Map([[titleOf(root), Object.fromEntries(root)]]);
  for (const key of OUTER) {
    const inner = fieldsOf(root.get(key));
    // VS Code's settings have them under `mcp.servers`.
    if (inner) return serversIn(inner);
  }
  return new Map([...root].filter(([, value]) => isServer(fieldsOf(value))));
}

function isServer(fields: Fields | undefined): boolean {
  if (!fields) return false;
  return ["command", "url", "serverUrl", "httpUrl"].some((key) => {
    const value = fields.get(key);
    return typeof value === "string" || Array.isArray(value);
  });
}

/** A name for a server without one: the program's or the host's name. */
function titleOf(server: Fields): string {
  const name = server.get("name");
  if (typeof name === "string") return name;
  const command = listOf(server.get("command"))?.[0] ?? "";
  const wrapped = listOf(server.get("args"))?.find((argument) => /^@?[a-z0-9][\w./@-]*$/i.test(argument));
  if (/(?:^|[\\/])(?:npx|uvx|bunx|pnpx|docker|node|python3?)(?:\.exe|\.cmd)?$/i.test(command)) {
    return wrapped?.replace(/(?!^)@[^/]*$/, "") ?? command;
  }
  if (command !== "") return command.split(/[\\/]/).at(-1) ?? command;
  const url = [server.get("url"), server.get("serverUrl"), server.get("httpUrl")].find(
    (one) => typeof one === "string",
  );
  return (
    URL.parse(String(url))
      ?.hostname.replace(/^(?:www|mcp|api)\./, "")
      .split(".")[0] ?? ""
  );
}

/** @returns the reason if the server cannot be read */
function readServer(fields: Fields | undefined): string | Pick<PastedServer, "draft" | "notes"> {
  if (!fields) return "it is not an object.";
  const command = listOf(fields.get("command"));
  const url = [fields.get("url"), fields.get("serverUrl"), fields.get("httpUrl")].find(
    (one) => typeof one === "string",
  );
  const notes = notesOn(fields);
  if (command?.[0] !== undefined && command[0] !== "") {
    const args = fields.get("args") === undefined ? [] : listOf(fields.get("args"));
    if (!args) return "its args are not a list of strings.";
    const env = pairsOf(fields.get("env") ?? fields.get("environment"));
    if (!env) return "its env is not an object of strings.";
    const all = [...command.slice(1), ...args];
    if (all.some((argument) => /[\r\n]/.test(argument))) {
      return "an argument has more than one line: add the server over REST.";
    }
    if (all.includes("")) notes.push("An empty argument is left out.");
    return { draft: { ...base("stdio"), command: command[0], args: all.join("\n"), env }, notes };
  }
  if (typeof url !== "string") return "it has neither a command nor a url.";
  const headers = pairsOf(fields.get("headers"));
  if (!headers) return "its headers are not an object of strings.";
  return { draft: { ...base(transportOf(fields, url)), url, headers }, notes };
}

function base(type: McpDraft["type"]): McpDraft {
  return { type, command: "", args: "", env: [], url: "", headers: [] };
}

function transportOf(fields: Fields, url: string): "http" | "sse" {
  const said = String(fields.get("type") ?? fields.get("transport") ?? "").toLowerCase();
  if (said === "sse") return "sse";
  if (said.includes("http") || fields.get("httpUrl") !== undefined) return "http";
  return /\/sse\/?$/.test(URL.parse(url)?.pathname ?? "") ? "sse" : "http";
}

function notesOn(fields: Fields): string[] {
  const notes: string[] = [];
  if (fields.get("disabled") === true || fields.get("enabled") === false) {
    notes.push("It is disabled in its client.");
  }
  const left = [...fields.keys()].filter(
    (key) => !READ_FIELDS.has(key) && !["disabled", "enabled", "name", "description"].includes(key),
  );
  if (left.length > 0) notes.push(`Ignored: ${left.slice(0, 10).join(", ").slice(0, 200)}.`);
  return notes;
}

/** VS Code's `inputs`: the values that it would ask for. */
function inputsOf(root: Fields): ReadonlyMap<string, string> {
  const inputs = root.get("inputs") ?? fieldsOf(root.get("mcp"))?.get("inputs");
  if (!Array.isArray(inputs)) return new Map();
  return new Map(
    inputs.flatMap((input) => {
      const fields = fieldsOf(input);
      const id = fields?.get("id");
      const description = fields?.get("description");
      return typeof id === "string" && typeof description === "string"
        ? [[id, description.slice(0, 200)]]
        : [];
    }),
  );
}

/** One string or several; undefined for anything else. */
function listOf(value: unknown): string[] | undefined {
  if (typeof value === "string") return [value];
  if (!Array.isArray(value)) return undefined;
  const texts = value.map(textOf);
  return texts.every((text) => text !== undefined) ? texts : undefined;
}

function pairsOf(value: unknown): DraftPair[] | undefined {
  if (value === undefined || value === null) return [];
  const fields = fieldsOf(value);
  if (!fields) return undefined;
  const pairs: DraftPair[] = [];
  for (const [name, each] of fields) {
    const text = each === null ? "" : textOf(each);
    if (text === undefined) return undefined;
    pairs.push(newPair(name, text));
  }
  return pairs;
}

function textOf(value: unknown): string | undefined {
  if (typeof value === "string") return value;
  return typeof value === "number" || typeof value === "boolean" ? String(value) : undefined;
}

/** An object's own fields; undefined for anything else. */
function fieldsOf(value: unknown): Fields | undefined {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
  return new Map(Object.entries(value));
}
