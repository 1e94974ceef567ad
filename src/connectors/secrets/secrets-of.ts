import { invalidField } from "../../base/errors.ts";
import type {
  ConnectorDefinition,
  HttpTransport,
  OpenApiAuth,
  OpenApiDefinition,
  StdioTransport,
} from "../definition/definition.ts";

/** Shorter values occur in ordinary text: masking them would ruin results and protect nothing. */
const MIN_CHARACTERS = 6;
/** For single lines of a PEM key and the like, which a program may print line by line. */
const MIN_LINE_CHARACTERS = 16;

/** A name that suggests a secret. */
const SECRET_NAME = /key|token|secret|password|passwd|passphrase|auth|credential|bearer|cookie/i;
/** Headers and variables whose values are words that also occur in results. */
const PLAIN_HEADERS =
  /^(?:accept(?:-.*)?|content-(?:type|language|encoding)|user-agent|cache-control|pragma|connection|host|origin|referer|mcp-protocol-version)$/i;
const PLAIN_VARIABLES =
  /^(?:path|home|pwd|user|logname|shell|term|tz|lang|language|lc_\w+|node_env|log_level|no_color|force_color)$/i;
/** Begins like a path and contains only characters of paths; base64 may begin with a slash, too. */
const PATH = /^(?:\.{0,2}\/|~|[A-Za-z]:[\\/])[\w.@ /\\:-]*$/;

/** Maximum number of secrets of a definition, not counting the lines of those that have several. */
const MOST_SECRETS = 64;
/** Maximum number of characters of these secrets in total. Each is masked in up to 30 forms, which takes memory. */
const MOST_CHARACTERS = 16_384;

/**
 * The parts of a definition that must never be shown again: values of variables and headers, authentication, values
 * in queries, passwords in URLs, and arguments whose names suggest secrets. Excludes values that would ruin results:
 * fewer than 6 characters, file paths, and URLs with neither password nor query.
 */
export function secretsOf(definition: ConnectorDefinition): string[] {
  const found = fieldsOf(definition).flatMap(([, secrets]) => secrets);
  const lines = found.flatMap((secret) => (secret.includes("\n") ? longLines(secret) : []));
  return [...new Set([...found, ...lines])].filter(isMasked);
}

/**
 * Limits the secrets of a new definition.
 * @throws Problem 422 that names the field where the limit is first exceeded
 */
export function checkSecrets(definition: ConnectorDefinition): void {
  const counted = new Set<string>();
  let characters = 0;
  for (const [field, secrets] of fieldsOf(definition)) {
    for (const secret of secrets) {
      if (counted.has(secret) || !isMasked(secret)) continue;
      counted.add(secret);
      characters += secret.length;
    }
    if (counted.size > MOST_SECRETS || characters > MOST_CHARACTERS) throw invalidField(field, TOO_MANY);
  }
}

const TOO_MANY = `contains too many secrets: a connector may have ${MOST_SECRETS}, with ${MOST_CHARACTERS} characters in total. Each value of a cookie counts, and so does a header's value with and without its scheme`;

type SecretField = readonly [path: string, secrets: readonly string[]];

function fieldsOf(definition: ConnectorDefinition): readonly SecretField[] {
  return definition.kind === "mcp" ? ofTransport(definition.transport) : ofOpenApi(definition);
}

function ofTransport(transport: StdioTransport | HttpTransport): readonly SecretField[] {
  if (transport.type === "stdio") {
    return [
      ["/transport/env", ofEnvironment(transport.env)],
      ["/transport/args", ofArguments(transport.args)],
    ];
  }
  const headers = Object.entries(transport.headers).flatMap(([name, value]) => ofHeader(name, value));
  return [
    ["/transport/headers", headers],
    ["/transport/url", ofUrl(transport.url)],
  ];
}

function ofOpenApi({ spec, baseUrl, auth }: OpenApiDefinition): readonly SecretField[] {
  return [
    ["/spec", typeof spec === "string" ? ofUrl(spec) : []],
    ["/base_url", baseUrl === null ? [] : ofUrl(baseUrl)],
    ["/auth", auth === null ? [] : ofAuth(auth)],
  ];
}

function ofAuth(auth: OpenApiAuth): string[] {
  switch (auth.type) {
    case "bearer":
      return [auth.token];
    case "basic":
      return [auth.password, basic(`${auth.username}:${auth.password}`)];
    case "header":
      return ofHeader("authorization", auth.value);
    case "query":
      return [auth.value];
  }
}

function ofEnvironment(env: Readonly<Record<string, string>>): string[] {
  return Object.entries(env).flatMap(([name, value]) => {
    return PLAIN_VARIABLES.test(name) || isPath(name, value) ? [] : [value, ...ofUrl(value)];
  });
}

/** The value, the part after its scheme ("Bearer "), the decoded text after "Basic ", and each value of a cookie. */
function ofHeader(name: string, value: string): string[] {
  if (PLAIN_HEADERS.test(name)) return [];
  const [, scheme = "", rest = ""] = /^\s*([A-Za-z][\w-]*)\s+(.*\S)/s.exec(value) ?? [];
  const decoded = scheme.toLowerCase() === "basic" ? Buffer.from(rest, "base64").toString() : "";
  const password = decoded.slice(decoded.indexOf(":") + 1);
  const cookies = name.toLowerCase() === "cookie" ? value.split(";").map(afterEquals) : [];
  return [value, rest, decoded, password, ...cookies];
}

/**
 * `--token=x`, `--api-key x`, `TOKEN=x`, `Authorization: Bearer x`, and secrets in URLs, such as those of databases.
 */
function ofArguments(args: readonly string[]): string[] {
  return args.flatMap((argument, index) => {
    const [, header = "", headerValue = ""] = /^(?:--?\w[\w-]*=)?([\w-]+):\s*([^/].*)$/s.exec(argument) ?? [];
    const [, name = "", value = ""] = /^-{0,2}(\w[\w.-]*)=(.*)$/s.exec(argument) ?? [];
    const before = /^--?(\w[\w.-]*)$/.exec(args[index - 1] ?? "")?.[1] ?? "";
    const isOption = argument.startsWith("--");
    return [
      ...(SECRET_NAME.test(header) ? ofHeader(header, headerValue) : []),
      ...(SECRET_NAME.test(name) && !isPath(name, value) ? [value] : []),
      ...(SECRET_NAME.test(before) && !isOption && !isPath(before, argument) ? [argument] : []),
      ...ofUrl(value === "" ? argument : value),
      // --env=TOKEN=x
      ...(value.includes("=") ? ofArguments([value]) : []),
    ];
  });
}

/** The password and query values of any kind of URL. If it has either, the whole URL too. */
function ofUrl(text: string): string[] {
  const url = /^(?:[a-z][a-z0-9+.-]*:\/\/|https?:)/i.test(text) ? URL.parse(text) : null;
  if (!url) return [];
  const query = [...url.searchParams.values()];
  const password = decoded(url.password);
  // A token may be in the user's place, as in https://TOKEN@host.
  const user = password === "" ? decoded(url.username) : "";
  const parts = [password, url.password, user, ...query].filter((part) => part !== "");
  return parts.length === 0 ? [] : [text, ...parts];
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    // A lone % is literal.
    return part;
  }
}

function isMasked(value: string): boolean {
  if (value.trim().length < MIN_CHARACTERS || /^(?:true|false)$/i.test(value)) return false;
  return !isPlainUrl(value);
}

/** If the name suggests a secret, one slash is not enough. */
function isPath(name: string, value: string): boolean {
  return PATH.test(value) && (!SECRET_NAME.test(name) || /[\\/].*[\\/]/.test(value));
}

function isPlainUrl(value: string): boolean {
  return /^https?:/i.test(value) && URL.canParse(value) && ofUrl(value).length === 0;
}

function basic(credentials: string): string {
  return Buffer.from(credentials).toString("base64");
}

function afterEquals(pair: string): string {
  return pair.slice(pair.indexOf("=") + 1).trim();
}

function longLines(secret: string): string[] {
  return secret
    .split(/\r?\n/)
    .map((line) => line.trim())
    .filter((line) => line.length >= MIN_LINE_CHARACTERS && !line.startsWith("-----"));
}
