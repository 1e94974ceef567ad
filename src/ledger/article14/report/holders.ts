import type { Overseers } from "../figures/overseers.ts";
import { brief, ending } from "./words.ts";

const TOKEN = "token:";

/** The display name of an actor: the person, else the token's name, else the end of its id. */
export function actorName(actor: string, { holders }: Overseers): string {
  if (!actor.startsWith(TOKEN)) return brief(actor, 40);
  const id = actor.slice(TOKEN.length);
  const holder = holders.get(id);
  return brief(holder?.person ?? holder?.name ?? `token ${ending(id)}`, 40);
}

/**
 * Who decided: the person, if the entry that issued the token names one. Otherwise the decision has the token's name,
 * which does not identify a person.
 */
export function deciderOf(
  name: string,
  actor: string,
  { holders, isWithheld }: Overseers,
): { readonly text: string; readonly isNamed: boolean } {
  // The name in the entry. Only the entry that issued the token shows whether the name is a person's.
  if (isWithheld) return { text: brief(name || actor, 60), isNamed: true };
  const holder = actor.startsWith(TOKEN) ? holders.get(actor.slice(TOKEN.length)) : undefined;
  if (holder?.person != null) return { text: brief(holder.person, 60), isNamed: true };
  const called = holder?.name || name || actor;
  const kind = actor.startsWith(TOKEN) ? "token " : "";
  return { text: `${kind}${brief(called, 60)} (no person named)`, isNamed: false };
}
