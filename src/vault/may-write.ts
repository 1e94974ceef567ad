import { type Boundary, isInside, ROOT_SCOPE } from "../access/memory-scope.ts";
import { Problem } from "../base/errors.ts";
import type { VaultParts } from "./parts.ts";
import { findScope } from "./rows/documents.ts";

/** @throws Problem 403 `scope_forbidden` */
export function holdInside(boundary: Boundary, scope: string): void {
  if (!isInside(boundary, scope))
    throw new Problem("scope_forbidden", "This is outside of what may be written.");
}

/** A write, as far as it says whose document is meant. */
interface NamedWrite {
  readonly workspaceId: number;
  readonly boundary: Boundary;
  readonly id: string | undefined;
}

/**
 * A caller that sees everything may choose the id of a new document. Any other caller may name only documents that it sees:
 * ids are unique in a workspace, so taking a free one and refusing a taken one would tell which documents exist outside of
 * the boundary.
 * @throws Problem 403 `scope_forbidden`, in the same words for a document outside and for one that does not exist
 */
export async function holdNameable(
  { db }: Pick<VaultParts, "db">,
  { workspaceId, boundary, id }: NamedWrite,
): Promise<void> {
  if (id === undefined || seesEverything(boundary)) return;
  const scope = await findScope(db, workspaceId, id);
  if (scope === undefined || !isInside(boundary, scope)) throw notNameable();
}

export function seesEverything(boundary: Boundary): boolean {
  return isInside(boundary, ROOT_SCOPE);
}

export function notNameable(): Problem {
  return new Problem(
    "scope_forbidden",
    "This id is not the id of a document that may be replaced. Leave out `id` to write a new document.",
  );
}
