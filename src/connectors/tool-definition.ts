import { canonicalJson } from "../base/json.ts";
import type { CatalogueTool } from "./catalogue.ts";
import type { KnownConnector } from "./connector.ts";
import { expandTool } from "./kept-tool.ts";

/** Which connector a tool comes from. Another connector of the same name has another id. */
export type ConnectorOrigin = Pick<KnownConnector, "id" | "name" | "kind" | "authorisedBy" | "authorisedAt">;

const hashes = new WeakMap<CatalogueTool, string>();

/**
 * SHA-256, in hex, of what stands behind a tool's name: the connector that was authorised (where it leads cannot change while it
 * exists) and the tool as it was offered last: description, schemas, annotations, and what the call is bound to upstream. What
 * is approved for one definition is not approved for another.
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
