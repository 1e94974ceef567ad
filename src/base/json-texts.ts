import { JsonMeter, JsonTooLarge, MAX_MEMBERS } from "./json-limits.ts";

/**
 * Parses texts inside one request or answer that are JSON again, such as arguments of tools. Together they may have as
 * many members as a request: there may be thousands of them, each small enough to be parsed.
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
}
