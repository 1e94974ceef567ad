import type { Token } from "../../../../http/api.ts";
import { shortId } from "../../../parts/text.tsx";

/** Who issued a token: another token by its name where that is in the list, or else as the ledger spells it. */
export function issuerOf({ created_by }: Token, tokens: readonly Token[]): string {
  if (!created_by.startsWith("token:")) return created_by;
  const id = created_by.slice("token:".length);
  return tokens.find((token) => token.id === id)?.name ?? shortId(id);
}
