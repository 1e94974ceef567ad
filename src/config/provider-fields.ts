import type { ProviderKind, ResolvedValue } from "./config.ts";
import type { ConfigProblem } from "./problems.ts";
import { plainName } from "./redact.ts";
import type { Setting } from "./setting.ts";
import { TABLE } from "./table.ts";

/** The fields that only some kinds of providers have. All kinds have the fields that are not listed here. */
const FIELDS = {
  api_key: TABLE.providerApiKey,
  base_url: TABLE.providerBaseUrl,
  resource: TABLE.providerResource,
  api_version: TABLE.providerApiVersion,
  region: TABLE.providerRegion,
  access_key_id: TABLE.providerAccessKeyId,
  secret_access_key: TABLE.providerSecretAccessKey,
  session_token: TABLE.providerSessionToken,
  project: TABLE.providerProject,
  location: TABLE.providerLocation,
  credentials: TABLE.providerCredentials,
} as const satisfies Readonly<Record<string, Setting>>;
type Field = keyof typeof FIELDS;

/** The fields of each kind besides `api_key` and `base_url`, which all have. */
const OWN_FIELDS: Readonly<Record<ProviderKind, readonly Field[]>> = {
  "openai-compatible": [],
  openai: [],
  azure: ["resource", "api_version"],
  anthropic: [],
  google: [],
  bedrock: ["region", "access_key_id", "secret_access_key", "session_token"],
  vertex: ["project", "location", "credentials"],
};
const SHARED_FIELDS: readonly string[] = ["api_key", "base_url"];

/** The fields of one provider that have a value. */
type Present = ReadonlySet<string>;

/** The fields that a provider needs, given those that it has. */
const NEEDED: Readonly<Record<ProviderKind, (has: Present) => readonly Field[]>> = {
  "openai-compatible": () => ["base_url"],
  openai: () => [],
  azure: (has) => (has.has("base_url") ? ["api_key"] : ["api_key", "resource"]),
  anthropic: () => [],
  google: () => [],
  bedrock: (has) => {
    if (has.has("api_key")) return has.has("base_url") ? [] : ["region"];
    const keys: Field[] = ["access_key_id", "secret_access_key"];
    // Without any credentials, `api_key` is the simplest way to add them.
    return ["region", ...(keys.some((key) => has.has(key)) ? keys : ["api_key" as const])];
  },
  vertex: (has) => {
    if (!has.has("credentials")) return ["api_key"];
    return has.has("base_url") ? [] : ["project", "location"];
  },
};

/** Pairs of fields of which a provider has only one: the other would have no effect. */
const ALTERNATIVES: readonly (readonly [kind: ProviderKind, used: Field, unused: Field])[] = [
  ["azure", "base_url", "resource"],
  ["bedrock", "api_key", "access_key_id"],
  ["bedrock", "api_key", "secret_access_key"],
  ["bedrock", "api_key", "session_token"],
  ["vertex", "api_key", "credentials"],
  ["vertex", "api_key", "project"],
  ["vertex", "api_key", "location"],
];

/**
 * What is missing for a provider's kind, and what has no effect with it.
 * @param refused keys whose values are refused already: they are not missing
 */
export function providerProblems(
  values: readonly ResolvedValue[],
  refused: ReadonlySet<string>,
): ConfigProblem[] {
  const providers = Map.groupBy(
    values.filter(({ path }) => path[0] === "providers"),
    ({ path }) => path[1] ?? "",
  );
  return [...providers].flatMap(([name, rows]) => {
    const kindRow = rows.find(({ path }) => path[2] === "kind");
    const kind = kindRow?.value;
    // Otherwise the kind itself has been refused.
    return kindRow && TABLE.providerKind.is(kind)
      ? problemsOf({ name, kind, rows, refused }, kindRow.detail)
      : [];
  });
}

interface CheckedProvider {
  readonly name: string;
  readonly kind: ProviderKind;
  readonly rows: readonly ResolvedValue[];
  readonly refused: ReadonlySet<string>;
}

function problemsOf({ name, kind, rows, refused }: CheckedProvider, where: string): ConfigProblem[] {
  const set = rows.filter(({ path, value }) => path.length === 3 && value !== "");
  const has: Present = new Set([
    ...set.map(({ path }) => path[2] ?? ""),
    ...Object.keys(FIELDS).filter((field) => refused.has(plainName(`providers.${name}.${field}`))),
  ]);
  const missing = NEEDED[kind](has).filter((field) => !has.has(field));
  return [
    ...missing.map((field) => ({
      key: plainName(`providers.${name}.${field}`),
      where,
      message: `is missing; kind ${kind} needs it: expected ${FIELDS[field].expects}${orElse(kind, field)}`,
    })),
    ...(kind === "azure" ? unversioned(set) : []),
    ...set.flatMap(({ path, key, detail }) => {
      const message = noEffect(kind, path[2] ?? "", has);
      return message === undefined ? [] : [{ key: plainName(key), where: detail, message }];
    }),
  ];
}

/** Azure's own addresses, whose paths begin with the version of the API. */
const AZURE_HOST = /\.(?:openai|services\.ai|cognitiveservices)\.azure\.com$/i;

/**
 * What is wrong with an Azure address: the package adds the version to its own requests, but requests that pass
 * through would lack it.
 */
function unversioned(rows: readonly ResolvedValue[]): ConfigProblem[] {
  return rows.flatMap(({ path, key, value, detail }) => {
    const url = path[2] === "base_url" ? URL.parse(String(value)) : null;
    if (!url || !AZURE_HOST.test(url.hostname) || /\/openai\/v1\/*$/i.test(url.pathname)) return [];
    const message = "is not an address of Azure's v1 API; expected one that ends in /openai/v1";
    return [{ key: plainName(key), where: detail, message }];
  });
}

/** The other way to give credentials. */
function orElse(kind: ProviderKind, field: Field): string {
  if (field !== "api_key") return "";
  if (kind === "bedrock") return ", or access_key_id and secret_access_key instead";
  return kind === "vertex" ? ", or credentials instead" : "";
}

/** Why a field that is set has no effect; undefined if it has. */
function noEffect(kind: ProviderKind, field: string, has: Present): string | undefined {
  const isOwn = !(field in FIELDS) || SHARED_FIELDS.includes(field) || isFieldOf(kind, field);
  if (!isOwn) {
    const kinds = KINDS.filter((each) => isFieldOf(each, field));
    return `has no effect with kind ${kind}; it belongs to kind ${kinds.join(", ")}`;
  }
  const pair = ALTERNATIVES.find(([of, used, unused]) => of === kind && unused === field && has.has(used));
  return pair && `has no effect together with ${pair[1]}; remove one of them`;
}

const KINDS: readonly ProviderKind[] = [
  ...(["openai-compatible", "openai", "azure", "anthropic"] as const),
  ...(["google", "bedrock", "vertex"] as const),
];

function isFieldOf(kind: ProviderKind, field: string): boolean {
  return OWN_FIELDS[kind].some((own) => own === field);
}
