import { invalidField, Problem } from "../../base/errors.ts";
import type { DialectRequest } from "../dialect.ts";
import { countOf, field, parsedOrNothing, textBytesOf } from "../json.ts";
import { edited, findMembers } from "../request-bytes.ts";
import { unsupported } from "../translation/unsupported.ts";
import { referencesIn } from "./references.ts";
import { ResponsesStreamReader } from "./stream.ts";

const MEMBERS = [
  ...["model", "stream", "background", "store", "previous_response_id", "conversation", "input"],
  "max_output_tokens",
];

/** Tools that the provider runs by itself. */
const HOSTED = /^(?:web_search|file_search|code_interpreter|image_generation|mcp)(?:_preview)?(?:_\d+)*$/;
const MOST_HOSTED = 16;

/** @throws Problem 400 `invalid_json`, `unsupported_parameter`, 404 `not_found`, 422 `validation_failed` */
export function readResponsesRequest(bytes: Uint8Array, value: unknown): DialectRequest {
  const { spans } = findMembers(bytes, MEMBERS);
  const model = field(value, "model");
  const named = spans.get("model");
  if (typeof model !== "string" || !named) throw invalidField("/model", "must be the name of a model");
  const isStream = flagOf(value, "stream") ?? false;
  if (flagOf(value, "background")) throw unsupported("background", "is not supported.");
  flagOf(value, "store");
  if ((field(value, "conversation") ?? null) !== null) {
    throw unsupported("conversation", "is not supported: continue with previous_response_id.");
  }
  const previous = field(value, "previous_response_id") ?? null;
  if (previous !== null) throw unknownResponse("/previous_response_id", String(previous));
  const [reference] = referencesIn(bytes, spans.get("input"), field(value, "input"));
  if (reference !== undefined) throw unknownResponse("/input", reference);
  return {
    model,
    isStream,
    size: {
      bytes: bytes.length,
      textBytes: textBytesOf(value),
      answers: 1,
      mostTokens: countOf(field(value, "max_output_tokens")),
    },
    detail: { hosted_tools: hostedTools(field(value, "tools")) },
    bytesFor: (name) => edited(bytes, [{ ...named, text: JSON.stringify(name) }]),
    readStream: () => new ResponsesStreamReader(),
    answer: requireNotFailed,
  };
}

/** @throws Problem 422 `validation_failed` */
function flagOf(value: unknown, name: string): boolean | null {
  const flag = field(value, name) ?? null;
  if (flag !== null && typeof flag !== "boolean") throw invalidField(`/${name}`, "must be true or false");
  return flag;
}

/** What the provider's own tools do is not subject to Gatehouse's policy, so the ledger shows that they were offered. */
function hostedTools(tools: unknown): string | undefined {
  if (!Array.isArray(tools)) return undefined;
  const types = tools.map((tool) => field(tool, "type"));
  const hosted = types.filter((type): type is string => typeof type === "string" && HOSTED.test(type));
  return hosted.length === 0 ? undefined : [...new Set(hosted)].slice(0, MOST_HOSTED).join(",");
}

const FAILED = '"failed"';

/** A whole answer may report a failure in its status only. @throws Problem 502 `provider_failed` */
function requireNotFailed(received: Buffer<ArrayBuffer>): Buffer<ArrayBuffer> {
  if (!received.includes(FAILED)) return received;
  if (field(parsedOrNothing(received.toString()), "status") !== "failed") return received;
  throw new Problem("provider_failed", "The model's provider failed before the answer was complete.");
}

function unknownResponse(path: string, id: string): Problem {
  const shown = JSON.stringify(id.slice(0, 100));
  const message = "must be the id of a response that this caller may read";
  return new Problem("not_found", `There is no response ${shown}.`, { errors: [{ path, message }] });
}
