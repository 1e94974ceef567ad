import { invalidField } from "../base/errors.ts";
import { isId } from "../base/ids.ts";
import { boundaryOf } from "../vault/boundary.ts";
import type { VaultDocument } from "../vault/document.ts";
import type { McpParts } from "./parts.ts";
import { type Params, perform, type RequestContext, type RpcResult, withLedger } from "./request.ts";
import { RPC, RpcError } from "./rpc-error.ts";

const PAGE = 100;
const URI = /^vault:\/\/(doc_[0-9a-z]{26})$/;

/** The documents within the caller's memory boundary, newest first. */
export async function listResources(
  parts: McpParts,
  context: RequestContext,
  params: Params,
): Promise<RpcResult> {
  const { caller } = context.visit;
  const fixtures = parts.fixtures?.resources ?? [];
  const { value, ledgerSeq } = await perform(
    parts,
    context,
    { action: "vault.list", scope: "vault:read" },
    async () => {
      const before = params.cursor === undefined ? undefined : decode(params.cursor);
      const boundary = await boundaryOf(parts.agents, caller, {});
      const found = await parts.vault.list(caller.workspaceId, boundary, {}, PAGE, before);
      const shown = found.slice(0, PAGE);
      const last = found.length > PAGE ? shown.at(-1) : undefined;
      return {
        resources: [...(before === undefined ? fixtures : []), ...shown.map(viewResource)],
        ...(last ? { nextCursor: Buffer.from(last.id).toString("base64url") } : {}),
      };
    },
  );
  return withLedger(value, ledgerSeq);
}

export function listResourceTemplates({ fixtures }: McpParts): RpcResult {
  return {
    resourceTemplates: [
      ...(fixtures?.resourceTemplates ?? []),
      {
        uriTemplate: "vault://{document_id}",
        name: "vault_document",
        title: "Vault document",
        description: "The text of a vault document, by id.",
      },
    ],
  };
}

/** @throws RpcError -32002 if the document does not exist or is outside the boundary */
export async function readResource(
  parts: McpParts,
  context: RequestContext,
  params: Params,
): Promise<RpcResult> {
  const { uri } = params;
  if (typeof uri !== "string") throw new RpcError(RPC.invalidParams, "params.uri must be a string.");
  const { caller } = context.visit;
  const { value, ledgerSeq } = await perform(
    parts,
    context,
    { action: "vault.read", scope: "vault:read" },
    async (call) => {
      const id = URI.exec(uri)?.[1] ?? "";
      if (isId("doc", id)) call.about({ detail: { document: id } });
      const boundary = await boundaryOf(parts.agents, caller, {});
      const document = await parts.vault.find(caller.workspaceId, boundary, id);
      return { contents: [{ uri, mimeType: typeOf(document), text: await parts.vault.text(document) }] };
    },
  );
  return withLedger(value, ledgerSeq);
}

function viewResource(document: VaultDocument) {
  const { id, title, scope, sourceUri } = document;
  return {
    uri: `vault://${id}`,
    name: id,
    title,
    description: sourceUri === null ? scope : `${scope}, from ${sourceUri}`,
    mimeType: typeOf(document),
  };
}

/** The media type of the returned text: text extracted from a PDF is plain text. */
function typeOf({ contentType }: VaultDocument): string {
  return contentType.startsWith("text/markdown") ? "text/markdown" : "text/plain";
}

function decode(cursor: unknown): string {
  const id = typeof cursor === "string" ? Buffer.from(cursor, "base64url").toString() : "";
  if (!isId("doc", id)) throw invalidField("/cursor", "is not a cursor of this list");
  return id;
}
