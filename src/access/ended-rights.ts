import type { Bus, BusMessage } from "../nodes/bus.ts";

/** What no longer authorises anybody: a token or one of its secrets, an agent that was archived, or a session. */
export type EndedRights =
  | { readonly token: string; readonly agent?: never; readonly session?: never }
  | { readonly agent: number; readonly token?: never; readonly session?: never }
  | { readonly session: string; readonly token?: never; readonly agent?: never };

const TOPIC = "rights";

/** Tells the other nodes. MUST be called after the commit. */
export function sendRights(bus: Pick<Bus, "send">, { token, agent, session }: EndedRights): void {
  const message = { token: token ?? null, agent: agent ?? null, session: session ?? null };
  bus.send(TOPIC, message, { isUrgent: true });
}

/** Calls `handle` with what has ended on other nodes. */
export function listenToRights(bus: Pick<Bus, "listen">, handle: (ended: EndedRights) => void): void {
  bus.listen(TOPIC, (message) => {
    const ended = readEnded(message);
    if (ended) handle(ended);
  });
}

function readEnded({ token, agent, session }: BusMessage): EndedRights | undefined {
  if (typeof token === "string") return { token };
  if (typeof agent === "number") return { agent };
  return typeof session === "string" ? { session } : undefined;
}
