import { invalidField } from "../../base/errors.ts";
import { AccountIds } from "../account-ids.ts";
import type { DialectRequest } from "../dialect.ts";
import { countOf, field, textBytesOf } from "../json.ts";
import { type Edit, edited, findMembers, MemberNames } from "../request-bytes.ts";
import { contentSizeOf } from "../sent-files.ts";
import { filesInMessages } from "./files.ts";
import { withoutOwnSignatures } from "./own-signatures.ts";
import { ChatStreamReader } from "./stream.ts";

/** The maximum number of answers to one prompt at OpenAI. The cost of each is reserved from the budgets. */
const MOST_ANSWERS = 128;
/** Members that are changed, or that determine the reservation. */
const MEMBERS = new MemberNames([
  ...["model", "stream", "stream_options", "n", "max_completion_tokens", "max_tokens"],
]);
/** An assistant message may contain the id of audio that OpenAI stores. */
const ACCOUNT_IDS = new AccountIds({ holders: ["audio"], skipped: ["annotations"] });

/** @throws Problem 400 `invalid_json`, 404 `not_found`, 422 `validation_failed` */
export function readChatRequest(bytes: Uint8Array, value: unknown): DialectRequest {
  ACCOUNT_IDS.refuseIn(bytes);
  const { spans, close } = findMembers(bytes, MEMBERS);
  const model = field(value, "model");
  const stream = field(value, "stream");
  const options = field(value, "stream_options");
  const named = spans.get("model");
  if (typeof model !== "string" || !named) throw invalidField("/model", "must be the name of a model");
  if (stream !== undefined && stream !== null && typeof stream !== "boolean") {
    throw invalidField("/stream", "must be true or false");
  }
  if (options !== undefined && (typeof options !== "object" || Array.isArray(options))) {
    throw invalidField("/stream_options", "must be an object");
  }
  const isStream = stream === true;
  const wantsUsage = field(options, "include_usage") === true;
  const answers = answersOf(field(value, "n") ?? 1);
  const { contentBytes, namedBytes } = contentSizeOf(value, filesInMessages(field(value, "messages")));
  const ownSignatures = withoutOwnSignatures(bytes, value);
  return {
    model,
    isStream,
    size: {
      bytes: bytes.length + namedBytes,
      contentBytes,
      textBytes: textBytesOf(value),
      answers,
      mostTokens: countOf(field(value, "max_completion_tokens")) || countOf(field(value, "max_tokens")),
    },
    bytesFor(name) {
      const edits: Edit[] = [{ ...named, text: JSON.stringify(name) }, ...ownSignatures];
      if (isStream && !wantsUsage) {
        // Metering needs the usage. Its chunk is withheld from a client that did not request it.
        const text = JSON.stringify({ ...options, include_usage: true });
        const span = spans.get("stream_options");
        edits.push(
          span ? { ...span, text } : { start: close, end: close, text: `,"stream_options":${text}` },
        );
      }
      return edited(bytes, edits);
    },
    readStream: () => new ChatStreamReader(wantsUsage, answers),
  };
}

/** @throws Problem 422 `validation_failed` */
function answersOf(n: unknown): number {
  const answers = countOf(n);
  if (answers === 0 || answers > MOST_ANSWERS) {
    throw invalidField("/n", `must be a whole number from 1 to ${MOST_ANSWERS}`);
  }
  return answers;
}
