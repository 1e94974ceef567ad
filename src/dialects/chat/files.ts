import { field } from "../json.ts";
import { addressesIn, filesAt, filesIn, filesWithId, type SentFile } from "../sent-files.ts";

/** The members of a content part that hold the address of a file. Only the first is OpenAI's. */
const ADDRESSES = ["image_url", "video_url", "audio_url"];
/** Parts whose text is only text, whatever it looks like. */
const TEXTS = ["text", "refusal"];

/** The files in the messages of a chat completion. */
export function* filesInMessages(messages: unknown): Generator<SentFile> {
  if (!Array.isArray(messages)) return;
  for (const message of messages) {
    yield* filesInParts(field(message, "content"));
    // Some servers return images here, and clients send them back.
    yield* filesInParts(field(message, "images"));
  }
}

function* filesInParts(parts: unknown): Generator<SentFile> {
  if (!Array.isArray(parts)) return;
  for (const part of parts) {
    const type = field(part, "type");
    if (typeof type !== "string" || TEXTS.includes(type)) continue;
    if (ADDRESSES.includes(type)) {
      const place = field(part, type);
      yield* filesAt(typeof place === "string" ? place : field(place, "url"));
    } else if (type === "input_audio") {
      const audio = field(part, "input_audio");
      yield* filesIn(field(audio, "data"), `audio/${field(audio, "format")}`);
    } else if (type === "file") {
      const file = field(part, "file");
      yield* filesIn(field(file, "file_data"));
      yield* filesWithId(field(file, "file_id"));
      yield* filesAt(field(file, "file_url"));
    } else {
      yield* addressesIn(part);
    }
  }
}
