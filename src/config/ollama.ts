import { Type } from "typebox";
import { parseJson } from "../base/json-limits.ts";
import { validator } from "../base/schema.ts";
import { OLLAMA_URL } from "./defaults.ts";

export interface OllamaProbe {
  readonly fetch: (url: string, init: RequestInit) => Promise<Response>;
  /**
   * Timeout for the whole response in milliseconds. Startup must not wait longer for something that may not exist.
   */
  readonly timeoutMs?: number;
  readonly baseUrl?: string;
}

const MAX_NAMES = 100;
const MAX_BYTES = 1024 * 1024;

const tags = validator(
  Type.Object({ models: Type.Array(Type.Object({ name: Type.String({ minLength: 1, maxLength: 200 }) })) }),
);

/** The names of a local Ollama's first 100 models; empty on any failure. Only lists models and never calls one. */
export async function probeOllama({
  fetch,
  timeoutMs = 150,
  baseUrl = OLLAMA_URL,
}: OllamaProbe): Promise<string[]> {
  const timeout = AbortSignal.timeout(timeoutMs);
  try {
    // Whatever answers on that port must not redirect the request elsewhere.
    const response = await fetch(`${baseUrl}/api/tags`, { signal: timeout, redirect: "error" });
    if (!response.ok) return [];
    const answer = parseJson(await readLimited(response));
    return tags.is(answer) ? answer.models.slice(0, MAX_NAMES).map(({ name }) => name) : [];
  } catch {
    return [];
  }
}

async function readLimited(response: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of response.body ?? []) {
    length += chunk.byteLength;
    if (length > MAX_BYTES) throw new Error("the answer is too large");
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}
