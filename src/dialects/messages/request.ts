import { invalidField } from "../../base/errors.ts";
import { AccountIds } from "../account-ids.ts";
import type { DialectRequest } from "../dialect.ts";
import { countOf, field, textBytesOf } from "../json.ts";
import { edited, findMembers, MemberNames } from "../request-bytes.ts";
import { contentSizeOf } from "../sent-files.ts";
import { filesInMessages } from "./files.ts";
import { withoutOwnThoughts } from "./own-thoughts.ts";
import { MessagesStreamReader } from "./stream.ts";

const MEMBERS = new MemberNames(["model", "stream", "max_tokens"]);
/** The arguments of tools belong to the client. */
const ACCOUNT_IDS = new AccountIds({ holders: ["container"], skipped: ["input", "input_examples"] });

/** @throws Problem 400 `invalid_json`, 404 `not_found`, 422 `validation_failed` */
export function readMessagesRequest(bytes: Uint8Array, value: unknown): DialectRequest {
  ACCOUNT_IDS.refuseIn(bytes);
  const { spans } = findMembers(bytes, MEMBERS);
  const model = field(value, "model");
  const stream = field(value, "stream");
  const named = spans.get("model");
  if (typeof model !== "string" || !named) throw invalidField("/model", "must be the name of a model");
  if (stream !== undefined && stream !== null && typeof stream !== "boolean") {
    throw invalidField("/stream", "must be true or false");
  }
  const { contentBytes, namedBytes } = contentSizeOf(value, filesInMessages(field(value, "messages")));
  const ownThoughts = withoutOwnThoughts(bytes, value);
  return {
    model,
    isStream: stream === true,
    size: {
      bytes: bytes.length + namedBytes,
      contentBytes,
      textBytes: textBytesOf(value),
      answers: 1,
      mostTokens: countOf(field(value, "max_tokens")),
    },
    bytesFor: (name) => edited(bytes, [{ ...named, text: JSON.stringify(name) }, ...ownThoughts]),
    readStream: () => new MessagesStreamReader(),
  };
}
