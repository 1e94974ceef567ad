import type { Db } from "../../store/db.ts";
import type { StoredConnector } from "../connector.ts";
import { ConnectorError } from "../source.ts";
import type { ConnectorDefinition } from "./definition.ts";
import { readDefinition } from "./rows.ts";

/** Encrypts definitions, which contain secrets, so that only this installation can read them. */
export interface DefinitionStore {
  seal(workspaceId: number, name: string, definition: ConnectorDefinition): Uint8Array;
  /** @throws Error with a message that may be shown, if the key is another one or the bytes are damaged */
  open(workspaceId: number, name: string, sealed: Uint8Array): ConnectorDefinition;
}

/** What a definition is sealed for. One that was moved to another row cannot be decrypted. */
export function definitionContext(workspaceId: number, name: string): string {
  return `connector\n${workspaceId}\n${name}`;
}

/** A connector's definition in the store. It may hold a document of megabytes, so it is read only when needed. */
export class StoredDefinition {
  readonly #db: Db;
  readonly #definitions: DefinitionStore;
  readonly #connector: Pick<StoredConnector, "workspaceId" | "id" | "name">;

  constructor(
    parts: { readonly db: Db; readonly definitions: DefinitionStore },
    connector: Pick<StoredConnector, "workspaceId" | "id" | "name">,
  ) {
    this.#db = parts.db;
    this.#definitions = parts.definitions;
    this.#connector = connector;
  }

  /** The OpenAPI document, or its URL. @throws ConnectorError if the connector was removed */
  async readSpec(): Promise<string> {
    const { definition } = await this.#read();
    if (definition.kind !== "openapi") throw new Error("only OpenAPI connectors have a document");
    return specText(definition.spec);
  }

  /**
   * Stores the origin that may receive the connector's `auth`, unless another node has stored it already.
   * @returns the encrypted definition that is stored now
   * @throws ConnectorError if the connector was removed, or another origin is stored
   */
  async pinOrigin(authOrigin: string): Promise<Uint8Array> {
    for (;;) {
      const { definition, sealed } = await this.#read();
      if (definition.kind !== "openapi" || definition.authOrigin === authOrigin) return sealed;
      if (definition.authOrigin !== undefined) throw otherOrigin(this.#connector.name, definition.authOrigin);
      const { workspaceId, id, name } = this.#connector;
      const pinned = this.#definitions.seal(workspaceId, name, { ...definition, authOrigin });
      const changed = await this.#db.tx(
        null,
        (tx) =>
          tx.seals.change(tx, "connectors", { id }, () =>
            tx.run(
              "UPDATE connectors SET definition = $3 WHERE workspace_id = $1 AND id = $2 AND definition = $4",
              [workspaceId, id, pinned, sealed],
            ),
          ),
        { turnOf: workspaceId },
      );
      if (changed > 0) return pinned;
    }
  }

  async #read(): Promise<{ readonly definition: ConnectorDefinition; readonly sealed: Uint8Array }> {
    const { workspaceId, name } = this.#connector;
    const sealed = await readDefinition(this.#db, this.#connector);
    if (!sealed) throw removed(name);
    return { definition: this.#definitions.open(workspaceId, name, sealed), sealed };
  }
}

/** Earlier versions stored a document that was sent as JSON as an object. */
export function specText(spec: Extract<ConnectorDefinition, { kind: "openapi" }>["spec"]): string {
  return typeof spec === "string" ? spec : JSON.stringify(spec);
}

function removed(name: string): ConnectorError {
  return new ConnectorError("unavailable", `The connector ${name} was removed.`);
}

function otherOrigin(name: string, origin: string): ConnectorError {
  const words = `The auth of the connector ${name} was authorised only for ${origin}. To send it to another server, remove the connector and create it again.`;
  return new ConnectorError("invalid_answer", words);
}
