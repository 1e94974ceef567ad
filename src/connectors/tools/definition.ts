import { canonicalJson } from "../../base/json.ts";
import type { CatalogueTool } from "../catalogue.ts";
import type { PersistedConnector } from "../connector.ts";
import { expandTool } from "./kept-tool.ts";

/** The connector that a tool belongs to. Another connector of the same name has another id. */
export type ConnectorOrigin = Pick<
  PersistedConnector,
  "id" | "name" | "kind" | "authorisedBy" | "authorisedAt"
>;

const hashes = new WeakMap<CatalogueTool, string>();

/**
 * SHA-256, in hex, of everything that a tool's name refers to: the authorised connector (its target cannot change
 * while it exists) and the tool as last offered: description, schemas, annotations, and the upstream binding of its
 * calls. An approval of one definition is not an approval of another.
 */
export function definitionHash(tool: CatalogueTool): string {
  const known = hashes.get(tool);
  if (known !== undefined) return known;
  const { id, kind, name, authorisedAt } = tool.origin;
  const definition = {
    connector: { id, kind, name, authorised_at: authorisedAt },
    tool: expandTool(tool.offered),
  };
  const hash = new Bun.CryptoHasher("sha256").update(canonicalJson(definition)).digest("hex");
  hashes.set(tool, hash);
  return hash;
}
