import type { ReadingFailure } from "../../../reading/protocol.ts";
import type { ApiDocumentRequest, ApiReading } from "./messages.ts";
import { readApi } from "./read-api.ts";

/** The thread of a reading process that reads OpenAPI documents, one at a time. */
declare const self: Worker;

self.onmessage = async ({ data }: MessageEvent<ApiDocumentRequest>) => {
  self.postMessage(await reply(data));
};

async function reply(request: ApiDocumentRequest): Promise<ApiReading | ReadingFailure> {
  try {
    return await readApi(request);
  } catch (error) {
    const message = error instanceof Error ? (error.stack ?? error.message) : String(error);
    return { message, field: null, isStore: false, isOverLimit: false };
  }
}
