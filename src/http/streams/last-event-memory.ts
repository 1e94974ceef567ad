import type { BodyShares } from "../body/shares.ts";
import type { StreamPlace } from "./open-streams.ts";

/** A stream's memory for its last event, which may contain a whole answer. */
export interface LastEventMemory {
  /** @throws Problem 429 `rate_limited` */
  hold(bytes: number): void;
  /** Releases the memory and the stream's place. */
  readonly ended: () => void;
  /** Sets the function to call if others need the memory. It MUST end the stream. */
  onLost(end: () => void): void;
}

export function lastEventMemory(
  bodies: BodyShares,
  workspaceId: number,
  place: StreamPlace,
): LastEventMemory {
  const texts = bodies.open(workspaceId);
  texts.complete();
  return {
    hold: (bytes) => texts.take(bytes),
    ended() {
      texts.close();
      place.release();
    },
    onLost(end) {
      texts.refused = end;
    },
  };
}
