import { JsonMeter, JsonTooLarge, MAX_MEMBERS } from "./json-limits.ts";

/**
 * Parses the strings of one request or answer that contain JSON, such as tool arguments. There may be thousands of
 * them, each small enough to be parsed, so together they may only have as many members as one request.
 */
export class JsonTexts {
  #left = MAX_MEMBERS;

  /**
   * The value of a string; undefined if it is not JSON, or is nested too deeply.
   * @throws JsonTooLarge if the strings together have too many members
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
}
