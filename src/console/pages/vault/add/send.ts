import type { AnswerOf } from "../../../api/client.ts";
import { problemOf } from "../../../api/client.ts";
import { offline } from "../../../api/problem.ts";

type UploadedDocument = AnswerOf<"POST /v1/vault/documents">;

export interface SendOptions {
  readonly signal: AbortSignal;
  /** Called with the part of the body sent so far, 0 to 1. */
  sent(share: number): void;
}

/**
 * `POST /v1/vault/documents` like `call`, through the only browser interface that reports upload progress.
 * @throws ApiProblem; the signal's reason
 */
export function sendDocument(body: Blob, { signal, sent }: SendOptions): Promise<UploadedDocument> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) {
      reject(signal.reason);
      return;
    }
    const request = new XMLHttpRequest();
    request.open("POST", "/v1/vault/documents");
    request.setRequestHeader("content-type", "application/json");
    request.upload.addEventListener("progress", ({ loaded, total }) =>
      sent(total === 0 ? 0 : loaded / total),
    );
    request.upload.addEventListener("load", () => sent(1));
    request.addEventListener("error", () => reject(offline()));
    request.addEventListener("abort", () => reject(signal.reason));
    request.addEventListener("load", () => {
      if (request.status >= 200 && request.status < 300) {
        resolve(JSON.parse(request.responseText) as UploadedDocument);
        return;
      }
      const headers = { "content-type": request.getResponseHeader("content-type") ?? "" };
      problemOf(new Response(request.responseText, { status: request.status, headers })).then(reject, reject);
    });
    const abort = () => request.abort();
    signal.addEventListener("abort", abort, { once: true });
    request.addEventListener("loadend", () => signal.removeEventListener("abort", abort));
    request.send(body);
  });
}
