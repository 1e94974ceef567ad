import { Problem } from "../base/errors.ts";
import { MemberNames, textsWithin } from "./request-bytes.ts";

/** Members that name files, stores and skills of the provider's account. */
export const ACCOUNT_MEMBERS = ["file_id", "file_ids", "vector_store_ids", "skill_id"];
/** Members that clients define themselves. In no dialect does the provider resolve ids inside them. */
export const OWN_MEMBERS = ["parameters", "input_schema", "output_schema", "schema", "metadata"];

/**
 * Where a dialect's requests may name things in the provider's account. All workspaces share that account, and
 * Gatehouse does not know who owns them.
 */
export class AccountIds {
  readonly #names: MemberNames;
  readonly #holders: ReadonlySet<string>;
  readonly #skipped: ReadonlySet<string>;

  /**
   * @param holders names of members, besides `ACCOUNT_MEMBERS`, whose value is an id or an object with one
   * @param skipped names of further members that are not searched
   */
  constructor({ holders, skipped }: Readonly<Record<"holders" | "skipped", readonly string[]>>) {
    this.#names = new MemberNames([...ACCOUNT_MEMBERS, ...holders]);
    this.#holders = new Set(holders);
    this.#skipped = new Set([...OWN_MEMBERS, ...skipped]);
  }

  /**
   * Searches the bytes, because in a parsed value, a second member of the same name would hide the first.
   * @throws Problem 404 `not_found` if the request names anything in the provider's account
   */
  refuseIn(bytes: Uint8Array): void {
    for (const { name, text } of textsWithin(bytes, this.#names, this.#skipped, this.#holders)) {
      if (text !== "") throw accountIdRefusal(name, text);
    }
  }
}

export function accountIdRefusal(name: string, id: string): Problem {
  const shown = JSON.stringify(id.slice(0, 128));
  const detail = `${name} ${shown} is stored in the provider's account, which all workspaces share, so it cannot be used.`;
  return new Problem("not_found", detail, {
    errors: [{ path: `/${name}`, message: "must not name anything in the provider's account" }],
  });
}
