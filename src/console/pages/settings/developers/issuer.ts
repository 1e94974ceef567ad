import type { Token } from "../../../../http/api.ts";
import { shortId } from "../../../parts/text.tsx";

/** The issuer of a token: another token's name if it is in the list, otherwise the actor as recorded. */
export function issuerOf({ created_by }: Token, tokens: readonly Token[]): string {
  if (!created_by.startsWith("token:")) return created_by;
  const id = created_by.slice("token:".length);
  return tokens.find((token) => token.id === id)?.name ?? shortId(id);
}
