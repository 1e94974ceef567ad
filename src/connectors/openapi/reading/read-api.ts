import { createMask } from "../../../base/masking/mask.ts";
import type { ToolDescription } from "../../source.ts";
import { bytesOfTool, type KeptTool, keepTool } from "../../tools/kept-tool.ts";
import { TOOL_LIMITS } from "../../tools/memory-share.ts";
import { checkDocument } from "../check.ts";
import { parseText } from "../document.ts";
import { DocumentFault, DocumentTooLarge } from "../fault.ts";
import { listTools } from "../list.ts";
import { documentServer } from "../operations/servers.ts";
import type { ApiDocumentRequest, ApiListing, ApiReading } from "./messages.ts";

/** Maximum number of omitted operations that are named. */
const MAX_NAMED = 20;

/** Reads a document. All work that grows with the document is done here, in a separate process. */
export async function readApi(request: ApiDocumentRequest): Promise<ApiReading> {
  try {
    return await listingOf(request);
  } catch (error) {
    if (error instanceof DocumentFault) return { fault: error.message };
    throw error;
  }
}

async function listingOf({ text, url, hasBase, reserved, secrets }: ApiDocumentRequest): Promise<ApiListing> {
  const document = { root: rootOf(text, url), url };
  const server = hasBase ? null : documentServer(document);
  const mask = createMask(secrets);
  const leftOut: string[] = [];
  let leftOutCount = 0;
  const offered = await listTools(document, {
    server,
    reserved,
    mask,
    leaveOut(operation, reason) {
      leftOutCount += 1;
      if (leftOut.length < MAX_NAMED) leftOut.push(`${operation}: ${reason}`);
    },
  });
  let bytes = 0;
  const tools: KeptTool[] = [];
  for (const tool of offered) {
    const kept = keepTool(masked(tool));
    bytes += bytesOfTool(kept);
    if (bytes > TOOL_LIMITS.connector.bytes) {
      throw new DocumentTooLarge(
        `the tools of its operations take more than ${TOOL_LIMITS.connector.bytes} bytes`,
      );
    }
    tools.push(kept);
  }
  return { tools, server, leftOut, leftOutCount };

  /** An API may write the credentials of the request into its document. */
  function masked({ name, destructive, binding, ...told }: ToolDescription): ToolDescription {
    return { ...mask.json(told), name, destructive, ...(binding ? { binding } : {}) };
  }
}

function rootOf(text: string, url: string | null) {
  try {
    return checkDocument(parseText(text));
  } catch (error) {
    if (!(error instanceof DocumentFault)) throw error;
    const what = url === null ? "the given text" : "the answer of the spec's URL";
    throw new DocumentFault(`${what} is not an OpenAPI 3.0 or 3.1 document: ${error.message}`, {
      cause: error,
    });
  }
}
