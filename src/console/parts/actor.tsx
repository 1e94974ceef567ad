import type { JSX } from "preact";
import { useSession } from "../state/session.tsx";
import { useTokenName } from "../state/tokens.ts";
import { shortId } from "./text.tsx";

const TOKEN = "token:";

/**
 * The author of a ledger entry (`token:tok_…` or another name) in words: "you" for the reader's own token, a token's
 * name and person if the reader may list tokens, otherwise the end of its id. The full actor is in the tooltip.
 */
export function Actor({ of }: { readonly of: string }): JSX.Element {
  const { session } = useSession();
  const id = of.startsWith(TOKEN) ? of.slice(TOKEN.length) : null;
  const isOwn = of === session.actor;
  const known = useTokenName(isOwn ? null : id);
  return (
    <bdi class="break" title={of}>
      {isOwn
        ? ownText(session.token?.name ?? null, session.person)
        : known
          ? namedText(known.name, known.person)
          : id === null
            ? of
            : shortId(id)}
    </bdi>
  );
}

function ownText(name: string | null, person: string | null): string {
  const who = person ?? name;
  return who === null ? "you" : `you (${who})`;
}

function namedText(name: string, person: string | null): string {
  return person === null || person === name ? name : `${name} (${person})`;
}
