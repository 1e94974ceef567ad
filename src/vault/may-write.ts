import { type Boundary, isInside, ROOT_SCOPE } from "../access/memory-scope.ts";
import { Problem } from "../base/errors.ts";
import type { VaultParts } from "./parts.ts";
import { findScope } from "./rows/documents.ts";

/** @throws Problem 403 `scope_forbidden` */
export function holdInside(boundary: Boundary, scope: string): void {
  if (!isInside(boundary, scope))
    throw new Problem("scope_forbidden", "This scope is outside the caller's boundary.");
}

/** The fields of a write that identify the document. */
interface NamedWrite {
  readonly workspaceId: number;
  readonly boundary: Boundary;
  readonly id: string | undefined;
}

/**
 * A caller without a boundary may choose the id of a new document. Other callers may only name documents they can
 * see: ids are unique within a workspace, so accepting a free id and refusing a taken one would reveal which
 * documents exist outside the boundary.
 * @throws Problem 403 `scope_forbidden`, with the same message for a document outside and for one that does not exist
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
    "There is no document with this id that you may replace. Leave out `id` to write a new document.",
  );
}
