import type { Bus, BusMessage } from "../nodes/bus.ts";

/** What no longer authorises anybody: a token or one of its secrets, an agent that was archived, or a session. */
export type EndedRights =
  | { readonly token: string; readonly agent?: never; readonly session?: never }
  | { readonly agent: number; readonly token?: never; readonly session?: never }
  | { readonly session: string; readonly token?: never; readonly agent?: never };

/** A token that was issued, rotated or revoked, for whoever shows tokens. */
export interface TokenChange {
  readonly workspaceId: number;
  /** The agent that it acts as. */
  readonly agentId: number | null;
}

const RIGHTS_TOPIC = "rights";
const TOKEN_TOPIC = "token";

/** Tells the other nodes. MUST be called after the commit. */
export function sendRights(bus: Pick<Bus, "send">, { token, agent, session }: EndedRights): void {
  const message = { token: token ?? null, agent: agent ?? null, session: session ?? null };
  bus.send(RIGHTS_TOPIC, message, { isUrgent: true });
}

/** Calls `handle` with what has ended on other nodes. */
export function listenToRights(bus: Pick<Bus, "listen">, handle: (ended: EndedRights) => void): void {
  bus.listen(RIGHTS_TOPIC, (message) => {
    const ended = readEnded(message);
    if (ended) handle(ended);
  });
}

function readEnded({ token, agent, session }: BusMessage): EndedRights | undefined {
  if (typeof token === "string") return { token };
  if (typeof agent === "number") return { agent };
  return typeof session === "string" ? { session } : undefined;
}

/** Tells the other nodes. MUST be called after the commit. */
export function sendTokenChange(bus: Pick<Bus, "send">, { workspaceId, agentId }: TokenChange): void {
  bus.send(TOKEN_TOPIC, { workspace: workspaceId, agent: agentId });
}

/** Calls `handle` with the changes of other nodes. */
export function listenToTokenChanges(bus: Pick<Bus, "listen">, handle: (change: TokenChange) => void): void {
  bus.listen(TOKEN_TOPIC, ({ workspace: workspaceId, agent: agentId }) => {
    if (typeof workspaceId !== "number") return;
    if (typeof agentId === "number" || agentId === null) handle({ workspaceId, agentId });
  });
}
