import { resolve } from "node:path";
import { readFailure, readTextFile } from "../../config/read-file.ts";
import { isConnectorName } from "../../connectors/connector.ts";
import { filled, readEnv, readHeaders, split, type Texts, type Variables, wrong } from "./values.ts";

/** The body of POST /v1/connectors (contract, section 6). */
export interface ConnectorBody {
  readonly name: string;
  readonly kind: "mcp" | "openapi";
  readonly scopes?: readonly string[];
  readonly transport?: object;
  readonly spec?: string;
  readonly base_url?: string;
  readonly auth?: object;
}

export interface DefinitionOptions {
  readonly env?: readonly string[];
  readonly url?: string;
  readonly transport?: "http" | "sse";
  readonly header?: readonly string[];
  readonly openapi?: string;
  readonly baseUrl?: string;
  readonly bearer?: string;
  readonly basic?: string;
  readonly authHeader?: string;
  readonly authQuery?: string;
  readonly scope?: readonly string[];
}

/** Maximum size in bytes of a document: the limit of a request. */
const DOCUMENT_BYTES = 10 * 1024 * 1024;

/** Options that belong to one kind of connector, by the option that selects it. */
const BELONGS = {
  command: ["env"],
  url: ["transport", "header"],
  openapi: ["baseUrl", "bearer", "basic", "authHeader", "authQuery"],
} as const;
const AUTHS = ["bearer", "basic", "authHeader", "authQuery"] as const;

/** @throws OperatorError (2) if the options contradict each other */
export function requestOf(
  name: string,
  command: readonly string[],
  options: DefinitionOptions,
  env: Variables,
): ConnectorBody {
  if (!isConnectorName(name)) {
    throw wrong(
      "the name",
      "must be a letter followed by up to 23 characters: a to z, 0 to 9, and single _ between them",
    );
  }
  const kind = kindOf(command, options);
  for (const [owner, own] of Object.entries(BELONGS)) {
    const stray = own.find((option) => owner !== kind && options[option] !== undefined);
    if (stray !== undefined) throw wrong(flag(stray), `is only for ${NAMES[owner as keyof typeof NAMES]}`);
  }
  const scopes = options.scope === undefined ? {} : { scopes: options.scope };
  if (kind === "openapi") return { name, kind, ...scopes, ...openApiOf(options, env) };
  const transport = kind === "url" ? httpOf(options, env) : stdioOf(command, readEnv(options.env, env));
  return { name, kind: "mcp", ...scopes, transport };
}

const NAMES = { command: "a command after --", url: "--url", openapi: "--openapi" } as const;

function kindOf(command: readonly string[], { url, openapi }: DefinitionOptions): keyof typeof BELONGS {
  const given = [
    ...(command.length > 0 ? (["command"] as const) : []),
    ...(url === undefined ? [] : (["url"] as const)),
    ...(openapi === undefined ? [] : (["openapi"] as const)),
  ];
  const [kind] = given;
  if (kind !== undefined && given.length === 1) return kind;
  throw wrong("connector add", "needs one of: a command after --, --url, --openapi, --import");
}

/** Resolves a program given by a path against the current folder. The gateway may run in a different one. */
export function stdioOf([program = "", ...args]: readonly string[], env: Texts): object {
  return { type: "stdio", command: program.includes("/") ? resolve(program) : program, args, env };
}

/** Unless stated otherwise, a path that ends in `/sse` uses the older transport. */
export function httpTransport(url: string): "http" | "sse" {
  return URL.parse(url)?.pathname.endsWith("/sse") ? "sse" : "http";
}

function httpOf({ url = "", transport, header }: DefinitionOptions, env: Variables): object {
  const address = filled("--url", url, env);
  return { type: transport ?? httpTransport(address), url: address, headers: readHeaders(header, env) };
}

function openApiOf(options: DefinitionOptions, env: Variables): Omit<ConnectorBody, "name" | "kind"> {
  const { openapi = "", baseUrl } = options;
  const auth = authOf(options, env);
  return {
    spec: /^https?:\/\//i.test(openapi) ? filled("--openapi", openapi, env) : readDocument(openapi),
    ...(baseUrl === undefined ? {} : { base_url: filled("--base-url", baseUrl, env) }),
    ...(auth === undefined ? {} : { auth }),
  };
}

function authOf(options: DefinitionOptions, env: Variables): object | undefined {
  const [first, second] = AUTHS.filter((option) => options[option] !== undefined);
  if (second !== undefined) throw wrong(flag(second), `cannot be combined with ${flag(first ?? second)}`);
  const { bearer, basic, authHeader, authQuery } = options;
  if (bearer !== undefined) return { type: "bearer", token: filled("--bearer", bearer, env) };
  if (basic !== undefined) {
    const [username, password] = split("--basic", basic, ":", "USER:PASSWORD");
    return {
      type: "basic",
      username: filled("--basic", username, env),
      password: filled("--basic", password, env),
    };
  }
  const named = authHeader ?? authQuery;
  if (named === undefined) return undefined;
  const option = authHeader === undefined ? "--auth-query" : "--auth-header";
  const [name, value] = split(option, named, "=", "NAME=value");
  return { type: authHeader === undefined ? "query" : "header", name, value: filled(option, value, env) };
}

function readDocument(path: string): string {
  try {
    return readTextFile(path, DOCUMENT_BYTES);
  } catch (error) {
    throw wrong("--openapi", `names a file that ${readFailure(error, DOCUMENT_BYTES)}: ${path}`);
  }
}

/** The option as typed on the command line. */
function flag(option: string): string {
  return `--${option.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
}
