import {
  addressList,
  creditPrice,
  embeddingModelName,
  httpUrl,
  listenAddress,
  modelList,
  oneOf,
  stdioRule,
  systemUser,
  text,
  trueOrFalse,
  wholeNumber,
} from "./kinds.ts";
import { type Setting, setting } from "./setting.ts";

const path = text("a path");
// Characters that HTTP cannot transmit are rejected here, because a later error would quote the key.
const apiKey = text("a key of printable ASCII characters without spaces", "^[!-~]*$");
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
    help: "The directory that holds the database, the keys and, unless `--config` names another, `gatehouse.yaml`.",
  }),
  config: setting("config", path, {
    flag: "--config",
    inFile: false,
    defaultText: "`gatehouse.yaml` in the data directory, if it is there",
    help: "The configuration file (YAML); one that is named has to exist.",
  }),
  listen: setting("listen", listenAddress, {
    flag: "--listen",
    default: "127.0.0.1:8420",
    help: "The address and TCP port to serve on; the default is reachable from this machine alone.",
  }),
  publicUrl: setting("public_url", httpUrl("public"), {
    defaultText: "`http://` and the address of `listen`",
    help: "The URL that clients see, for when a proxy stands in front.",
  }),
  adminToken: setting(
    "admin_token",
    text("gth_ and 49 letters and digits, as `gatehouse token secret` prints", "^gth_[0-9A-Za-z]{49}$"),
    {
      inFile: false,
      secret: true,
      defaultText: "made on the first start",
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
      defaultText: "made on the first start, in `secrets.key` in the data directory",
      help: "The key that connectors' secrets are encrypted with; without it they are lost.",
    },
  ),
  logLevel: setting("log_level", oneOf("debug", "info", "warn", "error"), {
    default: "info",
    help: "The least severe log lines that are written.",
  }),

  providerKind: setting(
    "providers.<provider>.kind",
    oneOf("openai-compatible", "openai", "anthropic", "google"),
    { required: true, help: "Which API the provider speaks." },
  ),
  providerBaseUrl: setting("providers.<provider>.base_url", httpUrl("endpoint"), {
    defaultText: "the vendor's own; `openai-compatible` has none and needs one",
    help: "The URL that the API's paths are appended to, for example `http://127.0.0.1:11434/v1`.",
  }),
  providerApiKey: setting("providers.<provider>.api_key", apiKey, {
    secret: true,
    defaultText: "none",
    help: "The key sent to the provider; an empty one counts as none.",
  }),
  providerTimeout: setting("providers.<provider>.timeout_ms", wholeNumber(1, 3_600_000), {
    default: 60_000,
    help: "How long the provider may be silent in a call, in milliseconds, before the next model of the route is tried.",
  }),
  providerHeader: setting("providers.<provider>.headers.<header>", headerValue, {
    secret: true,
    defaultText: "none",
    help: "A header sent with every call to the provider.",
  }),
  priceInput: setting("models.<model>.input", creditPrice, {
    required: true,
    help: "The price of 1,000 input tokens in credits; a model that is not listed costs 0.",
  }),
  priceOutput: setting("models.<model>.output", creditPrice, {
    required: true,
    help: "The price of 1,000 output tokens in credits.",
  }),
  tierName: setting("tiers.<tier>.name", text("text of at most 100 characters", undefined, 100), {
    defaultText: "`tier` and its number",
    help: "What people call the tier.",
  }),
  tierModels: setting("tiers.<tier>.models", modelList, {
    required: true,
    help: "The tier's route: models of configured providers, or `builtin/extractive`, in the order they are tried.",
  }),
  toolPrice: setting("tools.<tool>", creditPrice, {
    defaultText: "0",
    help: "The price of a call of each tool that the glob matches (`*`: any characters, `?`: one), in credits; the first that matches counts.",
  }),

  embeddingsModel: setting("embeddings.model", embeddingModelName, {
    default: "builtin/lexical",
    help: "The model that turns passages and questions into vectors; `builtin/lexical` needs no network.",
  }),
  vaultReaders: setting("vault.readers", wholeNumber(1, 64), {
    default: 2,
    help: "Processes that read documents at the same time. With more than one, a workspace never takes all of them.",
  }),
  vaultReadSeconds: setting("vault.read_seconds", wholeNumber(1, 3_600), {
    default: 120,
    help: "Seconds that reading one document may take. A document gets 20 seconds and 4 more for each MiB that was sent, up to this; past that it is refused as too complex.",
  }),
  vaultReadMegabytes: setting("vault.read_megabytes", wholeNumber(256, 65_536), {
    default: 1_024,
    help: "MiB of memory that a process that reads documents may take; a document that needs more is refused as too complex.",
  }),
  connectorTimeout: setting("connectors.timeout_ms", wholeNumber(1, 3_600_000), {
    default: 60_000,
    help: "How long a tool call to a connector may go on without a sign of life, in milliseconds.",
  }),
  connectorStdio: setting("connectors.stdio", stdioRule, {
    default: "operator",
    help: "Who may add connectors that start programs on this machine (MCP servers over stdio): the `operator`, which is the command line and admin tokens of the workspace `default`; `all` workspaces, which then meet on this machine; or `none`, which also starts none of those that exist. Tokens that act as an agent never may.",
  }),
  connectorStdioUser: setting("connectors.stdio_user", systemUser, {
    defaultText:
      "one of the numbers 60706 to 61183 for each program, with an empty home directory, if the server runs as root; else the server's own user",
    help: "The user that connectors' programs run as, with the home directory that `/etc/passwd` names for it. Only a server that runs as root can choose one; root itself is refused.",
  }),
  allowAddresses: setting("connectors.allow_addresses", addressList, {
    defaultText: "none",
    help: "Addresses that connectors may reach although they are link-local, multicast or a cloud's metadata; loopback and private networks are always allowed. Commas part them in the variable.",
  }),
  requestsPerMinute: setting("limits.requests_per_minute", wholeNumber(1, 1_000_000), {
    default: 600,
    help: "Requests a workspace may make in a minute, until it is given a limit of its own.",
  }),
  concurrentTasks: setting("limits.concurrent_tasks", wholeNumber(1, 100_000), {
    default: 60,
    help: "Tasks of a workspace that run at the same time, until it is given a limit of its own.",
  }),
  enforcement: setting("limits.enforcement", oneOf("soft", "enforced"), {
    default: "soft",
    help: "Past a limit, `soft` serves and reports; `enforced` answers 429 and lets tasks wait.",
  }),
  runningTasksPerNode: setting("limits.running_tasks_per_node", wholeNumber(1, 100_000), {
    default: 256,
    help: "Tasks that run at the same time in this process, over all workspaces; more of them queue.",
  }),
  queuedTasks: setting("limits.queued_tasks", wholeNumber(1, 10_000_000), {
    default: 10_000,
    help: "Tasks that may wait in a workspace's queue; past that dispatching answers 429 `queue_full`.",
  }),
  webhook: setting("notify.webhook", httpUrl("hook"), {
    secret: true,
    defaultText: "none",
    help: "The URL that finished tasks, calls that wait for a person, exceeded limits, budgets that are nearly spent and ledger checkpoints are posted to, signed as Standard Webhooks says; secret, as such URLs carry credentials.",
  }),
  webhookSecret: setting(
    "notify.secret",
    text(
      "whsec_ and 24 to 64 bytes in base64, as Standard Webhooks writes a secret",
      "^whsec_(?:(?:[A-Za-z0-9+/]{4}){8,20}(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?|(?:[A-Za-z0-9+/]{4}){21}(?:[A-Za-z0-9+/]{2}==)?)$",
    ),
    {
      secret: true,
      defaultText: "made at the first start with a webhook, in `webhook.key` in the data directory",
      help: "The secret that what is posted to the webhook is signed with; its receiver checks with the same.",
    },
  ),
  drainSeconds: setting("drain_seconds", wholeNumber(0, 3_600), {
    default: 10,
    help: "Seconds that calls which are out are given when the server is told to stop; what is not done by then is broken off, and taken up by the next start.",
  }),
  approvalExpireHours: setting("approvals.expire_hours", wholeNumber(1, 8_760), {
    default: 24,
    help: "Hours that a person may take to decide on a call; after that it counts as denied.",
  }),
  consoleSessionHours: setting("console.session_hours", wholeNumber(1, 168), {
    default: 12,
    help: "Hours after which a browser has to sign in to the console again.",
  }),
  checkpointEvery: setting("ledger.checkpoint_every", wholeNumber(1, 1_000_000), {
    default: 256,
    help: "Entries of a ledger after which a checkpoint is signed.",
  }),
  checkpointSeconds: setting("ledger.checkpoint_seconds", wholeNumber(1, 86_400), {
    default: 10,
    help: "Seconds after which new entries are signed over, however few they are.",
  }),
  checkpointFile: setting("ledger.checkpoint_file", path, {
    defaultText: "none",
    help: "A file, best on another disk that cannot be rewritten, that checkpoints are appended to. Each start compares the ledgers with its end.",
  }),
  payloadDays: setting("ledger.payload_days", wholeNumber(1, 36_500), {
    default: 180,
    help: "Days that prompts, outputs and arguments are kept; the proofs stay.",
  }),
  mcpFixtures: setting("mcp_fixtures", trueOrFalse, {
    inFile: false,
    default: false,
    help: "For tests alone: MCP clients are served the tools, resources and prompts of the conformance suite. Refused where `listen` is not a loopback address.",
  }),
};

/** The rows in the order of the reference. */
export const SETTINGS: readonly Setting[] = Object.values(TABLE);

/** `GATEHOUSE_` variables that are not settings: other commands read them. */
export const OTHER_VARIABLES: ReadonlyMap<string, string> = new Map([
  ["GATEHOUSE_TOKEN", "The token that `gatehouse mcp` acts with."],
  ["GATEHOUSE_URL", "The server that `gatehouse mcp` speaks to, in place of the data directory's."],
]);
