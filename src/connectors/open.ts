import type { Agents } from "../access/agents.ts";
import type { Tokens } from "../access/tokens.ts";
import type { Workspaces } from "../access/workspaces.ts";
import type { Clock } from "../base/clock.ts";
import { invalidField } from "../base/errors.ts";
import type { Ids, RandomSource } from "../base/ids.ts";
import type { Log } from "../base/log.ts";
import { createMask } from "../base/masking/mask.ts";
import type { Config } from "../config/config.ts";
import type { Budgets } from "../gate/budget.ts";
import type { DirectCallRecords } from "../gate/direct/open.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { Nodes } from "../nodes/nodes.ts";
import type { Db } from "../store/db.ts";
import type { Forgetting } from "../store/forgetting.ts";
import { seal, open as unseal } from "../store/sealed-value.ts";
import type { SecretKey } from "../store/secret-key.ts";
import type { Vault } from "../vault/vault.ts";
import { builtinTools } from "./builtin/all.ts";
import { Catalogue } from "./catalogue.ts";
import { announceConnector, ConnectorChanges } from "./connector-changes.ts";
import type { SourceListener } from "./connector-parts.ts";
import { Connectors } from "./connectors.ts";
import type { ConnectorDefinition, McpDefinition, OpenApiDefinition } from "./definition/definition.ts";
import { type DefinitionStore, definitionContext } from "./definition/stored.ts";
import { DirectCalls } from "./direct/call.ts";
import { LazySource } from "./lazy-source.ts";
import { openProgramUsers, type ProgramUserPool } from "./mcp-upstream/stdio/program-users.ts";
import { LargeDocuments } from "./openapi/large-documents.ts";
import { ApiReaders } from "./openapi/reading/readers.ts";
import type { OpenApiParts } from "./openapi/source.ts";
import { createOutbound, type Outbound } from "./outbound/fetch.ts";
import { ownAddress } from "./outbound/own-address.ts";
import { ProgramRules } from "./program-rules.ts";
import { ToolRegistry } from "./registry.ts";
import { secretsOf } from "./secrets/secrets-of.ts";
import { ConnectorError, type ToolSource } from "./source.ts";

export interface OpenConnectorsParts {
  readonly config: Pick<Config, "dataDir" | "connectors" | "listen">;
  /** Encrypts connectors' definitions. */
  readonly secretKey: SecretKey;
  /** This Gatehouse's id, which its requests carry. */
  readonly instance: string;
  /** The program's entry, used to start the processes that read OpenAPI documents. */
  readonly main: URL;
  /** The port that the server listens on; null while it does not. */
  readonly listening: () => number | null;
  readonly db: Db;
  readonly nodes: Pick<Nodes, "bus" | "gone" | "isShared">;
  readonly forgetting: Pick<Forgetting, "forget">;
  readonly ledger: Ledger;
  readonly budgets: Budgets;
  readonly direct: DirectCallRecords;
  readonly agents: Agents;
  readonly tokens: Pick<Tokens, "grantOf">;
  readonly workspaces: Workspaces;
  readonly vault: Vault;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly random: RandomSource;
  readonly log: Log;
}

/** The connectors, the registry of who may use their tools, and calls outside of tasks. */
export interface OpenedConnectors {
  readonly connectors: Connectors;
  readonly programs: ProgramRules;
  readonly registry: ToolRegistry;
  readonly calls: DirectCalls;
  /** Ends all child processes and connections. */
  stop(): Promise<void>;
}

/** @throws OperatorError if the key for secrets is not available */
export async function openConnectors(parts: OpenConnectorsParts): Promise<OpenedConnectors> {
  const { config, db, nodes, ledger, budgets, agents, workspaces, clock, ids, log } = parts;
  const outbound = createOutbound({
    allow: config.connectors.allowAddresses,
    instance: parts.instance,
    own: ownAddress(config.listen, parts.listening),
  });
  const programs = new ProgramRules(config.connectors.stdio, db, workspaces);
  const { dataDir } = config;
  const programUsers = openProgramUsers({ dataDir, stdioUser: config.connectors.stdioUser, clock, log });
  const readers = new ApiReaders(parts.main, log);
  const large = new LargeDocuments();
  const catalogue = new Catalogue(builtinTools(parts));
  const registry = new ToolRegistry(catalogue);
  const connectors = new Connectors({
    db,
    forgetting: parts.forgetting,
    ledger,
    catalogue,
    clock,
    log,
    definitions: definitionStore(parts),
    isShared: nodes.isShared,
    announce: (workspaceId, name) => announceConnector(nodes.bus, workspaceId, name),
    admit: (definition, caller) => {
      checkAddresses(definition, outbound);
      return programs.admit(definition, caller);
    },
    check: async (definition, stored) => {
      checkAddresses(definition, outbound);
      await programs.check(definition, stored);
    },
    openSource: (name, definition, told) =>
      definition.kind === "mcp"
        ? openMcp(parts, { outbound, programUsers }, name, definition, told)
        : openOpenApi(parts, { outbound, readers, large }, name, definition, told),
  });
  const changes = new ConnectorChanges({ nodes, connectors, workspaces, clock, log });
  await connectors.load(workspaces.list().map(({ id }) => id));
  const { running, usage, late } = parts.direct;
  const calls = new DirectCalls({
    ...{ running, usage, late, db, budgets, ledger, agents, workspaces, registry, clock, ids, log },
  });
  return {
    connectors,
    programs,
    registry,
    calls,
    async stop() {
      await changes.stop();
      await Promise.all([connectors.stop(), readers.stop()]);
      await programUsers?.close();
      outbound.close();
    },
  };
}

function openMcp(
  { config, instance, clock, random, log }: OpenConnectorsParts,
  { outbound, programUsers }: { readonly outbound: Outbound; readonly programUsers: ProgramUserPool | null },
  name: string,
  definition: McpDefinition,
  { workspaceId, connector, toolsChanged }: SourceListener,
): ToolSource {
  const { timeoutMs } = config.connectors;
  const mask = createMask(secretsOf(definition));
  const fetch = outbound.fetchFor(workspaceId);
  const given = { workspaceId, fetch, mask, clock, random, log, timeoutMs, instance, toolsChanged };
  return new LazySource(async () => {
    const { mcpSource } = await import("./mcp-upstream/source.ts");
    if (connector === null) throw new Error("an MCP source needs a stored connector");
    const users = programUsers?.usersOf(connector) ?? null;
    return mcpSource({ name }, definition, { ...given, programUsers: users });
  });
}

interface OpenApiRooms {
  readonly outbound: Outbound;
  readonly readers: ApiReaders;
  readonly large: LargeDocuments;
}

function openOpenApi(
  { config, clock }: OpenConnectorsParts,
  { outbound, readers, large }: OpenApiRooms,
  name: string,
  { spec, ...definition }: OpenApiDefinition,
  { workspaceId, pinOrigin, readSpec }: SourceListener,
): ToolSource {
  const secrets = secretsOf({ ...definition, spec });
  const given: OpenApiParts = {
    ...{ fetch: outbound.fetchFor(workspaceId), secrets, mask: createMask(secrets), clock },
    documentMemory: () => large.begin(workspaceId),
    ...{ pinOrigin, readSpec, readApi: readers.of(workspaceId), timeoutMs: config.connectors.timeoutMs },
  };
  return new LazySource(async () => {
    const { openApiSource } = await import("./openapi/source.ts");
    return openApiSource({ name }, definition, given);
  });
}

function definitionStore({ secretKey: key, random }: OpenConnectorsParts): DefinitionStore {
  return {
    seal: (workspaceId, name, definition) =>
      seal(key, JSON.stringify(definition), definitionContext(workspaceId, name), random),
    open: (workspaceId, name, sealed) =>
      JSON.parse(
        Buffer.from(unseal(key, sealed, definitionContext(workspaceId, name))).toString(),
      ) as ConnectorDefinition,
  };
}

/** Checks addresses when a connector is created, and at each start. @throws Problem 422 */
function checkAddresses(definition: ConnectorDefinition, outbound: Outbound): void {
  if (definition.kind === "mcp") {
    const { transport } = definition;
    if (transport.type !== "stdio") checkUrl("/transport/url", transport.url, outbound);
    return;
  }
  const { spec, baseUrl } = definition;
  if (typeof spec === "string" && /^https?:/i.test(spec)) checkUrl("/spec", spec, outbound);
  if (baseUrl !== null) checkUrl("/base_url", baseUrl, outbound);
}

function checkUrl(path: string, url: string, outbound: Outbound): void {
  try {
    outbound.checkUrl(url);
  } catch (error) {
    if (!(error instanceof ConnectorError)) throw error;
    throw invalidField(path, error.message);
  }
}
