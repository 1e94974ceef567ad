import type { Pause } from "../dialect.ts";
import { losesDigits, parsedOrNothing } from "../json.ts";
import { BATCH_CHARACTERS, eventBatches, type ServerEvent } from "./events.ts";

/**
 * Reads all events of a stream. Each is parsed separately: if they were joined, two events that are not JSON could
 * hide the events between them.
 * @param visit `value` is undefined if the data cannot be read
 * @returns whether every number was read exactly as it was sent
 */
export async function readEvents(
  events: Buffer,
  pause: Pause,
  visit: (event: ServerEvent, value: unknown) => void,
): Promise<boolean> {
  let areExact = true;
  for (const batch of eventBatches(events)) {
    for (const event of batch) {
      visit(event, parsedOrNothing(event.data));
      if (areExact && losesDigits(event.data)) areExact = false;
    }
    const wait = pause(BATCH_CHARACTERS);
    if (wait) await wait;
  }
  return areExact;
}

/**
 * Whether clients that rely on event names see the same events as clients that rely on the `type` in the data: each
 * name equals that type, or no event has a name.
 */
export class EventNames {
  #areNamed: boolean | null = null;
  #areClear = true;

  get areClear(): boolean {
    return this.#areClear;
  }

  add({ name, isPlain }: ServerEvent, type: unknown): void {
    const isNamed = name !== null;
    this.#areNamed ??= isNamed;
    if (!isPlain || isNamed !== this.#areNamed || (isNamed && name !== type)) this.#areClear = false;
  }
}
