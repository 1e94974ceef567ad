import type { Price } from "../base/credits.ts";
import type { Listen } from "./listen.ts";
import { listenUrl } from "./listen.ts";

/** The configuration as the program uses it: complete, checked, paths absolute. It holds secrets in the clear. */
export interface Config {
  /** Absolute. */
  readonly dataDir: string;
  readonly listen: Listen;
  /** Without a trailing slash. Unset: see `publicUrl`. */
  readonly publicUrl?: string;
  readonly adminToken?: string;
  /** 32 bytes in base64, base64url or hex. Unset: a file in the data directory holds the key. */
  readonly masterKey: string | undefined;
  readonly logLevel: "debug" | "info" | "warn" | "error";
  readonly providers: ReadonlyMap<string, ProviderConfig>;
  /** By `<provider>/<model>`, in micro-credits for 1,000 tokens; what is not in it is free. */
  readonly prices: ReadonlyMap<string, Price>;
  /** Of tools, as the file has them: the first whose glob matches counts; what none matches is free. Micro-credits a call. */
  readonly toolPrices: readonly { readonly pattern: string; readonly micros: number }[];
  /** By number, in ascending order; never empty. */
  readonly tiers: ReadonlyMap<number, Tier>;
  readonly limits: LimitDefaults;
  /** `builtin/lexical` or a model of a configured provider. */
  readonly embeddings: { readonly model: string };
  /** Bounds of reading a document. */
  readonly vault: VaultSettings;
  readonly connectors: ConnectorSettings;
  /** Tests of MCP's conformance are served tools, resources and prompts that answer as these expect. */
  readonly mcpFixtures: boolean;
  /** `secret`: as Standard Webhooks writes it. Unset: a file in the data directory holds it. */
  readonly notify: { readonly webhook?: string; readonly secret?: string };
  readonly approvals: { readonly expireHours: number };
  /** How long a browser stays signed in. */
  readonly console: { readonly sessionHours: number };
  /** How long a stop waits for calls that are out. */
  readonly drainSeconds: number;
  readonly ledger: LedgerConfig;
}

/** The dialects that providers speak. */
export type ProviderKind = "openai-compatible" | "openai" | "anthropic" | "google";

export interface ProviderConfig {
  readonly kind: ProviderKind;
  /** Without a trailing slash. Always set for `openai-compatible`; elsewhere the vendor's own is meant. */
  readonly baseUrl?: string;
  readonly apiKey?: string;
  readonly timeoutMs: number;
  readonly headers?: Readonly<Record<string, string>>;
}

/** A route: models in the order they are tried. */
export interface Tier {
  readonly tier: number;
  readonly name: string;
  readonly models: readonly string[];
}

export interface LimitDefaults {
  readonly requestsPerMinute: number;
  readonly concurrentTasks: number;
  readonly enforcement: "soft" | "enforced";
  readonly runningTasksPerNode: number;
  /** Per workspace. */
  readonly queuedTasks: number;
}

export type StdioRule = "operator" | "all" | "none";

export interface VaultSettings {
  /** Processes that read documents at the same time. */
  readonly readers: number;
  /** Milliseconds that reading one document may take at most. */
  readonly mostMs: number;
  /** Bytes of memory that a process that reads documents may take. */
  readonly memoryBytes: number;
}

export interface ConnectorSettings {
  /** How long a call may go on without a sign of life. */
  readonly timeoutMs: number;
  /** Who may add connectors that start programs on this machine. */
  readonly stdio: StdioRule;
  /** The user that such programs run as, by name or number. Unset: see the reference. */
  readonly stdioUser?: string;
  /** Addresses and CIDR ranges that may be reached although they are link-local or metadata addresses. */
  readonly allowAddresses: readonly string[];
}

export interface LedgerConfig {
  readonly checkpointEvery: number;
  readonly checkpointSeconds: number;
  /** Absolute. */
  readonly checkpointFile?: string;
  readonly payloadDays: number;
}

export type Origin = "flag" | "environment" | "file" | "default";

/** One setting's value and where it was taken from; what `config show` prints, once redacted. */
export interface ResolvedValue {
  /** With the names filled in: `providers.local.kind`. */
  readonly key: string;
  /** The key's segments, for names that hold dots. */
  readonly path: readonly string[];
  readonly value: string | number | boolean | readonly string[] | undefined;
  readonly secret: boolean;
  readonly origin: Origin;
  /** The flag, the variable, `<file>:<line>`, or where a default comes from. */
  readonly detail: string;
}

export interface LoadedConfig {
  readonly config: Config;
  /** In the order of the table. Holds secrets: print it through `showConfig`. */
  readonly values: readonly ResolvedValue[];
  /** The file names no tiers, so that they follow from what is found around (see `withDefaultModels`). */
  readonly defaultTiers: boolean;
}

/** The URL clients reach the server at: `public_url`, else the address listened on. `port` is the one really bound. */
export function publicUrl(config: Pick<Config, "publicUrl" | "listen">, port: number): string {
  return config.publicUrl ?? listenUrl({ host: config.listen.host, port });
}
