import type { Overseers } from "../figures/overseers.ts";
import { brief, ending } from "./words.ts";

const TOKEN = "token:";

/** An actor as people know it: the person, or the token's name, or the end of its id. */
export function actorName(actor: string, { holders }: Overseers): string {
  if (!actor.startsWith(TOKEN)) return brief(actor, 40);
  const id = actor.slice(TOKEN.length);
  const holder = holders.get(id);
  return brief(holder?.person ?? holder?.name ?? `token ${ending(id)}`, 40);
}

/**
 * Who decided: the person, where the token's issue names one. A decision bears the token's own name otherwise, which
 * says nothing of who it was.
 */
export function deciderOf(
  name: string,
  actor: string,
  { holders, isWithheld }: Overseers,
): { readonly text: string; readonly isNamed: boolean } {
  // The entry's own word for it: whether that is a person's name, only the token's issue says.
  if (isWithheld) return { text: brief(name || actor, 60), isNamed: true };
  const holder = actor.startsWith(TOKEN) ? holders.get(actor.slice(TOKEN.length)) : undefined;
  if (holder?.person != null) return { text: brief(holder.person, 60), isNamed: true };
  const called = holder?.name || name || actor;
  const kind = actor.startsWith(TOKEN) ? "token " : "";
  return { text: `${kind}${brief(called, 60)} (no person named)`, isNamed: false };
}
