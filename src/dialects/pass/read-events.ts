import type { Pause } from "../dialect.ts";
import { losesDigits, parsedOrNothing } from "../json.ts";
import { EventForm, type FindVarying } from "./event-form.ts";
import { BATCH_CHARACTERS, eventBatches, type ServerEvent } from "./events.ts";

/** How many events in a row may have another form. Some providers never send two events of the same form. */
const MOST_OTHERS = 16;

/**
 * Reads all events of a stream. Each is parsed separately: if they were joined, two events that are not JSON could
 * hide the events between them.
 * @param findVarying the members in which most events differ from the one before
 * @param visit `value` is undefined if the data cannot be read. It is valid until the next call, but objects in it that
 *   have no varying member can be kept. `isAlike`: an earlier value differs from it only in the varying members
 * @returns whether every number was read exactly as it was sent
 */
export async function readEvents(
  events: Buffer,
  pause: Pause,
  findVarying: FindVarying,
  visit: (event: ServerEvent, value: unknown, isAlike: boolean) => void,
): Promise<boolean> {
  let areExact = true;
  let form: EventForm | null = null;
  let others = 0;
  for (const batch of eventBatches(events)) {
    for (const event of batch) {
      const known = form?.read(event.data);
      if (known !== undefined) {
        visit(event, known, true);
        others = 0;
        continue;
      }
      const value = parsedOrNothing(event.data);
      visit(event, value, false);
      others += 1;
      form = others > MOST_OTHERS ? null : (EventForm.of(event.data, value, findVarying) ?? form);
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
