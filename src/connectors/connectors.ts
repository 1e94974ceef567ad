import { invalidField, Problem } from "../base/errors.ts";
import type { Call } from "../gate/call.ts";
import type { Detail } from "../ledger/entry.ts";
import { builtinConnector, type Connector, type ConnectorStatus } from "./connector.ts";
import type { ConnectorParts } from "./connector-parts.ts";
import type { OpenApiDefinition } from "./definition/definition.ts";
import { type ConnectorRequest, definitionOf } from "./definition/request.ts";
import {
  countConnectors,
  deleteConnector,
  insertConnector,
  storedListing,
  updateConnector,
} from "./definition/rows.ts";
import { specText } from "./definition/stored.ts";
import type { ListingResult, LiveConnector, Relisting } from "./live.ts";
import { isStored, LiveConnectors, NOTHING_YET } from "./live-connectors.ts";
import { connectorTaken, unknownConnector } from "./refusals.ts";
import { ConnectorError } from "./source.ts";
import { areSameTools } from "./tools/kept-tool.ts";
import { ListingAllowance } from "./tools/listing-allowance.ts";
import { ToolMemory } from "./tools/memory-share.ts";

/**
 * Maximum number of connectors of a workspace. Each may use a process, a connection and memory for two thousand
 * tools.
 */
const PER_WORKSPACE = 200;
/**
 * Maximum number of bytes of all definitions of a workspace. An OpenAPI document sent as text is part of its
 * definition.
 */
const DEFINITIONS_PER_WORKSPACE = 64 * 1024 * 1024;
/** How long to wait for tools. A program that `npx` downloads first takes a while. */
const LISTING_MS = 75_000;
/** How long creating a connector waits for its tools before it answers. The listing continues in the background. */
const ANSWER_MS = 20_000;
/** Names that connectors cannot have, besides those of built-in connectors: over MCP, agents are `agents__<name>`. */
const RESERVED = ["agents"];

/** The connectors of all workspaces: creates, refreshes and removes them, and keeps them ready for calls. */
export class Connectors {
  readonly #parts: ConnectorParts;
  readonly #live: LiveConnectors;
  /** Aborts when the process is asked to stop. */
  readonly #stopping = new AbortController();
  /** Work that continues after its request was answered. */
  readonly #background = new Set<Promise<void>>();
  readonly #allowance: ListingAllowance;
  readonly #toolMemory: ToolMemory;
  /** Connectors whose newest tools could not be stored. */
  readonly #unwritten = new WeakSet<LiveConnector>();

  constructor(parts: ConnectorParts) {
    this.#parts = parts;
    this.#allowance = new ListingAllowance(parts.clock);
    this.#toolMemory = parts.toolMemory ?? new ToolMemory();
    this.#live = new LiveConnectors({
      ...{ ...parts, allowance: this.#allowance, toolMemory: this.#toolMemory },
      toolsChanged: (live) => void this.#inBackground(() => this.#relist(live)),
    });
  }

  /** Emits a connector that was added or removed, or whose status or tools have changed. */
  get changed(): LiveConnectors["changed"] {
    return this.#live.changed;
  }

  get called(): LiveConnectors["called"] {
    return this.#live.called;
  }

  /**
   * Loads the stored connectors. Contacts no upstream: the tools of the last listing are used until the first call.
   */
  async load(workspaceIds: readonly number[]): Promise<void> {
    for (const workspaceId of workspaceIds) await this.#live.load(workspaceId);
  }

  /** Follows a change that another node has stored. @throws StoreUnavailable */
  follow(workspaceId: number, name: string): Promise<void> {
    return this.#live.reload(workspaceId, name);
  }

  /** Follows all changes that other nodes have stored in a workspace. @throws StoreUnavailable */
  async followAll(workspaceId: number): Promise<void> {
    for (const name of await this.#live.outdated(workspaceId)) await this.#live.reload(workspaceId, name);
  }

  /** Ends all child processes and connections. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await Promise.all(this.#live.all().map((live) => live.end()));
    await Promise.all(this.#background);
  }

  /** All connectors by name, including the built-in ones. */
  list(workspaceId: number, createdAt: number): readonly Connector[] {
    const builtin = this.#parts.catalogue.builtinConnectors.map((name) => builtinConnector(name, createdAt));
    const own = [...this.#live.of(workspaceId).values()].map(({ connector }) => connector);
    return [...builtin, ...own].sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  /** The current status of a connector that has an upstream; undefined if no such connector exists. */
  statusOf(workspaceId: number, name: string): ConnectorStatus | undefined {
    return this.#live.of(workspaceId).get(name)?.connector.status;
  }

  /** Every connector that has an upstream, for the metrics. */
  all(): readonly { readonly workspaceId: number; readonly connector: Connector }[] {
    return this.#live.all().map(({ stored, connector }) => ({ workspaceId: stored.workspaceId, connector }));
  }

  /**
   * Adds a connector. Its authorisation is on disk before a program is started or a server is asked for its tools. If
   * the upstream cannot be reached, the connector is created as `unreachable`. An OpenAPI document is read before
   * anything is stored.
   * @throws Problem 403 `operator_only`, 409 `connector_exists`, `connector_limit`, 422 `validation_failed`, 429
   *   `rate_limited`
   */
  async create(call: Call, request: ConnectorRequest): Promise<Connector> {
    const { workspaceId, actor } = call.caller;
    const { name, kind, scopes = ["*"] } = request;
    call.about({ detail: { connector: name, kind, scopes: scopes.join(" ") } });
    const asked = this.#parts.admit(definitionOf(request), call.caller);
    await this.#refuseTaken(workspaceId, name);
    this.#allowance.take(workspaceId);
    const { definition, offered } =
      asked.kind === "openapi"
        ? await this.#readDocument(workspaceId, name, asked)
        : { definition: asked, offered: NOTHING_YET };
    const refusal = this.#toolMemory.refusal(workspaceId, null, offered.tools);
    if (refusal !== undefined) {
      const detail = `There is no room for the connector ${name}: it offers ${refusal}.`;
      throw new Problem("connector_limit", detail);
    }
    const sealed = this.#parts.definitions.seal(workspaceId, name, definition);
    const ownScopes = [...new Set(scopes)];
    await this.#parts.catalogue.authorise(workspaceId, ownScopes, offered.tools);
    const stored = await call.commit(async (tx) => {
      const { count, bytes } = await countConnectors(tx, workspaceId);
      if (count >= PER_WORKSPACE) {
        const detail = `A workspace may have ${PER_WORKSPACE} connectors. Remove one first.`;
        throw new Problem("connector_limit", detail);
      }
      if (bytes + sealed.length > DEFINITIONS_PER_WORKSPACE) {
        const detail = `The definitions of a workspace's connectors may have ${DEFINITIONS_PER_WORKSPACE} bytes in total. Send the document's URL instead of its text.`;
        throw new Problem("connector_limit", detail);
      }
      const inserted = await insertConnector(tx, {
        workspaceId,
        name,
        kind,
        sealed,
        scopes: ownScopes,
        ...offered,
        authorisedBy: actor,
        authorisedAt: this.#parts.clock.now(),
      });
      if (!inserted) throw connectorTaken(name);
      return inserted;
    });
    const live = this.#live.add(stored, definition);
    this.#parts.announce(workspaceId, name);
    if (definition.kind === "mcp") await this.#relistBehind(live);
    return live.connector;
  }

  /** @throws Problem 404 `not_found`, 409 `connector_builtin` */
  async remove(call: Call, name: string): Promise<void> {
    const { announce, forgetting } = this.#parts;
    const { workspaceId } = call.caller;
    const live = await this.#find(workspaceId, name);
    call.about({ detail: { connector: name } });
    let isThere = true;
    try {
      await call.commit(async (tx) => {
        isThere = await deleteConnector(tx, live.stored);
        if (!isThere) throw unknownConnector(name);
      });
    } catch (error) {
      // A node that has removed it may have died before it told this one, which would still call it.
      if (!isThere) await this.follow(workspaceId, name);
      throw error;
    }
    // A connector of the same name may have been added since.
    this.#live.drop(live);
    announce(workspaceId, name);
    await live.end();
    // Remove its definition from the write-ahead log now, although it is encrypted.
    await forgetting.forget();
  }

  /** Asks for the tools again. @throws Problem 404 `not_found`, 409 `connector_builtin`, 429 `rate_limited` */
  async refresh(call: Call, name: string): Promise<Connector> {
    const { workspaceId } = call.caller;
    const found = await this.#find(workspaceId, name);
    this.#allowance.take(workspaceId);
    const { live, before, now } = await this.#askCurrent(found);
    if (this.#stopping.signal.aborted) {
      throw new Problem("draining", "The server is shutting down.", { headers: { "Retry-After": "5" } });
    }
    call.about({ detail: listed(name, now, before) });
    const hasNewTools = this.#hasNewTools(live, before, now);
    await call.commit(async (tx) => {
      // It may have been removed during the listing.
      if (!(await updateConnector(tx, live.stored, now, hasNewTools))) throw unknownConnector(name);
    });
    this.#hasStored(live, now);
    if (this.#live.has(live)) this.#live.show(live);
    return live.connector;
  }

  /**
   * Refuses an invalid document. A document that cannot be fetched now is accepted, since it may be available later.
   */
  async #readDocument(
    workspaceId: number,
    name: string,
    asked: OpenApiDefinition,
  ): Promise<{ readonly definition: OpenApiDefinition; readonly offered: ListingResult }> {
    let definition = asked;
    const source = this.#parts.openSource(name, asked, {
      workspaceId,
      connector: null,
      toolsChanged: () => {},
      pinOrigin: async (authOrigin) => {
        definition = { ...asked, authOrigin };
      },
      readSpec: async () => specText(asked.spec),
    });
    try {
      const tools = await this.#limited((signal) =>
        this.#allowance.inTurn(workspaceId, signal, () => source.list(signal)),
      );
      return { definition, offered: { status: "ready", error: source.omitted ?? null, tools } };
    } catch (error) {
      if (!(error instanceof ConnectorError)) throw error;
      const isGone = error.fault === "unreachable" || error.fault === "timeout";
      if (!isGone) throw invalidField("/spec", error.message);
      return { definition, offered: { status: "unreachable", error: error.message, tools: [] } };
    } finally {
      await source.close();
    }
  }

  /** Resolves when the tools have arrived, or when the answer should not wait any longer. */
  async #relistBehind(live: LiveConnector): Promise<void> {
    const late = Promise.withResolvers<void>();
    const cancel = this.#parts.clock.after(ANSWER_MS, late.resolve);
    await Promise.race([this.#inBackground(() => this.#relist(live)), late.promise]);
    cancel();
  }

  /** Asks for the tools in the background and stores them. Never throws. */
  async #relist(live: LiveConnector): Promise<void> {
    const { db, isShared, ledger, log } = this.#parts;
    const { workspaceId, name } = live.stored;
    const { before, now } = await this.#ask(live);
    // A listing that was aborted says nothing about the upstream.
    if (this.#stopping.signal.aborted) return;
    // An upstream may report changed tools every few seconds.
    const hasNewTools = this.#hasNewTools(live, before, now);
    const isSame = !hasNewTools && now.status === before.status && now.error === before.error;
    if (!this.#live.has(live) || isSame) return;
    this.#live.show(live);
    try {
      const isDone = await db.tx(workspaceId, async (tx) => {
        const stored = isShared && (await storedListing(tx, live.stored));
        // The upstream has notified each node, and only one of them records the change.
        if (stored && isStored(now, stored)) return true;
        if (!(await updateConnector(tx, live.stored, now, hasNewTools))) return false;
        await ledger.append(tx, workspaceId, {
          phase: "single",
          action: "connector.refresh",
          outcome: now.status === "ready" ? "succeeded" : "failed",
          channel: "system",
          actor: "system",
          detail: listed(name, now, before),
        });
        return true;
      });
      if (isDone) this.#hasStored(live, now);
    } catch (error) {
      // The next refresh tries again. Until a restart, the new tools are used anyway.
      log.warn("a connector's tools cannot be stored", { connector: name, error });
    }
  }

  /** Called after the commit. */
  #hasStored(live: LiveConnector, now: ListingResult): void {
    const { workspaceId, name } = live.stored;
    this.#unwritten.delete(live);
    this.#live.hasStored(live, now);
    this.#parts.announce(workspaceId, name);
  }

  /**
   * Whether the stored tools differ from the current ones. A connector counts as unwritten until its tools are
   * stored.
   */
  #hasNewTools(live: LiveConnector, before: ListingResult, now: ListingResult): boolean {
    if (!areSameTools(before.tools, now.tools)) this.#unwritten.add(live);
    return this.#unwritten.has(live);
  }

  /** Asks again if the connector's definition was replaced during the listing, which closed its source. */
  async #askCurrent(found: LiveConnector): Promise<Relisting & { readonly live: LiveConnector }> {
    const { workspaceId, id, name } = found.stored;
    for (let live = found; ; ) {
      const listed = await this.#ask(live);
      const present = this.#live.of(workspaceId).get(name);
      if (!present || present === live || present.stored.id !== id) return { live, ...listed };
      live = present;
    }
  }

  async #ask(live: LiveConnector): Promise<Relisting> {
    const listed = await this.#limited((signal) => live.listAnew(signal));
    const { workspaceId, scopes } = live.stored;
    await this.#parts.catalogue.authorise(workspaceId, scopes, listed.now.tools);
    return listed;
  }

  async #limited<Result>(work: (signal: AbortSignal) => Promise<Result>): Promise<Result> {
    const late = new AbortController();
    const cancel = this.#parts.clock.after(LISTING_MS, () => late.abort());
    try {
      return await work(AbortSignal.any([late.signal, this.#stopping.signal]));
    } finally {
      cancel();
    }
  }

  /** @throws Problem 404 `not_found`, 409 `connector_builtin` */
  async #find(workspaceId: number, name: string): Promise<LiveConnector> {
    const own = this.#live.of(workspaceId);
    // Another node may have added it a moment ago.
    if (!own.has(name) && this.#parts.isShared) await this.#live.reload(workspaceId, name);
    const live = this.#live.of(workspaceId).get(name);
    if (live) return live;
    if (this.#parts.catalogue.builtinConnectors.includes(name)) {
      throw new Problem(
        "connector_builtin",
        `The connector ${name} is built in and cannot be refreshed or removed.`,
      );
    }
    throw unknownConnector(name);
  }

  /** @throws Problem 409 `connector_exists` */
  async #refuseTaken(workspaceId: number, name: string): Promise<void> {
    const isBuiltin = this.#parts.catalogue.builtinConnectors.includes(name) || RESERVED.includes(name);
    if (isBuiltin) throw connectorTaken(name);
    if (!this.#live.of(workspaceId).has(name)) return;
    // Another node may have removed it a moment ago.
    if (this.#parts.isShared) await this.#live.reload(workspaceId, name);
    if (this.#live.of(workspaceId).has(name)) throw connectorTaken(name);
  }

  #inBackground(work: () => Promise<void>): Promise<void> {
    if (this.#stopping.signal.aborted) return Promise.resolve();
    const working = work().finally(() => this.#background.delete(working));
    this.#background.add(working);
    return working;
  }
}

function listed(connector: string, now: ListingResult, before: ListingResult): Detail {
  return { connector, status: now.status, tools: now.tools.length, before: before.tools.length };
}
