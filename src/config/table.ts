import { type Setting, setting } from "./setting.ts";
import {
  addressList,
  aliasTarget,
  creditPrice,
  embeddingModelName,
  exchangeRate,
  httpUrl,
  listenAddress,
  modelList,
  oneOf,
  postgresUrl,
  serviceAccountKey,
  stdioRule,
  systemUser,
  text,
  wholeNumber,
} from "./setting-kinds.ts";

const path = text("a path");
// Characters that HTTP cannot transmit are rejected here, because a later error would quote the key.
const apiKey = text("a key of printable ASCII characters without spaces", "^[!-~]*$");
const DNS_LABEL = "^[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?$";
const headerValue = text("printable ASCII characters", "^[ -~]+$");

/**
 * All settings. Parsing, errors, `config show`, redaction and the reference are derived from these rows. A new
 * setting needs a new row here and a field in `config.ts`.
 */
export const TABLE = {
  data: setting("data", path, {
    flag: "--data",
    inFile: false,
    default: "./gatehouse-data",
    help: "The directory for the database, the keys and, unless `--config` names another file, `gatehouse.yaml`.",
  }),
  config: setting("config", path, {
    flag: "--config",
    inFile: false,
    defaultText: "`gatehouse.yaml` in the data directory, if it exists",
    help: "The configuration file (YAML). A file named here must exist.",
  }),
  listen: setting("listen", listenAddress, {
    flag: "--listen",
    default: "127.0.0.1:8420",
    help: "The address and TCP port to serve on. The default can be reached only from this machine.",
  }),
  publicUrl: setting("public_url", httpUrl("public"), {
    defaultText: "`http://` and the address of `listen`",
    help: "The URL that clients use, if there is a proxy in front of the server.",
  }),
  adminToken: setting(
    "admin_token",
    text(
      "gth_ followed by 49 letters and digits, as `gatehouse token secret` prints",
      "^gth_[0-9A-Za-z]{49}$",
    ),
    {
      inFile: false,
      secret: true,
      defaultText: "created on the first start",
      help: "The first admin token, for unattended starts.",
    },
  ),
  masterKey: setting(
    "master_key",
    text(
      "32 bytes in base64, base64url or hex, as `openssl rand -base64 32` prints",
      "^(?:[0-9A-Fa-f]{64}|(?:[A-Za-z0-9+/]{42}|[A-Za-z0-9_-]{42})[AEIMQUYcgkosw048]=?)$",
    ),
    {
      inFile: false,
      secret: true,
      defaultText: "created on the first start, in `secrets.key` in the data directory",
      help: "The key that encrypts connectors' secrets. Without it they are lost. Required with `store`, whose nodes all need the same one.",
    },
  ),
  store: setting("store", postgresUrl, {
    secret: true,
    defaultText: "SQLite in the data directory",
    help: "The database that several servers share: PostgreSQL 15 or later. Each of them needs a data directory of its own, in which only its address and its configuration are kept.",
  }),
  storeListen: setting("store_listen", postgresUrl, {
    secret: true,
    defaultText: "`store`",
    help: "If `store` leads through PgBouncer: a URL that leads to the same database directly, for messages between servers, which a pooler does not deliver, and for upgrades.",
  }),
  logLevel: setting("log_level", oneOf("debug", "info", "warn", "error"), {
    default: "info",
    help: "The lowest severity that is logged.",
  }),

  providerKind: setting(
    "providers.<provider>.kind",
    oneOf("openai-compatible", "openai", "azure", "anthropic", "google", "bedrock", "vertex"),
    { required: true, help: "The type of the provider's API." },
  ),
  providerBaseUrl: setting("providers.<provider>.base_url", httpUrl("endpoint"), {
    defaultText:
      "the vendor's URL, for `azure`, `bedrock` and `vertex` from the fields below; required for `openai-compatible`",
    help: "The URL that the API's paths are appended to, for example `http://127.0.0.1:11434/v1`.",
  }),
  providerApiKey: setting("providers.<provider>.api_key", apiKey, {
    secret: true,
    defaultText: "none",
    help: "The key sent to the provider. An empty key counts as none. Required for `azure`; `bedrock` and `vertex` can use it in place of the credentials below.",
  }),
  providerResource: setting(
    "providers.<provider>.resource",
    text("a resource's name: letters, digits and -, at most 63 characters", DNS_LABEL),
    {
      defaultText: "none",
      help: "For `azure`: the name of the resource, from which the URL is made. Required without `base_url`.",
    },
  ),
  providerApiVersion: setting(
    "providers.<provider>.api_version",
    text("a version such as v1, preview or 2025-04-01-preview", "^[0-9A-Za-z.-]{1,64}$"),
    {
      defaultText: "`v1`; none with `base_url`",
      help: "For `azure`: the `api-version` that every request names.",
    },
  ),
  providerRegion: setting(
    "providers.<provider>.region",
    text("an AWS region such as eu-central-1", "^[a-z]{2,8}(?:-[a-z0-9]{1,16}){1,4}$"),
    {
      defaultText: "none",
      help: "For `bedrock`: the AWS region. Required, except with both `base_url` and `api_key`.",
    },
  ),
  providerAccessKeyId: setting(
    "providers.<provider>.access_key_id",
    text("an AWS access key id of 16 to 128 letters and digits", "^[A-Za-z0-9_]{16,128}$"),
    {
      secret: true,
      defaultText: "none",
      help: "For `bedrock`: the access key that signs requests, together with `secret_access_key`, if there is no `api_key`. No environment variable, profile or machine role is used automatically.",
    },
  ),
  providerSecretAccessKey: setting("providers.<provider>.secret_access_key", apiKey, {
    secret: true,
    defaultText: "none",
    help: "For `bedrock`: the secret that belongs to `access_key_id`.",
  }),
  providerSessionToken: setting("providers.<provider>.session_token", apiKey, {
    secret: true,
    defaultText: "none",
    help: "For `bedrock`: the session token of temporary access keys.",
  }),
  providerProject: setting(
    "providers.<provider>.project",
    text("a Google Cloud project, by id or number", "^[a-z0-9][a-z0-9.:-]{0,98}[a-z0-9]$"),
    {
      defaultText: "none",
      help: "For `vertex`: the Google Cloud project. Required with `credentials`, unless there is a `base_url`.",
    },
  ),
  providerLocation: setting(
    "providers.<provider>.location",
    text("a location such as europe-west4 or global", "^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$"),
    {
      defaultText: "none",
      help: "For `vertex`: the location that serves the models. Required with `credentials`, unless there is a `base_url`.",
    },
  ),
  providerCredentials: setting("providers.<provider>.credentials", serviceAccountKey, {
    secret: true,
    defaultText: "none",
    help: "For `vertex`: a service account's key, if there is no `api_key`. To read it from a file, take it from a variable and set that variable's `_FILE` variant.",
  }),
  providerTimeout: setting("providers.<provider>.timeout_ms", wholeNumber(1, 3_600_000), {
    default: 60_000,
    help: "How long a call to the provider may go on without any data, in milliseconds, before the route's next model is tried.",
  }),
  providerHeader: setting("providers.<provider>.headers.<header>", headerValue, {
    secret: true,
    defaultText: "none",
    help: "A header sent with every call to the provider.",
  }),
  priceInput: setting("models.<model>.input", creditPrice, {
    required: true,
    help: "The price of 1,000 input tokens in credits. It takes precedence over the price list. Models with neither price cost 0, unless `prices.unknown` refuses them.",
  }),
  priceOutput: setting("models.<model>.output", creditPrice, {
    required: true,
    help: "The price of 1,000 output tokens in credits.",
  }),
  priceCachedInput: setting("models.<model>.cached_input", creditPrice, {
    defaultText: "as `input`",
    help: "The price of 1,000 input tokens that the provider read from its cache, in credits.",
  }),
  priceCacheWrites: setting("models.<model>.cache_writes", creditPrice, {
    defaultText: "as `input`",
    help: "The price of 1,000 input tokens that the provider wrote to its cache, in credits.",
  }),
  priceReasoning: setting("models.<model>.reasoning", creditPrice, {
    defaultText: "as `output`",
    help: "The price of 1,000 output tokens of reasoning, in credits.",
  }),
  creditsPerUsd: setting("prices.credits_per_usd", exchangeRate, {
    defaultText: "none: the price list is not used",
    help: "How many credits a US dollar is worth. With it, models cost what the price list of this version says, unless `models` says otherwise; `gatehouse models` shows both.",
  }),
  unknownPrices: setting("prices.unknown", oneOf("free", "refuse"), {
    default: "free",
    help: "What happens to a model without a price: `free` calls it at no cost, `refuse` does not call it (`model_unpriced`). The built-in model always costs 0.",
  }),
  alias: setting("aliases.<alias>", aliasTarget, {
    defaultText: "none",
    help: "A name under which clients may ask for a model, and what it stands for: `<provider>/<model>`, `tier:2`, or a tier's name. One `*` stands for any characters, and repeats them on the right: `claude-*: anthropic/claude-*`. Exact names win over those with `*`; among those, the first match wins. An alias never leads to another one. `GET /v1/models` lists aliases without `*`.",
  }),
  tierName: setting("tiers.<tier>.name", text("text of at most 100 characters", undefined, 100), {
    defaultText: "`tier` and its number",
    help: "The tier's display name.",
  }),
  tierModels: setting("tiers.<tier>.models", modelList, {
    required: true,
    help: "The tier's route: models of configured providers, or `builtin/extractive`, in the order in which they are tried.",
  }),
  toolPrice: setting("tools.<tool>", creditPrice, {
    defaultText: "0",
    help: "The price in credits of one call to a tool that the glob matches (`*`: any characters, `?`: one). The first matching glob counts.",
  }),

  embeddingsModel: setting("embeddings.model", embeddingModelName, {
    default: "builtin/lexical",
    help: "The model that turns passages and questions into vectors; `builtin/lexical` needs no network.",
  }),
  vaultReaders: setting("vault.readers", wholeNumber(1, 64), {
    default: 2,
    help: "The number of processes that read documents at the same time. If there are several, one workspace never uses all of them.",
  }),
  vaultReadSeconds: setting("vault.read_seconds", wholeNumber(1, 3_600), {
    default: 120,
    help: "The maximum time to read one document, in seconds. A document gets 20 seconds plus 4 for each MiB sent, up to this maximum; if that is not enough, it is refused as too complex.",
  }),
  vaultReadMegabytes: setting("vault.read_megabytes", wholeNumber(256, 65_536), {
    default: 1_024,
    help: "The maximum memory of a process that reads documents, in MiB. A document that needs more is refused as too complex.",
  }),
  connectorTimeout: setting("connectors.timeout_ms", wholeNumber(1, 3_600_000), {
    default: 60_000,
    help: "How long a tool call to a connector may go on without any sign of activity, in milliseconds.",
  }),
  connectorStdio: setting("connectors.stdio", stdioRule, {
    default: "operator",
    help: "Who may add connectors that start programs on this machine (MCP servers over stdio): the `operator`, which means the command line and admin tokens of the workspace `default`; `all` workspaces, whose programs then share this machine; or `none`, in which case existing ones are not started either. Tokens that act as an agent may never do so.",
  }),
  connectorStdioUser: setting("connectors.stdio_user", systemUser, {
    defaultText:
      "if the server runs as root, a different user id from 60706 to 61183 for each program, with an empty home directory; else the server's own user",
    help: "The user that connectors' programs run as, with that user's home directory from `/etc/passwd`. All programs share it: each can read the others' files, memory and environment, and what one leaves behind is not removed. Only a server that runs as root can use another user; root itself is refused.",
  }),
  allowAddresses: setting("connectors.allow_addresses", addressList, {
    defaultText: "none",
    help: "Addresses that connectors may reach even if they are link-local, multicast or cloud metadata addresses. Loopback and private networks are always allowed. In the variable, separate them with commas.",
  }),
  requestsPerMinute: setting("limits.requests_per_minute", wholeNumber(1, 1_000_000), {
    default: 600,
    help: "The number of requests that a workspace may make per minute, unless it has its own limit.",
  }),
  concurrentTasks: setting("limits.concurrent_tasks", wholeNumber(1, 100_000), {
    default: 60,
    help: "The number of tasks of a workspace that run at the same time, unless it has its own limit.",
  }),
  enforcement: setting("limits.enforcement", oneOf("soft", "enforced"), {
    default: "soft",
    help: "What happens above a limit: `soft` serves the request and reports it; `enforced` returns 429 and queues tasks.",
  }),
  runningTasksPerNode: setting("limits.running_tasks_per_node", wholeNumber(1, 100_000), {
    default: 256,
    help: "The number of tasks of all workspaces that run at the same time in this process. Further tasks are queued.",
  }),
  queuedTasks: setting("limits.queued_tasks", wholeNumber(1, 10_000_000), {
    default: 10_000,
    help: "The number of tasks that may wait in a workspace's queue. When it is full, dispatching returns 429 `queue_full`.",
  }),
  webhook: setting("notify.webhook", httpUrl("hook"), {
    secret: true,
    defaultText: "none",
    help: "The URL for notices about finished tasks, calls that wait for a person, exceeded limits, nearly spent budgets and ledger checkpoints. They are signed according to Standard Webhooks. The URL is secret, because such URLs often contain credentials.",
  }),
  webhookSecret: setting(
    "notify.secret",
    text(
      "whsec_ followed by 24 to 64 bytes in base64, as Standard Webhooks defines",
      "^whsec_(?:(?:[A-Za-z0-9+/]{4}){8,20}(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?|(?:[A-Za-z0-9+/]{4}){21}(?:[A-Za-z0-9+/]{2}==)?)$",
    ),
    {
      secret: true,
      defaultText: "created on the first start with a webhook, in `webhook.key` in the data directory",
      help: "The secret that signs posts to the webhook. The receiver verifies them with the same secret.",
    },
  ),
  upgradeBackup: setting("upgrade_backup", text("the path of a folder, or `off`"), {
    defaultText: "the data directory",
    help: "Where a start of a newer version keeps a backup of the database, before it upgrades it. `off`: nowhere.",
  }),
  drainSeconds: setting("drain_seconds", wholeNumber(0, 3_600), {
    default: 10,
    help: "How long calls in progress may take to finish when the server is told to stop, in seconds. The rest is interrupted and resumed by the next start.",
  }),
  approvalExpireHours: setting("approvals.expire_hours", wholeNumber(1, 8_760), {
    default: 24,
    help: "How long a person may take to decide on a call, in hours. After that it counts as denied.",
  }),
  consoleSessionHours: setting("console.session_hours", wholeNumber(1, 168), {
    default: 12,
    help: "How long a browser stays signed in to the console, in hours.",
  }),
  checkpointEvery: setting("ledger.checkpoint_every", wholeNumber(1, 1_000_000), {
    default: 256,
    help: "A checkpoint is signed after this many entries of a ledger.",
  }),
  checkpointSeconds: setting("ledger.checkpoint_seconds", wholeNumber(1, 86_400), {
    default: 10,
    help: "New entries are covered by a signed checkpoint after this many seconds, however few they are.",
  }),
  checkpointFile: setting("ledger.checkpoint_file", path, {
    defaultText: "none",
    help: "A file that checkpoints are appended to, preferably on a separate write-once disk. Each start compares the ledgers with the end of the file.",
  }),
  payloadDays: setting("ledger.payload_days", wholeNumber(1, 36_500), {
    default: 180,
    help: "How long prompts, outputs and arguments are kept, in days. The proofs stay.",
  }),
};

/** The rows in the order of the reference. */
export const SETTINGS: readonly Setting[] = Object.values(TABLE);

/** `GATEHOUSE_` variables that are not settings: other commands read them. */
export const OTHER_VARIABLES: ReadonlyMap<string, string> = new Map([
  ["GATEHOUSE_TOKEN", "The token that `gatehouse mcp` uses."],
  [
    "GATEHOUSE_URL",
    "The server that `gatehouse mcp` connects to, instead of the one that uses the data directory.",
  ],
]);
