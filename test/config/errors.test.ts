// biome-ignore-all lint/suspicious/noTemplateCurlyInString: configuration files contain them.
import { describe, expect, test } from "bun:test";
import { problems } from "./support.ts";

const PROVIDER_NAME = "a provider's name (a-z, 0-9, _ and -, at most 63 characters, not builtin)";
const ROUTE = "a list of 1 to 64 models, each <provider>/<model>";
const MODEL = "<provider>/<model>, such as openai/gpt-5-mini";
const ADDRESS = "HOST:PORT such as 127.0.0.1:8420, 0.0.0.0:8420 or [::1]:8420, port 0 for any free port";
const PUBLIC = "an http:// or https:// URL without user, query or fragment";
const ENDPOINT = "an http:// or https:// URL without query or fragment";
const PRICE = "a number of credits, 0 or more, with at most six decimals";

const FILE_CASES: [yaml: string, ...problems: string[]][] = [
  // An unknown key names the nearest known one.
  ["limts: {}", "limts (F:1): is not a known setting; the nearest is limits"],
  ["\n\nlisen: x", "lisen (F:3): is not a known setting; the nearest is listen"],
  [
    "limits: { enforcment: soft }",
    "limits.enforcment (F:1): is not a known setting; the nearest is limits.enforcement",
  ],
  ["webhook: x", "webhook (F:1): is not a known setting; the nearest is notify.webhook"],
  ["zzzzzzzz: x", "zzzzzzzz (F:1): is not a known setting; the nearest is listen"],
  [
    "ledger.payload_days: 3",
    "ledger.payload_days (F:1): is not a known setting; dots do not nest, write ledger: { payload_days: … }",
  ],
  [
    "providers:\n  a:\n    kind: openai\n    apikey: x",
    "providers.a.apikey (F:4): is not a known setting; the nearest is providers.a.api_key",
  ],
  [
    "tiers: { 1: { model: [builtin/extractive], models: [builtin/extractive] } }",
    "tiers.1.model (F:1): is not a known setting; the nearest is tiers.1.models",
  ],
  ["<<: { listen: x }", "<< (F:1): is not a known setting; the nearest is store"],
  // Settings that the file may not contain.
  ["data: /x", "data (F:1): cannot be set in the file; use --data or GATEHOUSE_DATA"],
  ["config: /x", "config (F:1): cannot be set in the file; use --config or GATEHOUSE_CONFIG"],
  ["admin_token: gth_x", "admin_token (F:1): cannot be set in the file; use GATEHOUSE_ADMIN_TOKEN"],
  ["master_key: x", "master_key (F:1): cannot be set in the file; use GATEHOUSE_MASTER_KEY"],
  // Wrong types and values.
  ["listen: 8420", `listen (F:1): is 8420; expected ${ADDRESS}, in quotes`],
  ["listen: '::1:8420'", `listen (F:1): is "::1:8420"; expected ${ADDRESS}`],
  ["listen: a:65536", `listen (F:1): is "a:65536"; expected ${ADDRESS}`],
  ["listen: http://a:1", `listen (F:1): is "http://a:1"; expected ${ADDRESS}`],
  ["listen:", `listen (F:1): has no value; expected ${ADDRESS}`],
  ["log_level: loud", 'log_level (F:1): is "loud"; expected one of debug, info, warn, error'],
  ["log_level: true", "log_level (F:1): is true; expected one of debug, info, warn, error, in quotes"],
  ["public_url: gate.example", `public_url (F:1): is "gate.example"; expected ${PUBLIC}`],
  ["public_url: https://u@x", `public_url (F:1): is [redacted]; expected ${PUBLIC}`],
  ["public_url: https://x/?a", `public_url (F:1): is [redacted]; expected ${PUBLIC}`],
  [
    "limits: 5",
    "limits (F:1): is a single value; expected a mapping of requests_per_minute, concurrent_tasks, enforcement, running_tasks_per_node, queued_tasks",
  ],
  [
    "limits: { concurrent_tasks: 0 }",
    "limits.concurrent_tasks (F:1): is 0; expected a whole number from 1 to 100000",
  ],
  [
    "limits: { concurrent_tasks: 1.5 }",
    "limits.concurrent_tasks (F:1): is 1.5; expected a whole number from 1 to 100000",
  ],
  [
    'limits: { concurrent_tasks: "60" }',
    'limits.concurrent_tasks (F:1): is "60"; expected a whole number from 1 to 100000',
  ],
  [
    "limits:\n  concurrent_tasks:\n    - 60",
    "limits.concurrent_tasks (F:2): is a list; expected a whole number from 1 to 100000",
  ],
  [
    "limits: { concurrent_tasks: .inf, queued_tasks: .nan }",
    "limits.concurrent_tasks (F:1): is Infinity; expected a whole number from 1 to 100000",
    "limits.queued_tasks (F:1): is NaN; expected a whole number from 1 to 10000000",
  ],
  [
    "embeddings: { model: nomic }",
    `embeddings.model (F:1): is "nomic"; expected <provider>/<model>, such as openai/text-embedding-3-small`,
  ],
  // Providers.
  ["providers: []", `providers (F:1): is a list; expected a mapping, each key ${PROVIDER_NAME}`],
  [
    "providers: { builtin: { kind: openai }, A: { kind: openai } }",
    `providers.builtin (F:1): is not a valid name here; expected ${PROVIDER_NAME}`,
    `providers.A (F:1): is not a valid name here; expected ${PROVIDER_NAME}`,
  ],
  [
    "providers: { a: }",
    "providers.a.kind (F:1): is missing; expected one of openai-compatible, openai, azure, anthropic, google, bedrock, vertex",
  ],
  [
    "providers: { a: { kind: azuro } }",
    'providers.a.kind (F:1): is "azuro"; expected one of openai-compatible, openai, azure, anthropic, google, bedrock, vertex',
  ],
  [
    "providers: { a: { kind: openai-compatible } }",
    `providers.a.base_url (F:1): is missing; kind openai-compatible needs it: expected ${ENDPOINT}`,
  ],
  [
    "providers: { a: { kind: openai-compatible, base_url: 'ftp://x' } }",
    `providers.a.base_url (F:1): is "ftp://x"; expected ${ENDPOINT}`,
  ],
  [
    "providers: { a: { kind: openai, api_key: 123 } }",
    "providers.a.api_key (F:1): is [redacted]; expected a key of printable ASCII characters without spaces, in quotes",
  ],
  [
    'providers: { a: { kind: openai, headers: { A B: x, C: "1\\n2" } } }',
    '"providers.a.headers.A B" (F:1): is not a valid name here; expected a header\'s name (letters, digits, - and _)',
    "providers.a.headers.C (F:1): is [redacted]; expected printable ASCII characters",
  ],
  // Prices.
  ["models: { a/b: { input: 0.0000001, output: 0 } }", `models.a/b.input (F:1): is 1e-7; expected ${PRICE}`],
  ["models: { a/b: { input: 0, output: -1 } }", `models.a/b.output (F:1): is -1; expected ${PRICE}`],
  ["models: { a/b: { input: 1 } }", `models.a/b.output (F:1): is missing; expected ${PRICE}`],
  [
    "models: { gpt: { input: 1, output: 1 } }",
    "models.gpt (F:1): is not a valid name here; expected <provider>/<model>",
  ],
  // Tiers, and references between them.
  [
    "tiers: { 0: { models: [builtin/extractive] } }",
    "tiers.0 (F:1): is not a valid name here; expected a positive whole number as the tier",
  ],
  [
    "tiers: { economy: { models: [builtin/extractive] } }",
    "tiers.economy (F:1): is not a valid name here; expected a positive whole number as the tier",
  ],
  ["tiers: { 1: { name: x } }", `tiers.1.models (F:1): is missing; expected ${ROUTE}`],
  ["tiers: { 1: { models: [] } }", `tiers.1.models (F:1): has 0 entries; expected ${ROUTE}`],
  ["tiers: { 1: { models: a/b } }", `tiers.1.models (F:1): is "a/b"; expected ${ROUTE}`],
  [
    "tiers:\n  2:\n    models:\n    - openai/gpt-5-mini\n    - 5\n    - builtin/other",
    `tiers.2.models[1] (F:5): is 5; expected ${MODEL}, in quotes`,
    "tiers.2.models[0] (F:3): is openai/gpt-5-mini, but no provider openai is configured; there is none",
    "tiers.2.models[2] (F:3): is builtin/other, which does not exist; the built-in one is builtin/extractive",
  ],
  [
    "providers: { a: { kind: openai } }\nembeddings: { model: b/c }",
    "embeddings.model (F:2): is b/c, but no provider b is configured; there are a",
  ],
  [
    "providers: { c: { kind: anthropic } }\nembeddings: { model: c/voyage }",
    "embeddings.model (F:2): is c/voyage, but providers of kind anthropic have no embeddings; the other kinds and builtin/lexical do",
  ],
  [
    "embeddings: { model: builtin/extractive }",
    "embeddings.model (F:1): is builtin/extractive, which does not exist; the built-in one is builtin/lexical",
  ],
];

describe("in the file", () => {
  test.each(FILE_CASES)("%j", (yaml, ...expected) => {
    expect(problems({ yaml })).toEqual(expected);
  });
});
