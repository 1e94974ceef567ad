import type { TSchema } from "typebox";
import { Type } from "typebox";
import { toMicros } from "../base/credits.ts";
import { parseAddressRange } from "./address-range.ts";
import { parseListen } from "./listen.ts";
import { isPostgresUrl } from "./postgres-url.ts";
import { parseServiceAccountKey } from "./service-account-key.ts";

/** The values that a setting accepts: a schema for the program, and a phrase to follow "expected …" for people. */
export interface SettingKind<Schema extends TSchema = TSchema> {
  /**
   * The form in which it is written. Variables and flags are text: a `number` or `boolean` is converted, a `list` is
   * split at commas.
   */
  readonly form: "text" | "number" | "url" | "list";
  readonly schema: Schema;
  readonly expects: string;
  /** Values accepted by an earlier version, as text, each with its replacement. */
  readonly retired?: ReadonlyMap<string, string>;
  /** What each entry of a `list` must be. */
  readonly item?: { readonly form: "text"; readonly expects: string };
}

/**
 * `<provider>/<model>`. The model's own name is printable ASCII without `*`, which stands for any model in policies.
 */
const MODEL_PATTERN = "^[a-z0-9][a-z0-9_-]{0,62}/[!-)+-~]{1,200}$";
const PROVIDER_PATTERN = "^[a-z0-9][a-z0-9_-]{0,62}$";

export function wholeNumber(minimum: number, maximum: number) {
  const schema = Type.Integer({ minimum, maximum });
  return { form: "number", schema, expects: `a whole number from ${minimum} to ${maximum}` } as const;
}

export function oneOf<Values extends string[]>(...values: Values) {
  return { form: "text", schema: Type.Enum<Values>(values), expects: `one of ${values.join(", ")}` } as const;
}

/** Who may add connectors that start programs on this machine. Formerly true or false. */
export const stdioRule = {
  ...oneOf("operator", "all", "none"),
  retired: new Map([
    ["true", "write operator, or all if every workspace may start programs on this machine"],
    ["1", "write operator, or all if every workspace may start programs on this machine"],
    ["false", "write none"],
    ["0", "write none"],
  ]),
};

/** A user of this machine, by name or number. */
export const systemUser = text(
  "a user of this machine, by name or number",
  "^[A-Za-z0-9_][A-Za-z0-9_.-]{0,31}$",
);

/** One line of text that matches the pattern. `expects` describes the pattern in words. */
export function text(expects: string, pattern = "^[^\\x00-\\x1f\\x7f]+$", maxLength = 4096) {
  return { form: "text", schema: Type.String({ pattern, maxLength }), expects } as const;
}

/**
 * An http or https URL. Paths are appended to an `endpoint`, so it must have no query. A `public` URL must not
 * contain a user either.
 */
export function httpUrl(use: "endpoint" | "public" | "hook") {
  const without =
    use === "hook"
      ? ""
      : use === "public"
        ? " without user, query or fragment"
        : " without query or fragment";
  const schema = Type.Refine(Type.String({ maxLength: 4096 }), (value) => isHttpUrl(value, use));
  return { form: "url", schema, expects: `an http:// or https:// URL${without}` } as const;
}

function isHttpUrl(value: string, use: "endpoint" | "public" | "hook"): boolean {
  if (!/^https?:\/\/[!-~]+$/i.test(value)) return false;
  if (use !== "hook" && /[?#]/.test(value)) return false;
  const url = URL.parse(value);
  return url !== null && (use !== "public" || (url.username === "" && url.password === ""));
}

/** A database of PostgreSQL. */
export const postgresUrl = {
  form: "text",
  schema: Type.Refine(Type.String({ maxLength: 4096 }), isPostgresUrl),
  expects:
    "a URL of the form postgres://user:password@host:port/database, in which special characters of the password are percent-encoded",
} as const;

/** The key of a Google service account, as the Google Cloud console hands it out. */
export const serviceAccountKey = {
  form: "text",
  schema: Type.Refine(
    Type.String({ maxLength: 65_536 }),
    (value) => value === "" || parseServiceAccountKey(value) !== undefined,
  ),
  expects: "the JSON of a service account's key, with client_email and an RSA private_key",
} as const;

export const listenAddress = {
  form: "text",
  schema: Type.Refine(Type.String({ maxLength: 300 }), (value) => parseListen(value) !== undefined),
  expects: "HOST:PORT such as 127.0.0.1:8420, 0.0.0.0:8420 or [::1]:8420, port 0 for any free port",
} as const;

/** Credits per 1,000 tokens, exact to a millionth. */
export const creditPrice = {
  form: "number",
  schema: Type.Refine(Type.Number({ minimum: 0 }), (value) => toMicros(value) !== undefined),
  expects: "a number of credits, 0 or more, with at most six decimals",
} as const;

/** Credits per US dollar, exact to a millionth. */
export const exchangeRate = {
  form: "number",
  schema: Type.Refine(
    Type.Number({ exclusiveMinimum: 0, maximum: 1_000_000 }),
    (value) => toMicros(value) !== undefined,
  ),
  expects: "a number of credits above 0, at most 1000000, with at most six decimals",
} as const;

const modelName = text("<provider>/<model>, such as openai/gpt-5-mini", MODEL_PATTERN, 300);
export const embeddingModelName = text(
  "<provider>/<model>, such as openai/text-embedding-3-small",
  MODEL_PATTERN,
  300,
);

/** What an alias stands for. Whether it exists is checked with the other settings. */
export const aliasTarget = text(
  "<provider>/<model>, tier:2 or a tier's name, with at most one *",
  "^(?!(?:.*\\*){2})[ -~]{1,300}$",
  300,
);

/** A route: models in the order in which they are tried. */
export const modelList = {
  form: "list",
  schema: Type.Array(modelName.schema, { minItems: 1, maxItems: 64 }),
  expects: "a list of 1 to 64 models, each <provider>/<model>",
  item: modelName,
} as const;

const addressRange = {
  form: "text",
  schema: Type.Refine(Type.String({ maxLength: 100 }), (value) => parseAddressRange(value) !== undefined),
  expects: "an IP address or a range such as 169.254.169.254 or fe80::/10",
} as const;

export const addressList = {
  form: "list",
  schema: Type.Array(addressRange.schema, { maxItems: 64 }),
  expects: "a list of at most 64 IP addresses or ranges, such as 169.254.169.254 or fe80::/10",
  item: addressRange,
} as const;

/** Which names may replace a key's `<placeholder>`. */
export interface NameKind {
  readonly expects: string;
  accepts(name: string): boolean;
}

const name = (expects: string, pattern: string, reserved?: string): NameKind => ({
  expects,
  accepts: (text) => text !== reserved && new RegExp(pattern).test(text),
});

export const PLACEHOLDERS: ReadonlyMap<string, NameKind> = new Map([
  [
    "<provider>",
    name(
      "a provider's name (a-z, 0-9, _ and -, at most 63 characters, not builtin)",
      PROVIDER_PATTERN,
      "builtin",
    ),
  ],
  ["<model>", name("<provider>/<model>", MODEL_PATTERN)],
  [
    "<alias>",
    name(
      "a name of letters, digits and _ . : / @ + -, with at most one *",
      "^(?!(?:.*\\*){2})[A-Za-z0-9_.:/@+*-]{1,200}$",
    ),
  ],
  ["<tool>", name("a glob of tools, such as github.*, github.search or *", "^[A-Za-z0-9_.*?-]{1,128}$")],
  ["<tier>", name("a positive whole number as the tier", "^[1-9][0-9]{0,8}$")],
  ["<header>", name("a header's name (letters, digits, - and _)", "^[A-Za-z0-9][A-Za-z0-9_-]{0,126}$")],
]);
