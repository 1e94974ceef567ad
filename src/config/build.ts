import { dirname, resolve } from "node:path";
import type { Static, TSchema } from "typebox";
import type { Price } from "../base/call-cost.ts";
import { toMicros } from "../base/credits.ts";
import { trimEndOf } from "../base/trim-end.ts";
import type { Config, ProviderConfig, ResolvedValue, Tier } from "./config.ts";
import { parseListen } from "./listen.ts";
import { isPlaceholder, type Setting } from "./setting.ts";
import { TABLE } from "./table.ts";

const MIB = 1024 * 1024;

export interface BuildPlaces {
  readonly cwd: string;
  /** The file that was read. Relative paths in it start at its directory. */
  readonly file: string | undefined;
}

/**
 * Converts checked values to the form that the program uses.
 * @throws Error if a value is missing, which is a bug in the loader
 */
export function buildConfig(values: readonly ResolvedValue[], places: BuildPlaces): Config {
  const found = new Values(values);
  const listen = parseListen(found.need(TABLE.listen));
  if (!listen) throw new Error("listen was not checked");
  // The default depends on the port actually bound, which may be known only later.
  const publicUrl = found.origin(TABLE.publicUrl) === "default" ? undefined : found.take(TABLE.publicUrl);
  const adminToken = found.take(TABLE.adminToken);
  const webhook = found.take(TABLE.webhook);
  const notifySecret = found.take(TABLE.webhookSecret);
  const checkpointFile = found.take(TABLE.checkpointFile);
  const dataDir = resolve(places.cwd, found.need(TABLE.data));
  const store = found.take(TABLE.store);
  const storeListen = found.take(TABLE.storeListen);
  const stdioUser = found.take(TABLE.connectorStdioUser);
  const creditsPerUsd = found.take(TABLE.creditsPerUsd);
  return {
    dataDir,
    upgradeBackup: upgradeBackup(found, places, dataDir),
    listen,
    ...(publicUrl === undefined ? {} : { publicUrl: withoutSlash(publicUrl) }),
    ...(adminToken === undefined ? {} : { adminToken }),
    masterKey: found.take(TABLE.masterKey),
    ...(store !== undefined && {
      store: { url: store, ...(storeListen !== undefined && { directUrl: storeListen }) },
    }),
    logLevel: found.need(TABLE.logLevel),
    providers: new Map(found.names("providers").map((name) => [name, provider(found, name)])),
    prices: new Map(found.names("models").map((name) => [name, price(found, name)])),
    priceList: {
      ...(creditsPerUsd === undefined ? {} : { microsPerUsd: toMicros(creditsPerUsd) ?? 0 }),
      unknown: found.need(TABLE.unknownPrices),
    },
    aliases: new Map(found.names("aliases").map((alias) => [alias, found.need(TABLE.alias, alias)])),
    toolPrices: found.names("tools").map((pattern) => ({
      pattern,
      micros: toMicros(found.need(TABLE.toolPrice, pattern)) ?? 0,
    })),
    tiers: new Map(
      found
        .names("tiers")
        .map((name) => tier(found, name))
        .sort((left, right) => left.tier - right.tier)
        .map((each) => [each.tier, each]),
    ),
    limits: {
      requestsPerMinute: found.need(TABLE.requestsPerMinute),
      concurrentTasks: found.need(TABLE.concurrentTasks),
      enforcement: found.need(TABLE.enforcement),
      runningTasksPerNode: found.need(TABLE.runningTasksPerNode),
      queuedTasks: found.need(TABLE.queuedTasks),
    },
    embeddings: { model: found.need(TABLE.embeddingsModel) },
    vault: {
      readers: found.need(TABLE.vaultReaders),
      mostMs: found.need(TABLE.vaultReadSeconds) * 1_000,
      memoryBytes: found.need(TABLE.vaultReadMegabytes) * MIB,
    },
    connectors: {
      timeoutMs: found.need(TABLE.connectorTimeout),
      stdio: found.need(TABLE.connectorStdio),
      ...(stdioUser === undefined ? {} : { stdioUser }),
      allowAddresses: found.take(TABLE.allowAddresses) ?? [],
    },
    notify: {
      ...(webhook === undefined ? {} : { webhook }),
      ...(notifySecret === undefined ? {} : { secret: notifySecret }),
    },
    approvals: { expireHours: found.need(TABLE.approvalExpireHours) },
    console: { sessionHours: found.need(TABLE.consoleSessionHours) },
    drainSeconds: found.need(TABLE.drainSeconds),
    ledger: {
      checkpointEvery: found.need(TABLE.checkpointEvery),
      checkpointSeconds: found.need(TABLE.checkpointSeconds),
      ...(checkpointFile === undefined
        ? {}
        : {
            checkpointFile: resolve(baseOf(TABLE.checkpointFile, found, places), checkpointFile),
          }),
      payloadDays: found.need(TABLE.payloadDays),
    },
  };
}

/** Where the relative paths of a setting begin. */
function baseOf(row: Setting, found: Values, { file, cwd }: BuildPlaces): string {
  return found.origin(row) === "file" && file ? dirname(file) : cwd;
}

function upgradeBackup(found: Values, places: BuildPlaces, dataDir: string): string | null {
  const folder = found.take(TABLE.upgradeBackup);
  if (folder === "off") return null;
  return folder === undefined ? dataDir : resolve(baseOf(TABLE.upgradeBackup, found, places), folder);
}

function provider(found: Values, name: string): ProviderConfig {
  const baseUrl = found.take(TABLE.providerBaseUrl, name);
  const apiKey = found.take(TABLE.providerApiKey, name);
  const headers = found
    .names("providers", name, "headers")
    .map((header): [string, string] => [header, found.need(TABLE.providerHeader, name, header)]);
  return {
    kind: found.need(TABLE.providerKind, name),
    ...(baseUrl === undefined ? {} : { baseUrl: withoutSlash(baseUrl) }),
    ...(apiKey === undefined || apiKey === "" ? {} : { apiKey }),
    timeoutMs: found.need(TABLE.providerTimeout, name),
    ...(headers.length === 0 ? {} : { headers: Object.fromEntries(headers) }),
    ...present({
      resource: found.take(TABLE.providerResource, name),
      apiVersion: found.take(TABLE.providerApiVersion, name),
      region: found.take(TABLE.providerRegion, name),
      accessKeyId: found.take(TABLE.providerAccessKeyId, name),
      secretAccessKey: found.take(TABLE.providerSecretAccessKey, name),
      sessionToken: found.take(TABLE.providerSessionToken, name),
      project: found.take(TABLE.providerProject, name),
      location: found.take(TABLE.providerLocation, name),
      credentials: found.take(TABLE.providerCredentials, name),
    }),
  };
}

/** The fields that have a value. An empty string does not count as a value. */
function present<Fields extends Readonly<Record<string, string | undefined>>>(
  fields: Fields,
): { [Name in keyof Fields]?: string } {
  const found: { [Name in keyof Fields]?: string } = {};
  for (const name in fields) {
    const value = fields[name];
    if (value !== undefined && value !== "") found[name] = value;
  }
  return found;
}

function price(found: Values, name: string): Price {
  const cachedInput = found.take(TABLE.priceCachedInput, name);
  const cacheWrites = found.take(TABLE.priceCacheWrites, name);
  const reasoning = found.take(TABLE.priceReasoning, name);
  return {
    input: toMicros(found.need(TABLE.priceInput, name)) ?? 0,
    output: toMicros(found.need(TABLE.priceOutput, name)) ?? 0,
    ...(cachedInput === undefined ? {} : { cachedInput: toMicros(cachedInput) ?? 0 }),
    ...(cacheWrites === undefined ? {} : { cacheWrites: toMicros(cacheWrites) ?? 0 }),
    ...(reasoning === undefined ? {} : { reasoning: toMicros(reasoning) ?? 0 }),
  };
}

function tier(found: Values, name: string): Tier {
  return {
    tier: Number(name),
    name: found.take(TABLE.tierName, name) ?? `tier ${name}`,
    models: found.need(TABLE.tierModels, name),
  };
}

function withoutSlash(url: string): string {
  return trimEndOf(url, "/");
}

/** Values by their rows, each typed by its row's schema. */
class Values {
  readonly #byPath = new Map<string, ResolvedValue>();
  readonly #names = new Map<string, Set<string>>();

  constructor(values: readonly ResolvedValue[]) {
    for (const value of values) {
      this.#byPath.set(identity(value.path), value);
      for (let depth = 1; depth < value.path.length; depth++) {
        const parent = identity(value.path.slice(0, depth));
        const names = this.#names.get(parent) ?? new Set();
        this.#names.set(parent, names.add(value.path[depth] ?? ""));
      }
    }
  }

  take<Schema extends TSchema>(row: Setting<Schema>, ...names: string[]): Static<Schema> | undefined {
    const value = this.#find(row, names)?.value;
    return row.is(value) ? value : undefined;
  }

  need<Schema extends TSchema>(row: Setting<Schema>, ...names: string[]): Static<Schema> {
    const value = this.#find(row, names)?.value;
    if (!row.is(value)) throw new Error(`${row.key} was not checked`);
    return value;
  }

  origin(row: Setting): ResolvedValue["origin"] | undefined {
    return this.#find(row, [])?.origin;
  }

  /** The names that the file has below a group, in file order: the providers below `providers`. */
  names(...path: string[]): string[] {
    return [...(this.#names.get(identity(path)) ?? [])];
  }

  #find(row: Setting, names: readonly string[]): ResolvedValue | undefined {
    const left = [...names];
    const path = row.path.map((segment) => (isPlaceholder(segment) ? (left.shift() ?? segment) : segment));
    return this.#byPath.get(identity(path));
  }
}

/** Names contain no line breaks. */
function identity(path: readonly string[]): string {
  return path.join("\n");
}
