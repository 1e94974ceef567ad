import { field } from "../json.ts";
import { addressesIn, filesAt, filesIn, filesWithId, type SentFile } from "../sent-files.ts";

/** Where an item has its content parts: a message in `content`, the result of a tool in `output`. */
const PARTS = ["content", "output"];
/** Parts whose text is only text, whatever it looks like. */
const TEXTS = ["input_text", "output_text", "reasoning_text", "summary_text", "refusal"];

/** The files in a request for a response. */
export function* filesInRequest(value: unknown): Generator<SentFile> {
  yield* filesInItems(field(value, "input"));
  const tools = field(value, "tools");
  if (!Array.isArray(tools)) return;
  for (const tool of tools) {
    if (field(tool, "type") === "image_generation") yield* imageIn(field(tool, "input_image_mask"));
  }
}

/** The files in items of a conversation. */
export function* filesInItems(items: unknown): Generator<SentFile> {
  if (!Array.isArray(items)) return;
  for (const item of items) {
    if (field(item, "type") === "image_generation_call") yield* filesIn(field(item, "result"), "image/*");
    for (const name of PARTS) yield* filesInParts(field(item, name));
  }
}

function* filesInParts(content: unknown): Generator<SentFile> {
  for (const part of Array.isArray(content) ? content : [content]) {
    const type = field(part, "type");
    switch (type) {
      case "input_image":
      case "computer_screenshot":
        yield* imageIn(part);
        break;
      case "input_file":
        yield* filesIn(field(part, "file_data"));
        yield* filesAt(field(part, "file_url"));
        yield* filesWithId(field(part, "file_id"));
        break;
      case "input_audio": {
        const audio = field(part, "input_audio");
        yield* filesIn(field(audio, "data"), `audio/${field(audio, "format")}`);
        break;
      }
      default:
        if (typeof type === "string" && !TEXTS.includes(type)) yield* addressesIn(part);
    }
  }
}

function* imageIn(part: unknown): Generator<SentFile> {
  const address = field(part, "image_url");
  yield* typeof address === "string" ? filesAt(address) : addressesIn(address);
  yield* filesWithId(field(part, "file_id"));
}
