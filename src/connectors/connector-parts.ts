import type { Caller } from "../access/caller.ts";
import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { Db } from "../store/db.ts";
import type { Catalogue } from "./catalogue.ts";
import type { StoredConnector } from "./connector.ts";
import type { ConnectorDefinition } from "./definition.ts";
import type { CallWatch } from "./live.ts";
import type { ToolSource } from "./source.ts";
import type { DefinitionStore } from "./stored-definition.ts";
import type { ToolRoom } from "./tool-room.ts";

/** Whose a source is, and what it tells while it is at work. */
export interface SourceListener {
  readonly workspaceId: number;
  /** The connector's number in the store, which no other one has or had. Null while an OpenAPI document is read for a new one. */
  readonly connector: number | null;
  readonly toolsChanged: () => void;
  /** Where the connector's auth may go from now on, to be kept before it goes there. @throws ConnectorError */
  readonly pinOrigin: (origin: string) => Promise<void>;
  /** The OpenAPI document, or where it is. @throws ConnectorError */
  readonly readSpec: () => Promise<string>;
}

export interface ConnectorParts {
  readonly db: Db;
  readonly ledger: Ledger;
  readonly catalogue: Catalogue;
  readonly clock: Clock;
  readonly log: Log;
  readonly definitions: DefinitionStore;
  readonly watch: CallWatch;
  /** The room in memory for tools. Default: the usual one. */
  readonly room?: ToolRoom;
  /** Told that a connector has come or gone, or that its status or its tools are others. */
  changed(workspaceId: number, name: string): void;
  /**
   * The definition as it is kept, if configuration allows it and the caller may add it.
   * @throws Problem 422 that names the field, 403 `operator_only`
   */
  admit(definition: ConnectorDefinition, caller: Caller): ConnectorDefinition;
  /** Checks a stored definition before it is used. @throws Problem whose detail says why it is disabled */
  check(definition: ConnectorDefinition, stored: StoredConnector): Promise<void>;
  /**
   * What cannot be made now is said in the error's message. The source MUST NOT keep an OpenAPI definition's `spec`, which may be a
   * document of megabytes. @throws ConnectorError
   */
  openSource(name: string, definition: ConnectorDefinition, told: SourceListener): ToolSource;
}
