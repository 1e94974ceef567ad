import { Signal } from "../base/signal.ts";
import { StoreUnavailable } from "../store/db.ts";
import type { PersistedConnector, StoredConnector } from "./connector.ts";
import type { ConnectorParts } from "./connector-parts.ts";
import type { ConnectorDefinition } from "./definition/definition.ts";
import {
  type LoadedConnector,
  loadConnector,
  loadConnectors,
  type StoredListing,
  storedMarks,
} from "./definition/rows.ts";
import { StoredDefinition } from "./definition/stored.ts";
import { type ConnectorCall, type ListingResult, LiveConnector } from "./live.ts";
import { programOf } from "./program-rules.ts";
import type { KeptTool } from "./tools/kept-tool.ts";
import type { ListingAllowance } from "./tools/listing-allowance.ts";
import type { ToolMemory } from "./tools/memory-share.ts";

const CHANGED = "Its row was changed in the database file. Remove the connector and add it again.";
export const NOTHING_YET: ListingResult = {
  status: "unreachable",
  error: "It has not been reached yet.",
  tools: [],
};

export interface LiveConnectorParts extends Omit<ConnectorParts, "toolMemory"> {
  readonly allowance: ListingAllowance;
  readonly toolMemory: ToolMemory;
  /** Called when an upstream reports changed tools. */
  toolsChanged(live: LiveConnector): void;
}

/** What the store has of a connector, as far as this node knows. */
interface KnownRow {
  /** The row's seal, which covers its definition and tools. Null if it is not known. */
  seal: string | null;
  /** Hash of the encrypted definition. */
  definition: string;
  listing: ListingResult;
}

/** A connector that is ready to be taken up. */
interface PreparedConnector {
  readonly stored: StoredConnector;
  /** Null: the connector is disabled. */
  readonly definition: ConnectorDefinition | null;
  readonly row: KnownRow;
}

/** The connectors that this node keeps ready for calls: those in the store. */
export class LiveConnectors {
  /** Emits a connector that was added or removed, or whose status or tools have changed. */
  readonly changed = new Signal<{ readonly workspaceId: number; readonly name: string }>();
  readonly called = new Signal<ConnectorCall>();
  readonly #parts: LiveConnectorParts;
  readonly #live = new Map<number, Map<string, LiveConnector>>();
  readonly #rows = new WeakMap<LiveConnector, KnownRow>();
  /** Counts connectors taken up or dropped. What was read before that is outdated. */
  #changes = 0;

  constructor(parts: LiveConnectorParts) {
    this.#parts = parts;
  }

  /** Loads the stored connectors of a workspace. Contacts no upstream. */
  async load(workspaceId: number): Promise<void> {
    for await (const loaded of loadConnectors(this.#parts.db, workspaceId)) {
      this.#takeUp(await this.#prepare(loaded));
    }
  }

  /** Those that have an upstream, by name. */
  of(workspaceId: number): ReadonlyMap<string, LiveConnector> {
    return this.#live.get(workspaceId) ?? new Map();
  }

  all(): LiveConnector[] {
    return [...this.#live.values()].flatMap((connectors) => [...connectors.values()]);
  }

  has(live: LiveConnector): boolean {
    const { workspaceId, name } = live.stored;
    return this.#live.get(workspaceId)?.get(name) === live;
  }

  /** A connector that was just stored. */
  add(stored: StoredConnector, definition: ConnectorDefinition): LiveConnector {
    return this.#takeUp({ stored, definition, row: rowOf(stored, null) });
  }

  /** Forgets a connector that is no longer stored. Its in-flight calls MUST be ended with `LiveConnector.end`. */
  drop(live: LiveConnector): void {
    if (!this.has(live)) return;
    const { workspaceId, name } = live.stored;
    this.#changes += 1;
    this.#live.get(workspaceId)?.delete(name);
    this.#parts.catalogue.drop(workspaceId, name);
    this.changed.emit({ workspaceId, name });
  }

  show(live: LiveConnector): void {
    const { workspaceId, name, scopes } = live.stored;
    this.#parts.catalogue.put(workspaceId, live.stored, scopes, live.tools, (tool, input, context) =>
      live.call(tool, input, context),
    );
    this.changed.emit({ workspaceId, name });
  }

  /** Notes what this node has stored of a connector's listing. */
  hasStored(live: LiveConnector, listing: ListingResult): void {
    const row = this.#rows.get(live);
    if (row) row.listing = listing;
  }

  /** Follows the store, in which another node may have changed a connector. @throws StoreUnavailable */
  async reload(workspaceId: number, name: string): Promise<void> {
    for (;;) {
      const changes = this.#changes;
      const live = this.of(workspaceId).get(name);
      const [marks] = await storedMarks(this.#parts.db, workspaceId, name);
      if (changes !== this.#changes) continue;
      if (!marks) {
        if (live) await this.#replace(live, null);
        return;
      }
      const row = live && this.#rows.get(live);
      if (live?.stored.id === marks.id && row && row.seal === marks.seal) {
        row.listing = { ...row.listing, status: marks.status, error: marks.error };
        live.adopt({ ...row.listing, tools: live.tools });
        return;
      }
      const loaded = await loadConnector(this.#parts.db, { workspaceId, id: marks.id });
      if (!loaded) continue;
      const prepared = await this.#prepare(loaded);
      const { stored, definition } = prepared;
      await this.#parts.catalogue.authorise(workspaceId, stored.scopes, stored.tools);
      if (changes !== this.#changes) continue;
      const isSame = live?.stored.id === stored.id && row?.definition === prepared.row.definition;
      if (live && row && isSame && loaded.isIntact && definition) this.#adopt(live, row, prepared);
      else await this.#replace(live, prepared);
      return;
    }
  }

  /** Names of a workspace's connectors that differ from those in the store. @throws StoreUnavailable */
  async outdated(workspaceId: number): Promise<string[]> {
    const marks = await storedMarks(this.#parts.db, workspaceId);
    const own = this.of(workspaceId);
    const stored = new Set(marks.map(({ name }) => name));
    const removed = [...own.keys()].filter((name) => !stored.has(name));
    const changed = marks.filter(({ id, name, seal, status, error }) => {
      const live = own.get(name);
      const row = live && this.#rows.get(live);
      if (live?.stored.id !== id || row?.seal !== seal) return true;
      return row.listing.status !== status || row.listing.error !== error;
    });
    return [...removed, ...changed.map(({ name }) => name)];
  }

  #adopt(live: LiveConnector, row: KnownRow, { stored, row: read }: PreparedConnector): void {
    Object.assign(row, read);
    if (live.adopt(stored)) this.show(live);
  }

  async #replace(live: LiveConnector | undefined, prepared: PreparedConnector | null): Promise<void> {
    if (live) this.drop(live);
    // Its memory is free before its successor, which may have the same id, takes some.
    const ended = live?.end();
    if (prepared) this.#takeUp(prepared);
    await ended;
  }

  /**
   * Opens the definition of a stored connector. The connector is disabled if configuration forbids it or its definition
   * cannot be decrypted.
   */
  async #prepare({ stored, isIntact, seal }: LoadedConnector): Promise<PreparedConnector> {
    const { definitions, log } = this.#parts;
    const { workspaceId, name } = stored;
    const row = rowOf(stored, seal);
    try {
      if (!isIntact) throw new Error(CHANGED);
      const definition = definitions.open(workspaceId, name, stored.sealed);
      await this.#parts.check(definition, stored);
      // The health of a disabled connector is unknown. For programs, older versions stored what they wrote to
      // standard error.
      const isUnknown = stored.status === "disabled" || (programOf(definition) && stored.error !== null);
      const before = isUnknown ? { ...NOTHING_YET, tools: stored.tools } : {};
      return { stored: { ...stored, ...before }, definition, row };
    } catch (error) {
      if (error instanceof StoreUnavailable) throw error;
      const why = error instanceof Error ? error.message : "unknown";
      log.warn("a connector is disabled", { workspace_id: workspaceId, connector: name, why });
      const tools = isIntact ? stored.tools : [];
      return { stored: { ...stored, tools, status: "disabled", error: why }, definition: null, row };
    }
  }

  #takeUp({ stored, definition, row }: PreparedConnector): LiveConnector {
    const { log, clock, toolMemory, allowance } = this.#parts;
    const { sealed: _, ...known } = stored;
    const { workspaceId, name } = known;
    const present = this.of(workspaceId).get(name);
    // It was loaded while it was being added.
    if (present?.stored.id === known.id) return present;
    const statusChanged = () => this.changed.emit({ workspaceId, name });
    const live: LiveConnector = new LiveConnector(
      known,
      definition && this.#open(known, definition, row, () => this.#parts.toolsChanged(live)),
      { log, called: this.called, toolMemory, allowance, now: () => clock.monotonic(), statusChanged },
    );
    this.#changes += 1;
    this.#rows.set(live, row);
    const own = this.#live.get(workspaceId) ?? new Map<string, LiveConnector>();
    own.set(name, live);
    this.#live.set(workspaceId, own);
    this.show(live);
    return live;
  }

  #open(
    { workspaceId, id, name }: PersistedConnector,
    definition: ConnectorDefinition,
    row: KnownRow,
    toolsChanged: () => void,
  ) {
    const kept = new StoredDefinition(this.#parts, { workspaceId, id, name });
    return this.#parts.openSource(name, definition, {
      workspaceId,
      connector: id,
      toolsChanged,
      pinOrigin: async (authOrigin) => {
        row.definition = hashOf(await kept.pinOrigin(authOrigin));
        this.#parts.announce(workspaceId, name);
      },
      readSpec: () => kept.readSpec(),
    });
  }
}

function rowOf({ status, error, tools, sealed }: StoredConnector, seal: string | null): KnownRow {
  return { seal, definition: hashOf(sealed), listing: { status, error, tools } };
}

/** Whether the store has this result of a listing. */
export function isStored({ status, error, tools }: ListingResult, stored: StoredListing): boolean {
  return status === stored.status && error === stored.error && isText(tools, stored.tools);
}

/** Compared without parsing, since the text may be megabytes. */
function isText(tools: readonly KeptTool[], text: string): boolean {
  return JSON.stringify(tools) === text;
}

function hashOf(sealed: Uint8Array): string {
  return new Bun.CryptoHasher("sha256").update(sealed).digest("hex");
}
