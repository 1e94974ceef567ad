import type { EventMemory } from "../../tasks/events/stored-events.ts";
import type { BodyShares } from "../body/shares.ts";
import type { StreamPlace } from "./open-streams.ts";

/** A stream's memory for long events, which may contain the whole text. */
export interface StreamMemory extends EventMemory {
  /** Releases the memory and the stream's place. */
  readonly ended: () => void;
  /** Sets the function to call if others need the memory. It MUST end the stream. */
  onLost(end: () => void): void;
}

export function streamMemory(bodies: BodyShares, workspaceId: number, place: StreamPlace): StreamMemory {
  let end = () => {};
  const open = () => {
    const texts = bodies.open(workspaceId);
    texts.complete();
    texts.refused = () => end();
    return texts;
  };
  let held: ReturnType<typeof open> | null = null;
  const release = () => {
    held?.close();
    held = null;
  };
  return {
    hold(bytes) {
      held ??= open();
      held.take(bytes);
    },
    release,
    ended() {
      release();
      place.release();
    },
    onLost(endStream) {
      end = endStream;
    },
  };
}
