import type { Price } from "../base/call-cost.ts";
import type { Listen } from "./listen.ts";
import { listenUrl } from "./listen.ts";

/**
 * The configuration as the program uses it: complete and checked, with absolute paths. Contains secrets in plain
 * text.
 */
export interface Config {
  /** Absolute. */
  readonly dataDir: string;
  /** The folder for the backup before an upgrade. Absolute. Null: none is made. */
  readonly upgradeBackup: string | null;
  readonly listen: Listen;
  /** Without a trailing slash. If unset, see `publicUrl`. */
  readonly publicUrl?: string;
  readonly adminToken?: string;
  /** 32 bytes in base64, base64url or hex. If unset, the key is in a file in the data directory. */
  readonly masterKey: string | undefined;
  /** If unset, the store is in the data directory. */
  readonly store?: SharedStoreConfig;
  readonly logLevel: "debug" | "info" | "warn" | "error";
  readonly providers: ReadonlyMap<string, ProviderConfig>;
  /** By `<provider>/<model>`, in micro-credits per 1,000 tokens. They take precedence over the price list. */
  readonly prices: ReadonlyMap<string, Price>;
  readonly priceList: PriceListConfig;
  /** Clients' names for models, in file order: to a model, `tier:2` or a tier's name. `*` stands for any characters. */
  readonly aliases: ReadonlyMap<string, string>;
  /**
   * Tool prices in file order, in micro-credits per call. The first matching glob counts; tools that match none are
   * free.
   */
  readonly toolPrices: readonly { readonly pattern: string; readonly micros: number }[];
  /** By number, in ascending order; never empty. */
  readonly tiers: ReadonlyMap<number, Tier>;
  readonly limits: LimitDefaults;
  /** `builtin/lexical` or a model of a configured provider. */
  readonly embeddings: { readonly model: string };
  /** Limits for reading a document. */
  readonly vault: VaultSettings;
  readonly connectors: ConnectorSettings;
  /** `secret` is in the Standard Webhooks form. If unset, it is in a file in the data directory. */
  readonly notify: { readonly webhook?: string; readonly secret?: string };
  readonly approvals: { readonly expireHours: number };
  /** How long a browser stays signed in. */
  readonly console: { readonly sessionHours: number };
  /** How long a stop waits for calls in progress. */
  readonly drainSeconds: number;
  readonly ledger: LedgerConfig;
}

/** A store that several nodes share. */
export interface SharedStoreConfig {
  /** `postgres://user:password@host/database`. */
  readonly url: string;
  /** A direct URL of the same database, if `url` leads to a pooler. */
  readonly directUrl?: string;
}

export interface PriceListConfig {
  /** Micro-credits per US dollar. Without it, the shipped price list is not used. */
  readonly microsPerUsd?: number;
  /** Whether a model without a price is free or refused. */
  readonly unknown: "free" | "refuse";
}

/** The API types of providers. */
export type ProviderKind =
  | "openai-compatible"
  | "openai"
  | "azure"
  | "anthropic"
  | "google"
  | "bedrock"
  | "vertex";

/** The fields that a kind needs are checked when the configuration is loaded (`provider-fields.ts`). */
export interface ProviderConfig {
  readonly kind: ProviderKind;
  /** Without a trailing slash. Always set for `openai-compatible`; otherwise it defaults to the vendor's URL. */
  readonly baseUrl?: string;
  readonly apiKey?: string;
  readonly timeoutMs: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** azure: the resource's name. */
  readonly resource?: string;
  /** azure: the value of `api-version`. */
  readonly apiVersion?: string;
  /** bedrock. */
  readonly region?: string;
  readonly accessKeyId?: string;
  readonly secretAccessKey?: string;
  readonly sessionToken?: string;
  /** vertex. */
  readonly project?: string;
  readonly location?: string;
  /** vertex: a service account's key, in JSON. */
  readonly credentials?: string;
}

/** A route: models in the order in which they are tried. */
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
  /** Number of processes that read documents at the same time. */
  readonly readers: number;
  /** Maximum time to read one document, in milliseconds. */
  readonly mostMs: number;
  /** Maximum memory of a process that reads documents, in bytes. */
  readonly memoryBytes: number;
}

export interface ConnectorSettings {
  /** How long a call may go on without any sign of activity. */
  readonly timeoutMs: number;
  /** Who may add connectors that start programs on this machine. */
  readonly stdio: StdioRule;
  /** The user, by name or number, that such programs run as. If unset, see the reference. */
  readonly stdioUser?: string;
  /** Addresses and CIDR ranges that are allowed even though they are link-local or metadata addresses. */
  readonly allowAddresses: readonly string[];
}

export interface LedgerConfig {
  readonly checkpointEvery: number;
  readonly checkpointSeconds: number;
  /** Absolute. */
  readonly checkpointFile?: string;
  readonly payloadDays: number;
}

export type SettingOrigin = "flag" | "environment" | "file" | "default";

/** A setting's value and its source. `config show` prints this, redacted. */
export interface ResolvedValue {
  /** The key with its names filled in: `providers.local.kind`. */
  readonly key: string;
  /** The key's segments, because names may contain dots. */
  readonly path: readonly string[];
  readonly value: string | number | boolean | readonly string[] | undefined;
  readonly secret: boolean;
  readonly origin: SettingOrigin;
  /** The flag, the variable, `<file>:<line>`, or the origin of a default. */
  readonly detail: string;
}

export interface LoadedConfig {
  readonly config: Config;
  /** In table order. Contains secrets: print it through `showConfig`. */
  readonly values: readonly ResolvedValue[];
  /** The file names no tiers, so they depend on what is found (see `withDefaultModels`). */
  readonly defaultTiers: boolean;
}

/**
 * The URL at which clients reach the server: `public_url`, else the address listened on. `port` is the port actually
 * bound.
 */
export function publicUrl(config: Pick<Config, "publicUrl" | "listen">, port: number): string {
  return config.publicUrl ?? listenUrl({ host: config.listen.host, port });
}
