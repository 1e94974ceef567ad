import type { Caller } from "../access/caller.ts";
import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { Db } from "../store/db.ts";
import type { Forgetting } from "../store/forgetting.ts";
import type { Catalogue } from "./catalogue.ts";
import type { StoredConnector } from "./connector.ts";
import type { ConnectorDefinition } from "./definition/definition.ts";
import type { DefinitionStore } from "./definition/stored.ts";
import type { ToolSource } from "./source.ts";
import type { ToolMemory } from "./tools/memory-share.ts";

/** Identifies the connector that a source belongs to, and receives what the source reports. */
export interface SourceListener {
  readonly workspaceId: number;
  /** The connector's id in the store, never reused. Null while an OpenAPI document is read for a new connector. */
  readonly connector: number | null;
  readonly toolsChanged: () => void;
  /**
   * Stores the origin that may receive the connector's auth from now on. MUST resolve before auth is sent there.
   * @throws ConnectorError
   */
  readonly pinOrigin: (origin: string) => Promise<void>;
  /** The OpenAPI document, or its URL. @throws ConnectorError */
  readonly readSpec: () => Promise<string>;
}

export interface ConnectorParts {
  readonly db: Db;
  readonly forgetting: Pick<Forgetting, "forget">;
  readonly ledger: Ledger;
  readonly catalogue: Catalogue;
  readonly clock: Clock;
  readonly log: Log;
  readonly definitions: DefinitionStore;
  /** Whether other nodes may change connectors. */
  readonly isShared: boolean;
  /** Notifies the other nodes that the connector's row was added, changed or removed. Called after the commit. */
  announce(workspaceId: number, name: string): void;
  /** Memory limits for tools. Default: the usual ones. */
  readonly toolMemory?: ToolMemory;
  /**
   * The definition to store, if configuration allows it and the caller may add it.
   * @throws Problem 422 that names the field, 403 `operator_only`
   */
  admit(definition: ConnectorDefinition, caller: Caller): ConnectorDefinition;
  /** Checks a stored definition before use. @throws Problem whose detail says why it is disabled */
  check(definition: ConnectorDefinition, stored: StoredConnector): Promise<void>;
  /**
   * The source MUST NOT keep an OpenAPI definition's `spec`, which may be a document of megabytes.
   * @throws ConnectorError if the source cannot be created now
   */
  openSource(name: string, definition: ConnectorDefinition, told: SourceListener): ToolSource;
}
