import { Problem } from "../../base/errors.ts";
import { JsonMeter, JsonTooLarge, MAX_MEMBERS } from "../../base/json-limits.ts";
import { pointerTo } from "./unsupported.ts";

/**
 * Parses the texts of one request or answer that are JSON again, such as arguments of tools. Together they may have
 * as many members as a request: there may be thousands of them, each small enough to be parsed.
 */
export class JsonTexts {
  #left = MAX_MEMBERS;

  /**
   * The value of a text; undefined if it is not JSON, or nested too deeply.
   * @throws JsonTooLarge if the texts have too many members together
   */
  parsed(text: string): unknown {
    const meter = new JsonMeter({ members: this.#left });
    const excess = meter.add(Buffer.from(text));
    if (excess === "members") throw new JsonTooLarge(excess);
    if (excess) return undefined;
    this.#left -= meter.members;
    try {
      return JSON.parse(text);
    } catch {
      return undefined;
    }
  }

  /**
   * The same for a text in a request.
   * @param path its location, such as `input[8].arguments`
   * @throws Problem 413 `body_too_large`
   */
  parsedAt(text: string, path: string): unknown {
    try {
      return this.parsed(text);
    } catch (error) {
      if (!(error instanceof JsonTooLarge)) throw error;
      const message = `has too many members: JSON inside texts may have ${MAX_MEMBERS} in a request.`;
      throw new Problem("body_too_large", `${path} ${message}`, {
        errors: [{ path: pointerTo(path), message }],
      });
    }
  }
}
