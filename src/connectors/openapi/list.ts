import type { Mask } from "../../base/masking/mask.ts";
import type { ToolDescription } from "../source.ts";
import type { ApiDocument } from "./document.ts";
import { DocumentFault, DocumentTooLarge } from "./fault.ts";
import { collectOperations } from "./operations/collect.ts";
import { OperationNames } from "./operations/names.ts";
import type { ReservedName } from "./operations/parameters.ts";
import { toolOf } from "./operations/tool.ts";
import { openReferences } from "./references.ts";
import { SchemaWork } from "./schema/budget.ts";

export interface OperationListOptions {
  /** The document's own server; null if `base_url` replaces all servers. */
  readonly server: string | null;
  readonly reserved: ReservedName | null;
  /** Masks the connector's secrets. */
  readonly mask: Mask;
  /** Called for each operation that is omitted, with the reason. */
  readonly leaveOut: (operation: string, reason: string) => void;
}

/**
 * Lists the operations of a document as tools. Operations that cannot be called are omitted.
 * @throws DocumentFault if none is left
 */
export async function listTools(
  document: ApiDocument,
  options: OperationListOptions,
): Promise<ToolDescription[]> {
  const work = new SchemaWork();
  const references = await openReferences(document.root, work);
  const collected = collectOperations(document.root, references);
  const { leaveOut, ...given } = options;
  const parts = { ...given, references, work, names: new OperationNames(), documentUrl: document.url };
  const tools: ToolDescription[] = [];
  let firstFault: string | undefined;
  for (const each of collected) {
    try {
      if ("fault" in each) throw each.fault;
      tools.push(toolOf(each.operation, parts));
    } catch (error) {
      if (!(error instanceof DocumentFault) || error instanceof DocumentTooLarge) throw error;
      firstFault ??= `${each.title}: ${error.message}`;
      leaveOut(each.title, error.message);
    }
  }
  if (tools.length > 0) return tools;
  throw new DocumentFault(`none of its operations can be called (${firstFault})`);
}
