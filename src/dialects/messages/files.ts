import { field } from "../json.ts";
import { filesAt, filesIn, filesWithId, type SentFile } from "../sent-files.ts";

/** The files in the messages of a conversation. */
export function* filesInMessages(messages: unknown): Generator<SentFile> {
  if (!Array.isArray(messages)) return;
  for (const message of messages) yield* filesInBlocks(field(message, "content"));
}

/** The files in blocks, and in the results and documents among them. */
function* filesInBlocks(content: unknown): Generator<SentFile> {
  for (const block of Array.isArray(content) ? content : [content]) {
    const type = field(block, "type");
    if (type === "image" || type === "document") yield* filesInSource(field(block, "source"));
    else if (type === "container_upload") yield* filesWithId(field(block, "file_id"));
    // A result has blocks. The arguments of a call are text, whatever they look like.
    else if (type !== undefined) yield* filesInBlocks(field(block, "content"));
  }
}

function* filesInSource(source: unknown): Generator<SentFile> {
  switch (field(source, "type")) {
    case "base64":
      yield* filesIn(field(source, "data"), field(source, "media_type"));
      break;
    case "url":
      yield* filesAt(field(source, "url"));
      break;
    case "file":
      yield* filesWithId(field(source, "file_id"));
      break;
    case "content":
      yield* filesInBlocks(field(source, "content"));
  }
}
