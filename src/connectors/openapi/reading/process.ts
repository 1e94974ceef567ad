import { serveReading } from "../../../reading/process.ts";
import type { ReadingFailure } from "../../../reading/protocol.ts";
import type { ApiDocumentRequest, ApiReading } from "./messages.ts";
import { decodeRequest, encodeAnswer } from "./protocol.ts";

/** A sample document that loads all modules needed to read one. */
const FIRST = `openapi: 3.1.0
info: { title: First, version: "1" }
servers: [{ url: "http://localhost" }]
paths:
  /a:
    post:
      requestBody: { content: { application/json: { schema: { $ref: "#/components/schemas/A" } } } }
components: { schemas: { A: { type: object, properties: { a: { type: string } } } } }
`;

/**
 * Runs a process that reads OpenAPI documents. `program`: the worker thread, `worker.ts`. `ceiling`: bytes of memory.
 */
export async function readApiDocuments(program: URL, ceiling: number): Promise<void> {
  const worker = new Worker(program);
  function read(request: ApiDocumentRequest): Promise<ApiReading | ReadingFailure> {
    return new Promise((resolve) => {
      worker.onmessage = ({ data }: MessageEvent<ApiReading | ReadingFailure>) => resolve(data);
      worker.postMessage(request);
    });
  }
  await serveReading(
    {
      async load() {
        await read({ text: FIRST, url: null, hasBase: false, reserved: null, secrets: [] });
      },
      read,
      decodeRequest,
      encodeAnswer,
    },
    ceiling,
  );
}
