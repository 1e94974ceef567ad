import type { Mask } from "../secrets/mask.ts";
import type { OfferedTool } from "../source.ts";
import type { ApiDocument } from "./document.ts";
import { DocumentFault, DocumentTooLarge } from "./fault.ts";
import { collectOperations } from "./operations/collect.ts";
import { ToolNames } from "./operations/names.ts";
import type { ReservedName } from "./operations/parameters.ts";
import { toolOf } from "./operations/tool.ts";
import { openReferences } from "./references.ts";
import { Work } from "./schema/budget.ts";

export interface ListOptions {
  /** The document's own server; null where `base_url` stands for all of them. */
  readonly server: string | null;
  readonly reserved: ReservedName | null;
  /** Of the connector's secrets. */
  readonly mask: Mask;
  /** Told of each operation that is left out, and why. */
  readonly leaveOut: (operation: string, reason: string) => void;
}

/**
 * The operations of a document as tools. One that cannot be called is left out; where all are, that is the document's
 * fault.
 * @throws DocumentFault
 */
export async function listTools(document: ApiDocument, options: ListOptions): Promise<OfferedTool[]> {
  const work = new Work();
  const references = await openReferences(document.root, work);
  const collected = collectOperations(document.root, references);
  const { leaveOut, ...given } = options;
  const parts = { ...given, references, work, names: new ToolNames(), documentUrl: document.url };
  const tools: OfferedTool[] = [];
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
